"""As much of SPDY/3.1 as a port-forward of `kubectl` speaks: streams that begin, carry data both ways, and end."""

from __future__ import annotations

import socket
import threading
import zlib
from collections.abc import Callable, Iterator

WORDS = (
    "options head post put delete trace accept accept-charset accept-encoding accept-language accept-ranges age allow "
    "authorization cache-control connection content-base content-encoding content-language content-length "
    "content-location content-md5 content-range content-type date etag expect expires from host if-match "
    "if-modified-since if-none-match if-range if-unmodified-since last-modified location max-forwards pragma "
    "proxy-authenticate proxy-authorization range referer retry-after server te trailer transfer-encoding upgrade "
    "user-agent vary via warning www-authenticate method get status 200_OK version HTTP/1.1 url public set-cookie "
    "keep-alive origin "
)
REST = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505203 Non-Authoritative Information"
    "204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden404 Not Found500 Internal Server Error"
    "501 Not Implemented503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, "
    "Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,"
    "text/javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0."
)
DICTIONARY = (
    b"".join(
        len(word).to_bytes(4, "big") + word.encode() for word in (word.replace("_", " ") for word in WORDS.split())
    )
    + REST.encode()
)
"""What both ends know before the first header."""
SYN_STREAM, SYN_REPLY, PING = 1, 2, 6
CONTROL, VERSION, FIN = 0x8000, 3, 1


class SpdyServer:
    """The server's end of a connection. `opened` is called for each stream, in the thread that serves."""

    def __init__(self, connection: socket.socket, opened: Callable[[int, dict[str, str]], None]) -> None:
        self._connection, self._opened = connection, opened
        self._sending = threading.Lock()
        self._inflate = zlib.decompressobj(zdict=DICTIONARY)
        self._deflate = zlib.compressobj(zdict=DICTIONARY)
        self.received: dict[int, Callable[[bytes], None]] = {}
        """By stream, what takes its data; nothing means its end."""

    def serve(self) -> None:
        """Serve until the client is gone."""
        with self._connection.makefile("rb") as source:
            while len(head := source.read(8)) == 8:
                body = source.read(int.from_bytes(head[5:8], "big"))
                if not head[0] & 0x80:
                    self._data(int.from_bytes(head[:4], "big"), body, bool(head[4] & FIN))
                elif (kind := int.from_bytes(head[2:4], "big")) == SYN_STREAM:
                    self._begin(body, bool(head[4] & FIN))
                elif kind == PING:
                    self._control(PING, body)

    def send(self, stream: int, data: bytes, *, last: bool = False) -> None:
        """Send data of a stream."""
        self._write(stream.to_bytes(4, "big") + bytes([FIN if last else 0]) + len(data).to_bytes(3, "big") + data)

    def _begin(self, body: bytes, last: bool) -> None:
        stream = int.from_bytes(body[:4], "big")
        headers = dict(_pairs(self._inflate.decompress(body[10:])))
        with self._sending:
            packed = self._deflate.compress(bytes(4)) + self._deflate.flush(zlib.Z_SYNC_FLUSH)
        self._control(SYN_REPLY, body[:4] + packed)
        self._opened(stream, headers)
        if last:
            self._data(stream, b"", True)

    def _data(self, stream: int, data: bytes, last: bool) -> None:
        take = self.received.get(stream)
        if take is not None:
            if data:
                take(data)
            if last:
                take(b"")

    def _control(self, kind: int, body: bytes) -> None:
        head = (CONTROL | VERSION).to_bytes(2, "big") + kind.to_bytes(2, "big")
        self._write(head + len(body).to_bytes(4, "big") + body)

    def _write(self, frame: bytes) -> None:
        with self._sending:
            self._connection.sendall(frame)


def _pairs(block: bytes) -> Iterator[tuple[str, str]]:
    texts, at = list[str](), 4
    while at < len(block):
        length = int.from_bytes(block[at : at + 4], "big")
        texts.append(block[at + 4 : at + 4 + length].decode())
        at += 4 + length
    yield from zip(texts[::2], texts[1::2], strict=True)
