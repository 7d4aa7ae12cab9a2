"""HTTP and WebSocket on connections that a member was given: uvicorn's protocols without uvicorn's server.

The member's port belongs to `backend.live.transport.listener`. The modules for HTTP are loaded when the first client comes,
beside the event loop, so that members without clients start fast and stay small; that client waits.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from starlette.types import ASGIApp
    from uvicorn.server import ServerState

MakeApplication = Callable[[], "ASGIApp"]
MakeProtocol = Callable[[], asyncio.Protocol]
FLUSH_SECONDS = 0.15
"""How long, at the end, the last events are sent to subscribers."""
KEEP_ALIVE_SECONDS = 75
"""How long a connection may be idle between two requests."""
LINGER_SECONDS = 10.0
"""How long, at least, a client may take to read the last answer before a closed connection is aborted."""
LONGEST_HEAD_BYTES = 64 * 1024
LONGEST_MESSAGE_BYTES = 64 * 1024
"""From a client of the event stream, which should send nothing."""
_LOG = logging.getLogger(__name__)


class HttpServer:
    """Serves the application that `make_application` returns. Belongs to one event loop; the listener calls `hand_over`."""

    def __init__(self, make_application: MakeApplication) -> None:
        self._make_application = make_application
        self._loop = asyncio.get_running_loop()
        self._make: MakeProtocol | None = None
        self._loading: asyncio.Task[None] | None = None
        self._pending: set[PendingClient] = set()
        self._state: ServerState | None = None
        self._closed = False
        self._sweeping: asyncio.TimerHandle | None = None
        self._closing: set[Any] = set()

    def hand_over(self, transport: asyncio.Transport, said: bytes) -> asyncio.Protocol:
        """Return the protocol for an HTTP client; see `backend.live.transport.listener.HttpHandover`."""
        if self._sweeping is None:
            self._sweeping = self._loop.call_later(LINGER_SECONDS, self._sweep)
        if self._make is not None:
            return self._make()
        self._loading = self._loading or self._loop.create_task(self._load())
        pending = PendingClient()
        self._pending.add(pending)
        return pending

    async def load(self) -> None:
        """Return when clients no longer wait for loading."""
        if self._make is None and not self._closed:
            self._loading = self._loading or self._loop.create_task(self._load())
            await self._loading

    async def close(self, within_seconds: float) -> None:
        """Send the last events and finish the answers under way, as long as there is time; then close all connections."""
        self._closed = True
        if self._loading is not None:
            self._loading.cancel()
        for pending in tuple(self._pending):
            pending.transport.abort()
        if self._protocols:
            await asyncio.sleep(min(FLUSH_SECONDS, within_seconds))
        for protocol in self._protocols:
            protocol.shutdown()
        if self._state is not None and self._state.tasks:
            _, late = await asyncio.wait(set(self._state.tasks), timeout=within_seconds)
            logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # it takes what follows for failures
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        for protocol in self._protocols:  # they have not read what they were sent
            protocol.transport.abort()
        if self._sweeping is not None:
            self._sweeping.cancel()

    @property
    def _protocols(self) -> tuple[Any, ...]:
        """The protocols in use, all of uvicorn's."""
        return tuple(self._state.connections) if self._state is not None else ()

    def _sweep(self) -> None:
        """Abort connections that were closed long ago and whose client does not read the rest: asyncio would wait forever."""
        closing = {protocol for protocol in self._protocols if protocol.transport.is_closing()}
        for protocol in closing & self._closing:
            protocol.transport.abort()
        self._closing = closing
        more = self._protocols and not self._closed
        self._sweeping = self._loop.call_later(LINGER_SECONDS, self._sweep) if more else None

    async def _load(self) -> None:
        try:
            make, self._state = await asyncio.to_thread(_loaded, self._make_application, self._loop)
        except Exception:  # noqa: BLE001 - logged; the member runs on without, and the next client tries again
            _LOG.exception("the HTTP face cannot be served")
            for pending in tuple(self._pending):
                pending.transport.abort()
            self._pending.clear()
            self._loading = None
            return
        self._make = make
        for pending in tuple(self._pending):
            pending.switch_to(make)
        self._pending.clear()


class PendingClient(asyncio.Protocol):
    """A client that connected before HTTP was loaded: what it has sent is kept, more is not read."""

    gives_way = True
    """It may be closed in favour of others when too many come before HTTP is loaded."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport
        self._said = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.pause_reading()

    def data_received(self, data: bytes) -> None:
        self._said += data

    def switch_to(self, make: MakeProtocol) -> None:
        if not self.transport.is_closing():
            protocol = make()
            self.transport.set_protocol(protocol)
            protocol.connection_made(self.transport)
            self.transport.resume_reading()
            protocol.data_received(self._said)


def _loaded(make_application: MakeApplication, loop: asyncio.AbstractEventLoop) -> tuple[MakeProtocol, ServerState]:
    """Return what makes protocols, and where uvicorn keeps those in use and the requests under way.

    Takes a good part of a second.
    """
    import uvicorn

    from quarterdeck.backend.service.http.http_protocol import BoundedProtocol, BoundedWebSocketProtocol, PacedState

    config = uvicorn.Config(
        make_application(),
        http=BoundedProtocol,
        ws=BoundedWebSocketProtocol,
        ws_max_size=LONGEST_MESSAGE_BYTES,
        lifespan="off",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        h11_max_incomplete_event_size=LONGEST_HEAD_BYTES,
    )
    config.load()
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)  # bad requests of clients are not logged
    state = PacedState(loop)
    return lambda: BoundedProtocol(config, state, {}, loop), state
