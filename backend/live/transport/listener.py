"""A member's port: it accepts connections within limits, and finds out whether each is a member's or an HTTP client's.

Both connect to one port. A frame begins with a byte of 0, for no frame is that long; a request begins with an upper-case
letter. So the first byte, after TLS if there is any, shows which it is. Until then a pending connection takes one of a limited
number of slots, and has a limited time.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable

from quarterdeck.backend.core.causes import RefusalCause
from quarterdeck.backend.live.security.tls import OTHER_VERSION_ALERT, AlertingContext, Tls, tls_reason
from quarterdeck.backend.live.transport.acceptor import Acceptor, first_words
from quarterdeck.backend.live.transport.connection import ConnectionOwner, PeerConnection
from quarterdeck.backend.live.transport.frames import frame_of
from quarterdeck.backend.live.transport.handshake import HandshakeRejection
from quarterdeck.backend.live.transport.limits import (
    ConnectionSlots,
    HandshakeFailures,
    KnownHosts,
    TransportLimits,
    network_of,
)

HttpHandover = Callable[[asyncio.Transport, bytes], asyncio.Protocol]
"""Makes the protocol that takes over a connection which has begun to speak HTTP, as these bytes show. It is made the
transport's protocol, receives ``connection_made``, and is then given the bytes."""

FIRST_LETTERS = frozenset(range(ord("A"), ord("Z") + 1))
TLS_BEGINS = 0x16


def _refusal(status: str, body: bytes, *headers: str) -> bytes:
    """Return an answer in the HTTP face's form of a refusal, for clients that the face never gets to see."""
    lines = [f"HTTP/1.1 {status}", *headers, "Connection: close", "Content-Type: application/json"]
    return "\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""]).encode() + body


TOO_SLOW = _refusal("408 Request Timeout", b'{"status":"fail","message":"the request did not come in time"}')
TOO_MANY = _refusal(
    "503 Service Unavailable",
    b'{"status":"fail","message":"too many connections are open to this member","hint":"nothing was done; try again"}',
    "Retry-After: 1",
)

HTTP_READ_BYTES = 64 * 1024
"""How much is read at a time from a client that speaks HTTP. By default asyncio asks for 256 KiB for each read and gives most of
it back, which in the long run wears out the heap: after 50,000 bad requests it was 9 MB larger, although nothing was kept."""

TOO_BUSY = "came while too many connections had not said yet what they are; it may call again"
TOO_MANY_FAILURES = "comes from a host with too many failed handshakes; it may call again"
"""The answer to members that are over a limit."""

BUSY_ALERT = bytes((21, 3, 3, 0, 2, 2, 80))
"""The same where TLS is spoken: the alert ``internal_error`` (RFC 8446, 6.2)."""

TLS_SHUTDOWN_SECONDS = 2.0

_LOG = logging.getLogger(__name__)


class Listener:
    """The sockets that a member listens on, and their pending connections."""

    def __init__(
        self, owner: ConnectionOwner, http: HttpHandover | None, tls: Tls | None, limits: TransportLimits
    ) -> None:
        self.owner = owner
        self.http = http
        self.tls = tls
        self.limits = limits
        self.known = KnownHosts()
        self.slots = ConnectionSlots(limits.pending_per_host, limits.pending, self.known)
        self.failures = HandshakeFailures(limits)
        self.http_slots = ConnectionSlots(limits.http_per_host, limits.http, self.known)
        self._acceptors: list[Acceptor] = []
        self.waiting: set[PendingConnection] = set()
        self._http_connections: dict[asyncio.Transport, Callable[[], None]] = {}
        """Connections handed over as HTTP, each with the function that gives its place back."""

    async def listen(self, host: str, port: int, *, frames: bool = True) -> None:
        """Bind and accept; without `frames` clients of the HTTP face only. Raises OSError when the port is not free."""
        acceptor = Acceptor(
            lambda: PendingConnection(self, frames),
            self._make_room,
            lambda said: self.refusal_of(said, secured=self.tls is None),
        )
        await acceptor.listen(host, port)
        self._acceptors.append(acceptor)

    def pause(self) -> None:
        for pending in self.waiting:
            pending.pause()

    def resume(self) -> None:
        for pending in tuple(self.waiting):
            pending.resume()

    def close(self) -> None:
        """Accept no more connections, and break off pending ones; HTTP connections are their new owner's to end."""
        for acceptor in self._acceptors:
            acceptor.close()
        for pending in tuple(self.waiting):
            pending.abort()

    def abort(self) -> None:
        self.close()
        for transport in self._http_connections:
            transport.abort()

    def failed(self, remote: str, host: str, reason: str, cause: RefusalCause) -> None:
        """Report a failed handshake to the owner, and count it against the host."""
        unheard = self.failures.failed(host)
        more = f"; {unheard} more from {host} were disconnected unread" if unheard else ""
        self.owner.peer_rejected(remote, reason + more, cause)

    def take_http_slot(self, transport: asyncio.Transport, host: str) -> bool:
        """Whether there is one, and then it is taken for as long as `transport` is open."""
        for closing in [http_connection for http_connection in self._http_connections if http_connection.is_closing()]:
            self._http_connections.pop(closing)()
        release_slot = self.http_slots.take(host, HttpConnection(transport))
        if release_slot is None:
            return False
        self._http_connections[transport] = release_slot
        return True

    def refusal_of(self, first_words: bytes, secured: bool) -> bytes:
        """Return the answer to a peer without a place: in plain TLS unless that is `secured`, or not used."""
        if not secured:
            return BUSY_ALERT
        return TOO_MANY if first_words[:1].isupper() else self.rejection(TOO_BUSY)

    def rejection(self, reason: str) -> bytes:
        """Return the refusal of a member for this reason."""
        return frame_of(HandshakeRejection(reason, joined=self.owner.joined()))

    def _make_room(self) -> None:
        if not self.slots.make_room():
            self.http_slots.make_room()


