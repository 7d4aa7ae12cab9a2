"""A stand-in for the HTTP face: answers each request with what was asked for, and keeps the connection."""

from __future__ import annotations

import asyncio

from quarterdeck.backend.core.address import Address


class Echo(asyncio.Protocol):
    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.said = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.said += data
        while b"\r\n\r\n" in self.said and self.transport is not None:
            head, _, self.said = self.said.partition(b"\r\n\r\n")
            line = head.partition(b"\r\n")[0]
            self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(line), line))


def echo(transport: asyncio.Transport, said: bytes) -> Echo:
    return Echo()


async def ask(address: Address, said: bytes, **options: object) -> bytes:
    """What the one at `address` says to `said`, until it hangs up or has said as much as it does in one go."""
    host, port = address.split(":")
    reader, writer = await asyncio.open_connection(host, int(port), **options)  # type: ignore[arg-type]
    writer.write(said)
    try:
        async with asyncio.timeout(5):
            answer = await reader.read(4096)
    except ConnectionError:
        answer = b""
    writer.close()
    return answer
