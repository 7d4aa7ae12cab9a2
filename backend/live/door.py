"""A member's port: who comes in, within which limits, and whether as a member or as a client of the HTTP face.

Both come to one port. A frame begins with a byte of 0, for no frame is that long; a request begins with an upper-case
letter. So the first byte, after TLS if there is any, tells who is there. Until it has said enough, a stranger costs one
place, of which there are so many, and must be quick.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable
from typing import Protocol

from quarterdeck.backend.live.connection import Connection
from quarterdeck.backend.live.limits import Failures, Limits, Places
from quarterdeck.backend.live.tls import Tls, tls_reason

HttpHandover = Callable[[asyncio.Transport, bytes], asyncio.Protocol]
"""Makes the protocol that takes over a connection which has begun to speak HTTP, as these bytes show. It is made the
transport's protocol, is told ``connection_made``, and is then given the bytes."""

FIRST_LETTERS = frozenset(range(ord("A"), ord("Z") + 1))
TLS_BEGINS = 0x16

TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
TOO_MANY = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"

HTTP_READ_BYTES = 64 * 1024
"""How much is read at a time from somebody who speaks HTTP."""

TLS_SHUTDOWN_SECONDS = 2.0

_LOG = logging.getLogger(__name__)


class Household(Protocol):
    """Who lives behind the door."""

    paused: bool
    hello_timeout_seconds: float
    buffer: memoryview

    def caller(self, until: float) -> Connection:
        """A connection for somebody who speaks in frames and has until then, in loop time, to say hello."""
        ...

    def stranger(self, remote: str, reason: str) -> None: ...


class Door:
    """Everybody who has come in and whom nobody has taken over yet."""

    def __init__(self, household: Household, http: HttpHandover | None, tls: Tls | None, limits: Limits) -> None:
        self.household = household
        self.http = http
        self.tls = tls
        self.limits = limits
        self.places = Places(limits.strangers_per_host, limits.strangers)
        self.failures = Failures(limits)
        self._http_places = Places(limits.http_per_host, limits.http)
        self._servers: list[asyncio.Server] = []
        self._waiting: set[Entrance] = set()
        self._guests: dict[asyncio.Transport, Callable[[], None]] = {}
        """Connections handed over as HTTP, with what gives their place back."""

    async def listen(self, host: str, port: int, *, frames: bool = True) -> None:
        """Bind and accept; without `frames` clients of the HTTP face only. Raises OSError when the port is not to be had."""
        loop = asyncio.get_running_loop()
        self._servers.append(await loop.create_server(lambda: Entrance(self, frames), host, port, backlog=256))

    def pause(self) -> None:
        for entrance in self._waiting:
            entrance.pause()

    def resume(self) -> None:
        for entrance in tuple(self._waiting):
            entrance.resume()

    def close(self) -> None:
        """Let nobody in any more, and send away who still waits; HTTP connections are their new owner's to end."""
        for server in self._servers:
            server.close()
        for entrance in tuple(self._waiting):
            entrance.abort()

    def abort(self) -> None:
        """Break everything off, HTTP too."""
        self.close()
        for transport in self._guests:
            transport.abort()

    def failed(self, remote: str, host: str, reason: str) -> None:
        """Somebody has failed to be a member: tell of it, and count it against the host."""
        unheard = self.failures.failed(host)
        more = f"; {unheard} more from {host} were hung up on unheard" if unheard else ""
        self.household.stranger(remote, reason + more)

    def entered(self, entrance: Entrance) -> None:
        self._waiting.add(entrance)

    def left(self, entrance: Entrance) -> None:
        self._waiting.discard(entrance)

    def place_for_http(self, transport: asyncio.Transport, host: str) -> bool:
        """Whether there is one, and then it is taken for as long as `transport` is open."""
        for guest in [guest for guest in self._guests if guest.is_closing()]:
            self._guests.pop(guest)()
        give_back = self._http_places.take(host)
        if give_back is None:
            return False
        self._guests[transport] = give_back
        return True