class HttpConnection:
    """The holder of a slot for HTTP. What serves HTTP knows by `gives_way` whether a client waits for an answer."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport

    @property
    def gives_way(self) -> bool:
        return bool(getattr(self._transport.get_protocol(), "gives_way", False))

    def give_way(self) -> None:
        self._transport.abort()


class PendingConnection(asyncio.BufferedProtocol):
    """One connection, from its beginning until its receiver is known."""

    def __init__(self, listener: Listener, frames: bool) -> None:
        self._listener = listener
        self._frames = frames
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._received = bytearray()
        self._secured = listener.tls is None
        self._securing: asyncio.Task[None] | None = None
        self._release_slot: Callable[[], None] | None = None
        self._release_when_closed: Callable[[], None] | None = None
        """Gives the place back of a peer that was sent away and is not gone yet."""
        self._timer: asyncio.TimerHandle | None = None
        self._member: PeerConnection | None = None
        """Who has taken over, and is not identified yet."""
        self._host = self._remote = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        name = transport.get_extra_info("peername")
        self._host, self._remote = (network_of(str(name[0])), f"{name[0]}:{name[1]}") if name else ("", "")
        self._release_slot = self._listener.slots.take(self._host, self)
        if self._release_slot is None:
            own = transport.get_extra_info("socket")
            refusal = self._listener.refusal_of(b"" if own is None else first_words(own.fileno()), self._secured)
            self._reject("too many strangers at a time", "too-many", refusal)
            return
        self._listener.waiting.add(self)
        self._timer = self._loop.call_later(self._listener.owner.timeouts.hello_seconds, self._on_timeout)
        if self._frozen:
            transport.pause_reading()
        else:
            self._begin()

    @property
    def _frozen(self) -> bool:
        """Whether nothing is heard: the member stands still, and there is no HTTP by which it could be resumed."""
        return self._listener.owner.paused and self._listener.http is None

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the buffer that all connections of the member share: an unidentified peer is given no memory of its own."""
        return self._listener.owner.buffer

    def buffer_updated(self, nbytes: int) -> None:
        if self._release_slot is not None:
            self._received += self._listener.owner.buffer[:nbytes]
            self._dispatch()

    def connection_lost(self, problem: Exception | None) -> None:
        self._detach()
        self._transport = None
        if self._release_when_closed is not None:
            self._release_when_closed()

    # What the listener asks of it

    gives_way = True

    def give_way(self) -> None:
        self._report_rejection("made way for another one: too many strangers at a time", "too-many")
        if self._member is not None:
            self._member.refuse(HandshakeRejection(TOO_BUSY))
        elif self._transport is not None and self._securing is None:
            self._transport.write(self._listener.refusal_of(bytes(self._received), self._secured))
            self._transport.close()
            self._transport = None
        self.abort()

    def pause(self) -> None:
        if self._transport is not None and self._securing is None and self._frozen:
            self._transport.pause_reading()

    def resume(self) -> None:
        if self._transport is not None and self._securing is None:
            self._transport.resume_reading()
            self._begin()

    def abort(self) -> None:
        self._detach()
        if self._transport is not None:
            self._transport.abort()

    # TLS

    def _begin(self) -> None:
        if self._secured:
            self._dispatch()
        elif self._securing is None:
            assert self._transport is not None and self._listener.tls is not None
            self._transport.pause_reading()
            self._securing = self._loop.create_task(self._secure(self._transport, self._listener.tls.accepting))

    async def _secure(self, transport: asyncio.Transport, context: ssl.SSLContext) -> None:
        """Shake hands; messages before this returns are only collected."""
        AlertingContext.alerts_to.set(transport)
        try:
            secure = await self._loop.start_tls(
                transport,
                self,
                context,
                server_side=True,
                ssl_handshake_timeout=self._listener.owner.timeouts.hello_seconds + 1,
                ssl_shutdown_timeout=TLS_SHUTDOWN_SECONDS,
            )
        except OSError as problem:
            # It is part of a circle that keeps the connection's buffers until a garbage collection.
            problem.__traceback__ = None
            self._detach()
            if isinstance(problem, ssl.SSLError):
                self._report_rejection(tls_reason(problem), _tls_cause(problem))
            else:
                _LOG.debug("%s hung up before TLS was agreed: %s", self._remote, problem)
            return
        if secure is None or self._release_slot is None:
            self._detach()
            return
        self._transport, self._secured, self._securing = secure, True, None
        if self._frozen:
            secure.pause_reading()
        else:
            self._dispatch()

    # Whom it is for

    def _dispatch(self) -> None:
        if not self._received or not self._secured or self._frozen or self._release_slot is None:
            return
        if self._listener.http is not None and self._received[0] in FIRST_LETTERS:
            said = self._received
            if b"\n\r\n" in said or b"\n\n" in said or len(said) >= self._listener.limits.http_head_bytes:
                self._hand_to_http(self._listener.http)
        elif not self._frames:
            self._reject("speaks no HTTP, on a port that is for HTTP only", "no-member")
        elif self._received[0] == TLS_BEGINS:
            self._reject("speaks TLS, which is not switched on here", "tls", OTHER_VERSION_ALERT)
        elif self._listener.failures.unheard(self._host):
            self._reject("", "too-many", self._listener.rejection(TOO_MANY_FAILURES))
        elif self._listener.owner.paused:
            assert self._transport is not None
            self._transport.pause_reading()  # a member, which waits until this one goes on
        else:
            self._hand_to_member()

    def _hand_to_http(self, http: HttpHandover) -> None:
        transport, received = self._transport, bytes(self._received)
        self._transport = None
        assert transport is not None
        self._detach()
        if not self._listener.take_http_slot(transport, self._host):
            transport.write(TOO_MANY)
            transport.close()
            return
        if hasattr(transport, "max_size"):
            transport.max_size = HTTP_READ_BYTES
        protocol = http(transport, received)
        transport.set_protocol(protocol)
        protocol.connection_made(transport)
        protocol.data_received(received)

    def _hand_to_member(self) -> None:
        transport, timer, release_slot = self._transport, self._timer, self._release_slot
        self._transport = None
        assert transport is not None and timer is not None and release_slot is not None
        self._release_slot = None
        connection = self._member = PeerConnection(self._listener.owner, hello_by=timer.when())
        connection.settled = release_slot
        self._detach()
        transport.set_protocol(connection)
        connection.connection_made(transport)
        connection.take(memoryview(self._received))

    # Who is sent away

    def _on_timeout(self) -> None:
        owner = self._listener.owner
        if owner.paused:
            self._timer = self._loop.call_later(owner.timeouts.hello_seconds, self._on_timeout)
            return
        spoke_http = bool(self._received)
        late = "did not finish its request" if spoke_http else "said no hello"
        reason = f"{late if self._secured else 'agreed on no TLS'} within {owner.timeouts.hello_seconds:g} s"
        refusal = TOO_SLOW if spoke_http else self._listener.rejection(reason) if self._frames else b""
        self._reject(reason, "too-slow", refusal if self._secured else b"")

    def _reject(self, reason: str, cause: RefusalCause, last_words: bytes = b"") -> None:
        """Hang up, after `last_words`; without a reason nothing is recorded."""
        securing, transport = self._securing is not None, self._transport
        assert transport is not None
        if not securing:
            self._release_when_closed, self._release_slot = self._release_slot, None
        self._detach()
        if securing:
            transport.abort()
        else:
            if last_words:
                transport.write(last_words)
            transport.close()
        if reason:
            self._report_rejection(reason, cause)

    def _report_rejection(self, reason: str, cause: RefusalCause) -> None:
        if not self._listener.failures.unheard(self._host):
            self._listener.failed(self._remote, self._host, reason, cause)

    def _detach(self) -> None:
        """Give back the slot and the timer, and end the TLS handshake if it is under way."""
        self._listener.waiting.discard(self)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._release_slot is not None:
            self._release_slot()
            self._release_slot = None
        securing, self._securing = self._securing, None
        if securing is not None and securing is not asyncio.current_task():
            securing.cancel()


def _tls_cause(problem: ssl.SSLError) -> RefusalCause:
    said = (problem.reason or "").lower()
    return "certificate" if isinstance(problem, ssl.SSLCertVerificationError) or "certificate" in said else "tls"
