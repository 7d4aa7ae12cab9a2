"""What real members sent over the connections of a watch, kept so that tests need no Java."""

from __future__ import annotations

import gzip
from base64 import b64decode, b64encode
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.hazelcast.wire.connection import MemberWatch
from quarterdeck.backend.hazelcast.wire.follower import Connection

FOLDER = Path(__file__).parent.parent / "wire" / "recordings"


class Piece(msgspec.Struct, frozen=True):
    """Bytes that came at one moment over one connection."""

    at_us: int
    endpoint: Address
    number: int
    base64: str

    @property
    def data(self) -> bytes:
        """The bytes."""
        return b64decode(self.base64)


class RecordedWatch(MemberWatch):
    """A watch that keeps every byte that it receives."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.pieces: list[Piece] = []

    def link_received(self, connection: Connection, data: bytes) -> None:
        """Keep it, and go on."""
        self.pieces.append(Piece(self._clock_us(), connection.endpoint, connection.number, b64encode(data).decode()))
        super().link_received(connection, data)


def write_recording(version: str, pieces: Sequence[Piece]) -> None:
    """Keep a recording among the tests."""
    FOLDER.mkdir(exist_ok=True)
    lines = b"".join(msgspec.json.encode(piece) + b"\n" for piece in pieces)
    (FOLDER / f"{version}.jsonl.gz").write_bytes(gzip.compress(lines, 9, mtime=0))


def read_recording(version: str) -> list[Piece]:
    """What was kept of one version."""
    lines = gzip.decompress((FOLDER / f"{version}.jsonl.gz").read_bytes()).splitlines()
    return [msgspec.json.decode(line, type=Piece) for line in lines]
