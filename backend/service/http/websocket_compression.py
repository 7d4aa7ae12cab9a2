"""Compression of WebSocket messages that go to many clients: each text is compressed once, not once for each client.

permessage-deflate (RFC 7692) without context takeover: what a message is compressed to then depends on nothing but the
message, so all clients can be sent the same bytes. That compresses small messages badly; these are sent as they are.
"""

from __future__ import annotations

import zlib
from functools import lru_cache
from typing import Any

from websockets.extensions.permessage_deflate import PerMessageDeflate, ServerPerMessageDeflateFactory
from websockets.frames import Frame, Opcode

SMALLEST_BYTES = 256
"""What is shorter is not worth compressing."""

TEXTS_KEPT = 16
"""Compressed texts that are remembered: clients of one stream are sent the same one within moments."""

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
    """`data` as the payload of one compressed message."""
    encoder = zlib.compressobj(LEVEL, wbits=-window_bits)
    return (encoder.compress(data) + encoder.flush(zlib.Z_SYNC_FLUSH)).removesuffix(END_OF_FLUSH)
