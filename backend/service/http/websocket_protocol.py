"""WebSockets as uvicorn speaks them, for clients that may be wrong or slow: a handshake ends soon, refusals have one form."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from http import HTTPStatus
from typing import Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.exceptions import InvalidState
from websockets.frames import CloseCode
from websockets.http11 import Response
from websockets.server import ServerProtocol

from quarterdeck.backend.service.http.responses import JSON_TYPE, failure_body
from quarterdeck.backend.service.http.websocket_compression import SharedDeflateFactory

HANDSHAKE_SECONDS = 30.0
"""From the request to upgrade to its answer."""

_SILENT = logging.getLogger("quarterdeck.websockets")
_SILENT.setLevel(logging.CRITICAL + 1)  # what others do wrong is no reason to write a line


class BoundedWebSocketProtocol(WebSocketsSansIOProtocol):
    """``uvicorn.Config(ws=BoundedWebSocketProtocol)``."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.logger = _SILENT
        extensions = [SharedDeflateFactory()] if self.config.ws_per_message_deflate else []
        self.conn = _Server(extensions=extensions, max_size=self.config.ws_max_size, logger=_SILENT)
        self._late: asyncio.TimerHandle | None = None

    @property
    def gives_way(self) -> bool:
        """Whether nobody would miss this connection: it is no stream yet."""
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
        """As uvicorn's, which cannot end a handshake that was not begun, nor a connection whose closing has begun already."""
        self.stop_keepalive()
        if self.handshake_complete and not self.close_sent:
            with suppress(InvalidState):
                super().shutdown()
        self.transport.close()

    def _handshake_is_late(self) -> None:
        if not self.handshake_complete:
            self.transport.abort()

    def _refuse_unread(self) -> None:
        """websockets gives up a request that it cannot read, with an answer or without; uvicorn sends neither."""
        said = b"".join(self.conn.data_to_send())
        if not said:
            response = self.conn.reject(HTTPStatus.BAD_REQUEST, "this is no request to open a WebSocket")
            said = response.serialize()
        self.handshake_complete = self.close_sent = True
        self.transport.write(said)
        self.transport.close()

    def send_receive_event_to_app(self) -> None:
        """As uvicorn's, which takes text that is not UTF-8 for an error of its own."""
        if self.curr_msg_data_type == "text" and not self.close_sent and not _is_text(self.frames):
            self.frames = []
            self.conn.fail(CloseCode.INVALID_DATA, "text has to be UTF-8")
            self.handle_parser_exception()
        else:
            super().send_receive_event_to_app()


class _Server(ServerProtocol):
    """Refuses in the form that all refusals have."""

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