class Entrance(asyncio.BufferedProtocol):
    """One connection, from its beginning until it is known whom it is for."""

    def __init__(self, door: Door, frames: bool) -> None:
        self._door = door
        self._frames = frames
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._said = bytearray()
        self._secured = door.tls is None
        self._securing: asyncio.Task[None] | None = None
        self._give_back: Callable[[], None] | None = None
        self._parting: Callable[[], None] | None = None
        """Gives the place back of somebody who was sent away and is not gone yet."""
        self._timer: asyncio.TimerHandle | None = None
        self._host = self._remote = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        name = transport.get_extra_info("peername")
        self._host, self._remote = (str(name[0]), f"{name[0]}:{name[1]}") if name else ("", "")
        self._give_back = self._door.places.take(self._host)
        if self._give_back is None:
            self._send_away("too many strangers at a time")
            return
        self._door.entered(self)
        self._timer = self._loop.call_later(self._door.household.hello_timeout_seconds, self._is_late)
        if self._frozen:
            transport.pause_reading()
        else:
            self._begin()

    @property
    def _frozen(self) -> bool:
        """Whether nothing is heard: the member stands still, and there is no HTTP by which it could be told to go on."""
        return self._door.household.paused and self._door.http is None

    def get_buffer(self, sizehint: int) -> memoryview:
        """The one that all connections of the member share, as what strangers say is better not given memory of its own."""
        return self._door.household.buffer

    def buffer_updated(self, nbytes: int) -> None:
        if self._give_back is not None:
            self._said += self._door.household.buffer[:nbytes]
            self._sort()

    def eof_received(self) -> None:
        """Nothing was said yet that anybody could answer; asyncio closes the connection."""

    def connection_lost(self, problem: Exception | None) -> None:
        self._leave()
        self._transport = None
        if self._parting is not None:
            self._parting()

    # What the door asks of it

    def pause(self) -> None:
        if self._transport is not None and self._securing is None and self._frozen:
            self._transport.pause_reading()

    def resume(self) -> None:
        if self._transport is not None and self._securing is None:
            self._transport.resume_reading()
            self._begin()

    def abort(self) -> None:
        self._leave()
        if self._transport is not None:
            self._transport.abort()

    # TLS

    def _begin(self) -> None:
        if self._secured:
            self._sort()
        elif self._securing is None:
            assert self._transport is not None and self._door.tls is not None
            self._transport.pause_reading()
            self._securing = self._loop.create_task(self._secure(self._transport, self._door.tls.accepting))

    async def _secure(self, transport: asyncio.Transport, context: ssl.SSLContext) -> None:
        """Shake hands; what is said before this returns is only collected."""
        try:
            secure = await self._loop.start_tls(
                transport,
                self,
                context,
                server_side=True,
                ssl_handshake_timeout=self._door.household.hello_timeout_seconds + 1,
                ssl_shutdown_timeout=TLS_SHUTDOWN_SECONDS,
            )
        except ssl.SSLError as problem:
            _let_go(problem)
            self._leave()
            self._complain(tls_reason(problem))
            return
        except OSError as problem:
            _let_go(problem)
            self._leave()
            _LOG.debug("%s hung up before TLS was agreed: %s", self._remote, problem)
            return
        if secure is None or self._give_back is None:
            self._leave()
            return
        self._transport, self._secured, self._securing = secure, True, None
        if self._frozen:
            secure.pause_reading()
        else:
            self._sort()

    # Whom it is for

    def _sort(self) -> None:
        if not self._said or not self._secured or self._frozen or self._give_back is None:
            return
        if self._door.http is not None and self._said[0] in FIRST_LETTERS:
            if _head_is_complete(self._said) or len(self._said) >= self._door.limits.http_head_bytes:
                self._hand_to_http(self._door.http)
        elif not self._frames:
            self._send_away("speaks no HTTP, on a port that is for HTTP only")
        elif self._said[0] == TLS_BEGINS:
            self._send_away("speaks TLS, which is not switched on here")
        elif self._door.failures.unheard(self._host):
            self._send_away("")
        elif self._door.household.paused:
            assert self._transport is not None
            self._transport.pause_reading()  # a member, which waits until this one goes on
        else:
            self._hand_to_member()

    def _hand_to_http(self, http: HttpHandover) -> None:
        transport, said = self._transport, bytes(self._said)
        self._transport = None
        assert transport is not None
        self._leave()
        if not self._door.place_for_http(transport, self._host):
            transport.write(TOO_MANY)
            transport.close()
            return
        _read_little(transport)
        protocol = http(transport, said)
        transport.set_protocol(protocol)
        protocol.connection_made(transport)
        protocol.data_received(said)

    def _hand_to_member(self) -> None:
        transport, timer, give_back = self._transport, self._timer, self._give_back
        self._transport = None
        assert transport is not None and timer is not None and give_back is not None
        self._give_back = None
        connection = self._door.household.caller(timer.when())
        connection.settled = give_back
        self._leave()
        transport.set_protocol(connection)
        connection.connection_made(transport)
        connection.take(memoryview(self._said))

    # Who is sent away

    def _is_late(self) -> None:
        household = self._door.household
        if household.paused:
            self._timer = self._loop.call_later(household.hello_timeout_seconds, self._is_late)
            return
        spoke_http = bool(self._said)
        if not self._secured:
            reason = f"agreed on no TLS within {household.hello_timeout_seconds:g} s"
        elif spoke_http:
            reason = f"did not finish its request within {household.hello_timeout_seconds:g} s"
        else:
            reason = f"said no hello within {household.hello_timeout_seconds:g} s"
        self._send_away(reason, TOO_SLOW if self._secured and spoke_http else b"")

    def _send_away(self, reason: str, last_words: bytes = b"") -> None:
        """Hang up, after `last_words`; without a reason nobody is told."""
        securing, transport = self._securing is not None, self._transport
        assert transport is not None
        if not securing:
            self._parting, self._give_back = self._give_back, None
        self._leave()
        if securing:
            transport.abort()
        else:
            if last_words:
                transport.write(last_words)
            transport.close()
        if reason:
            self._complain(reason)

    def _complain(self, reason: str) -> None:
        if not self._door.failures.unheard(self._host):
            self._door.failed(self._remote, self._host, reason)

    def _leave(self) -> None:
        """It is nobody's concern here any more."""
        self._door.left(self)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._give_back is not None:
            self._give_back()
            self._give_back = None
        securing, self._securing = self._securing, None
        if securing is not None and securing is not asyncio.current_task():
            securing.cancel()


def _let_go(problem: Exception) -> None:
    """Cut the circle from the problem over the frames that it went through to itself: in it hang the buffers of the
    connection, until somebody happens to look for circles."""
    problem.__traceback__ = None


def _read_little(transport: asyncio.Transport) -> None:
    """By default asyncio asks for 256 KiB for each read and gives most of it back, which in the long run wears out the heap:
    after 50,000 bad requests it was 9 MB larger, although nothing was kept."""
    if hasattr(transport, "max_size"):
        transport.max_size = HTTP_READ_BYTES


def _head_is_complete(said: bytearray) -> bool:
    return b"\n\r\n" in said or b"\n\n" in said
