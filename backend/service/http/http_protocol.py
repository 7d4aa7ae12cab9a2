"""HTTP/1.1 and WebSockets as uvicorn speaks them, for clients that may be wrong, or slow within limits.

The listener (`backend.live.transport.listener`) handles what comes before the first request is complete, and
`backend.service.http.request_guard` the body of a request. Here are limited: the head of a later request on the same connection,
the time until a client has its answer, bytes that are no HTTP, and the handshake of a WebSocket. Refusals have one form.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from email.utils import formatdate
from http import HTTPStatus
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.server import ServerState
from websockets.exceptions import InvalidState
from websockets.frames import CloseCode
from websockets.http11 import Response
from websockets.server import ServerProtocol

from quarterdeck.backend.service.http.responses import JSON_TYPE, failure_body

HEAD_SECONDS = 5.0
"""From the first byte of a request to the end of its head."""
ANSWER_SECONDS = 120.0
"""From the end of the head until the client has received all of the answer: longer than any call may take."""
PIPELINED_APART_SECONDS = 0.004
"""Between two requests that were sent before the answer to the one before, of all clients together."""
REFUSED_UPGRADE = "refused_upgrade"
"""The key in a request's state for why it is no WebSocket although it asks for one."""


class PacedState(ServerState):
    """The state that uvicorn's protocols share, and a queue of pipelined requests: other requests do not wait behind it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._loop = loop
        self._waiting: deque[Callable[[], None]] = deque()

    def wait(self, go_on: Callable[[], None]) -> None:
        """Call `go_on` when it is its turn."""
        self._waiting.append(go_on)
        if len(self._waiting) == 1:
            self._loop.call_soon(self._next, self._loop.time())

    def _next(self, due: float) -> None:
        late_seconds = self._loop.time() - due
        self._waiting[0]()
        due = self._loop.time() + max(PIPELINED_APART_SECONDS, late_seconds)  # the busier the loop, the rarer
        self._loop.call_at(due, self._after, due)

    def _after(self, due: float) -> None:
        self._waiting.popleft()
        if self._waiting:
            self._next(due)


class BoundedProtocol(H11Protocol):
    """Closes connections whose client does not finish the head of a request, or does not take an answer, in time.

    It dates its answers, as uvicorn's server would.
    """

    server_state: PacedState
    _answered = False
    _held = False
    """A pipelined request waits for its turn."""
    _late: asyncio.TimerHandle | None = None
    _late_for: object = None
    """What the timer is for: the head of a request, or the request itself."""

    @property
    def gives_way(self) -> bool:
        """Whether this connection may be closed in favour of others: no complete request waits for its answer."""
        return self.cycle is None or self.cycle.response_complete or self.cycle.more_body

    def data_received(self, data: bytes) -> None:
        self.server_state.default_headers = [(b"date", formatdate(usegmt=True).encode())]
        super().data_received(data)
        self._set_deadline()

    def on_response_complete(self) -> None:
        self._answered = True
        super().on_response_complete()
        self._answered = False
        self._set_deadline()

    def handle_events(self) -> None:
        """Handle what has come; a request that came before the last answer waits for its turn."""
        if self._answered and self.conn.trailing_data[0]:
            self._held = True
            self.server_state.wait(self._go_on)
        elif not self._held:
            super().handle_events()

    def _go_on(self) -> None:
        self._held = False
        if not self.transport.is_closing():
            self.handle_events()
            self._set_deadline()

    def connection_lost(self, problem: Exception | None) -> None:
        self._forget_deadline()
        super().connection_lost(problem)

    def handle_websocket_upgrade(self, event: h11.Request) -> None:
        """Stop the timer: the deadlines are those of the WebSocket now."""
        self._forget_deadline()
        super().handle_websocket_upgrade(event)

    def shutdown(self) -> None:
        """Shut down as uvicorn does, but without waiting for requests whose body may never come."""
        if self.gives_way:
            self._hang_up()
        else:
            self.cycle.keep_alive = False

    def _should_upgrade(self) -> bool:
        """Return whether this request becomes a WebSocket. One with a body never does: its body would be read as frames."""
        if self._get_upgrade() != b"websocket":
            return False
        if any(
            name == b"transfer-encoding" or (name == b"content-length" and value != b"0")
            for name, value in self.headers
        ):
            self.scope["state"][REFUSED_UPGRADE] = "a request to open a WebSocket has no body"
            return False
        return self.scope["method"] == "GET" and self.scope["http_version"] == "1.1"

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no HTTP, in the form of all refusals. If an answer has begun already, only close the connection."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            body = failure_body("this is no HTTP request", "send HTTP/1.1 with one Host header")
            lines = [b"HTTP/1.1 400 Bad Request", b"content-type: " + JSON_TYPE.encode(), b"connection: close"]
            lines += [name + b": " + value for name, value in self.server_state.default_headers]
            lines += [b"content-length: %d" % len(body), b"", b""]
            for_head = self.conn.our_state is h11.SEND_RESPONSE and self.scope["method"] == "HEAD"
            self.transport.write(b"\r\n".join(lines) + (b"" if for_head else body))
        self._hang_up()

    def _hang_up(self) -> None:
        if self.cycle is not None:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self.transport.close()

    def _set_deadline(self) -> None:
        """Start the timer for what the client is doing now; a timer for the same thing keeps running."""
        what: object
        if self.cycle is not None and not self.cycle.response_complete:
            what, seconds = self.cycle, ANSWER_SECONDS
        elif not self._held and self.conn.their_state is h11.IDLE and self.conn.trailing_data[0]:
            what, seconds = h11.IDLE, HEAD_SECONDS
        else:
            self._forget_deadline()
            return
        if what is not self._late_for:
            self._forget_deadline()
            self._late, self._late_for = self.loop.call_later(seconds, self.transport.abort), what

    def _forget_deadline(self) -> None:
        if self._late is not None:
            self._late.cancel()
        self._late = self._late_for = None


HANDSHAKE_SECONDS = 30.0
"""From the request to upgrade to its answer."""
_SILENT = logging.getLogger("quarterdeck.websockets")
_SILENT.setLevel(logging.CRITICAL + 1)  # mistakes of clients are not logged


class BoundedWebSocketProtocol(WebSocketsSansIOProtocol):
    """The protocol for ``uvicorn.Config(ws=BoundedWebSocketProtocol)``."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.logger = _SILENT
        self.conn = _Server(max_size=self.config.ws_max_size, logger=_SILENT)
        self._late: asyncio.TimerHandle | None = None

    @property
    def gives_way(self) -> bool:
        """Whether this connection may be closed in favour of others: it is no stream yet."""
        return not self.handshake_complete

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._late = self.loop.call_later(HANDSHAKE_SECONDS, self._handshake_is_late)

    def connection_lost(self, problem: Exception | None) -> None:
        if self._late is not None:
            self._late.cancel()
        super().connection_lost(problem)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.handshake_exc is not None and not self.handshake_initiated:
            self._refuse_unread()

    def shutdown(self) -> None:
        """Shut down as uvicorn does, also in a handshake that was not begun and while the connection is closing already."""
        self.stop_keepalive()
        if self.handshake_complete and not self.close_sent:
            with suppress(InvalidState):
                super().shutdown()
        self.transport.close()

    def _handshake_is_late(self) -> None:
        if not self.handshake_complete:
            self.transport.abort()

    def _refuse_unread(self) -> None:
        """Answer a request that websockets cannot read and gives up, with an answer or without; uvicorn sends neither."""
        said = b"".join(self.conn.data_to_send())
        if not said:
            response = self.conn.reject(HTTPStatus.BAD_REQUEST, "this is no request to open a WebSocket")
            said = response.serialize()
        self.handshake_complete = self.close_sent = True
        self.transport.write(said)
        self.transport.close()

    def send_receive_event_to_app(self) -> None:
        """Refuse text that is not UTF-8, which uvicorn takes for an error of its own."""
        if self.curr_msg_data_type == "text" and not self.close_sent and not _is_text(self.frames):
            self.frames = []
            self.conn.fail(CloseCode.INVALID_DATA, "text has to be UTF-8")
            self.handle_parser_exception()
        else:
            super().send_receive_event_to_app()


class _Server(ServerProtocol):
    def reject(self, status: HTTPStatus | int, text: str) -> Response:
        response = super().reject(HTTPStatus(status), text)
        problem = text.strip().partition("\n")[0] or "this WebSocket is not opened"
        body = failure_body(problem, "see docs/reference/http-api.md for the stream of events")
        for name, value in (("Content-Type", JSON_TYPE), ("Content-Length", str(len(body)))):
            del response.headers[name]
            response.headers[name] = value
        return Response(response.status_code, response.reason_phrase, response.headers, body)


def _is_text(frames: list[bytes]) -> bool:
    try:
        b"".join(frames).decode()
    except UnicodeDecodeError:
        return False
    return True
