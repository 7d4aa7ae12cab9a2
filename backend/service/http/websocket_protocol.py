"""WebSockets as uvicorn speaks them, for clients that may be wrong or slow, with compression that many clients share.

A handshake ends soon, and refusals have one form. Each text is compressed once, not once for each client: permessage-deflate
(RFC 7692) without context takeover makes the compressed bytes depend on the message alone. That compresses small messages badly;
these are sent as they are.
"""

from __future__ import annotations

import asyncio
import logging
import zlib
from contextlib import suppress
from functools import lru_cache
from http import HTTPStatus
from typing import Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.exceptions import InvalidState
from websockets.extensions.permessage_deflate import PerMessageDeflate, ServerPerMessageDeflateFactory
from websockets.frames import CloseCode, Frame, Opcode
from websockets.http11 import Response
from websockets.server import ServerProtocol

from quarterdeck.backend.service.http.responses import JSON_TYPE, failure_body

SMALLEST_BYTES = 256
"""What is shorter is not worth compressing."""
TEXTS_KEPT = 16
"""Compressed texts that are kept: clients of one stream are sent the same one within moments."""
LEVEL = 3
"""Event batches shrink to a tenth or less; higher levels take twice the time for little."""
END_OF_FLUSH = b"\x00\x00\xff\xff"


class SharedDeflate(PerMessageDeflate):
    """Compresses with the bytes that another client was sent, if it was sent the same."""

    def encode(self, frame: Frame) -> Frame:
        if frame.opcode is not Opcode.TEXT or not frame.fin or len(frame.data) < SMALLEST_BYTES:
            return frame
        data = deflated(bytes(frame.data), self.local_max_window_bits)
        return Frame(frame.opcode, data, frame.fin, True, frame.rsv2, frame.rsv3)


class SharedDeflateFactory(ServerPerMessageDeflateFactory):
    """Agrees with a client on compression without context takeover."""

    def __init__(self) -> None:
        super().__init__(server_no_context_takeover=True, client_no_context_takeover=True)

    def process_request_params(self, params: Any, accepted_extensions: Any) -> tuple[Any, PerMessageDeflate]:
        agreed, plain = super().process_request_params(params, accepted_extensions)
        return agreed, SharedDeflate(
            plain.remote_no_context_takeover,
            plain.local_no_context_takeover,
            plain.remote_max_window_bits,
            plain.local_max_window_bits,
        )


@lru_cache(maxsize=TEXTS_KEPT)
def deflated(data: bytes, window_bits: int) -> bytes:
    """Return `data` as the payload of one compressed message."""
    encoder = zlib.compressobj(LEVEL, wbits=-window_bits)
    return (encoder.compress(data) + encoder.flush(zlib.Z_SYNC_FLUSH)).removesuffix(END_OF_FLUSH)


HANDSHAKE_SECONDS = 30.0
"""From the request to upgrade to its answer."""
_SILENT = logging.getLogger("quarterdeck.websockets")
_SILENT.setLevel(logging.CRITICAL + 1)  # mistakes of clients are not logged


class BoundedWebSocketProtocol(WebSocketsSansIOProtocol):
    """The protocol for ``uvicorn.Config(ws=BoundedWebSocketProtocol)``."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.logger = _SILENT
        extensions = [SharedDeflateFactory()] if self.config.ws_per_message_deflate else []
        self.conn = _Server(extensions=extensions, max_size=self.config.ws_max_size, logger=_SILENT)
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
