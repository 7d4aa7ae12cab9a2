"""The sockets on which a member listens: connections are accepted a few at a time, and while descriptors last.

asyncio's own server accepts as many as wait, and when descriptors run out it logs a traceback for each that waits. Here
a descriptor is held back. When there is no other one left, it is used to accept what waits, to say why it is refused, and to
close it, so that no one is left hanging. One line a minute is logged.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from ipaddress import IPv4Address, ip_address
from typing import Any

WAITING = 256
"""Connections that the system keeps for us until they are accepted."""

ACCEPTED_AT_A_TIME = 16

SHORTAGES = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM))
PASSING = frozenset(
    getattr(errno, name)
    for name in (
        *("EAGAIN", "EINTR", "ECONNABORTED", "EPERM", "EPROTO", "ENOPROTOOPT", "ENETDOWN", "ENETUNREACH"),
        *("EHOSTDOWN", "EHOSTUNREACH", "EOPNOTSUPP", "ENONET"),
    )
    if hasattr(errno, name)
)
"""Errors of the connection that was to be accepted, which accept(2) passes on: the next one is not concerned."""

PAUSE_SECONDS = 1.0
"""How long no connection is accepted when even the descriptor that was held back is gone."""

LOG_SECONDS = 60.0

HEARD_BYTES = 4096
"""The number of bytes of a refused peer's words that are read. Unread ones reset the connection when it is closed."""

_LOG = logging.getLogger(__name__)


def first_words(descriptor: int) -> bytes:
    """Read the peer's words so far, at most `HEARD_BYTES`."""
    try:
        return os.read(descriptor, HEARD_BYTES)
    except OSError:
        return b""


class Acceptor:
    """Hands accepted connections to the protocols that `make` makes.

    When descriptors are short, `make_room` is called, and a peer is refused with the answer that `refusal_of` gives to its
    first words.
    """

    def __init__(
        self,
        make: Callable[[], asyncio.BaseProtocol],
        make_room: Callable[[], object],
        refusal_of: Callable[[bytes], bytes],
    ) -> None:
        self._make = make
        self._make_room = make_room
        self._refusal_of = refusal_of
        self._loop = asyncio.get_running_loop()
        self._sockets: list[socket.socket] = []
        self._beginning: set[asyncio.Task[None]] = set()
        self._reserve: int | None = None
        self._refused = 0
        self._logged_at = -LOG_SECONDS
        self._closed = False

    async def listen(self, host: str, port: int) -> None:
        """Bind and accept. Raises OSError when the port is not free."""
        bound: list[socket.socket] = []
        try:
            for family, address in await self._resolved(host, port):
                listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
                bound.append(listening)
                listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:
                    listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                listening.setblocking(False)
                listening.bind(address)
                listening.listen(WAITING)
        except OSError:
            for listening in bound:
                listening.close()
            raise
        self._sockets += bound
        self._hold_back()
        for listening in bound:
            self._loop.add_reader(listening, self._accept, listening)

    async def _resolved(self, host: str, port: int) -> Iterable[tuple[int, Any]]:
        """Return family and address to bind. A number needs no lookup, which takes a thread."""
        with suppress(ValueError):
            return [(socket.AF_INET if isinstance(ip_address(host), IPv4Address) else socket.AF_INET6, (host, port))]
        found = await self._loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        return dict.fromkeys((family, address) for family, _, _, _, address in found)

    def close(self) -> None:
        self._closed = True
        for listening in self._sockets:
            self._loop.remove_reader(listening)
            listening.close()
        self._sockets.clear()
        self._let_go()

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(ACCEPTED_AT_A_TIME):
            try:
                accepted, _ = listening.accept()
            except OSError as problem:
                if problem.errno in PASSING:
                    return
                if problem.errno not in SHORTAGES:
                    raise
                self._refuse_one(listening, problem)
                return
            accepted.setblocking(False)
            task = self._loop.create_task(self._begin(accepted))
            self._beginning.add(task)
            task.add_done_callback(self._beginning.discard)

    async def _begin(self, accepted: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(self._make, accepted)
        except OSError:  # it is gone already
            accepted.close()

    def _refuse_one(self, listening: socket.socket, problem: OSError) -> None:
        """There is no descriptor for the next one that waits: it is hung up on by means of the one that was held back."""
        self._refused += 1
        now = time.monotonic()
        if now - self._logged_at >= LOG_SECONDS:
            self._logged_at = now
            _LOG.warning(
                "%d connections were refused: %s; raise the limit of this process (ulimit -n)",
                self._refused,
                problem.strerror,
            )
            self._refused = 0
        self._make_room()
        if self._reserve is None:
            self._loop.remove_reader(listening)
            self._loop.call_later(PAUSE_SECONDS, self._go_on, listening)
            return
        self._let_go()
        with suppress(OSError):
            refused, _ = listening.accept()
            with refused:
                refused.setblocking(False)
                refused.send(self._refusal_of(first_words(refused.fileno())))
        self._hold_back()

    def _go_on(self, listening: socket.socket) -> None:
        if not self._closed:
            self._hold_back()
            self._loop.add_reader(listening, self._accept, listening)

    def _hold_back(self) -> None:
        if self._reserve is None:
            with suppress(OSError):
                self._reserve = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)

    def _let_go(self) -> None:
        if self._reserve is not None:
            os.close(self._reserve)
            self._reserve = None
