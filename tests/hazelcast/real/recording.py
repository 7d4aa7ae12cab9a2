"""What real members sent over the connections of a watch, kept so that tests need no Java."""

from __future__ import annotations

import gzip
import re
from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.hazelcast.wire.codec.answer_codec import decode_message
from quarterdeck.backend.hazelcast.wire.codec.frames import IS_EVENT, Frame, FrameLimits, MessageReader, encode_frames
from quarterdeck.backend.hazelcast.wire.connection import MemberWatch
from quarterdeck.backend.hazelcast.wire.follower import FollowedConnection
from quarterdeck.backend.hazelcast.wire.messages import ClusterMetadata, SystemProperties

FOLDERS = re.compile(rb"(>)/[^<]*/")

FOLDER = Path(__file__).parent.parent / "wire" / "recordings"
RECORDED_VERSIONS = ("4.2.8", "5.3.8", "5.5.0")


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

    def link_received(self, connection: FollowedConnection, data: bytes) -> None:
        """Keep it, and go on."""
        self.pieces.append(Piece(self._clock_us(), connection.endpoint, connection.number, b64encode(data).decode()))
        super().link_received(connection, data)


def write_recording(version: str, pieces: Sequence[Piece]) -> None:
    """Keep a recording among the tests: message by message, each in the bytes that came."""
    FOLDER.mkdir(exist_ok=True)
    lines = b"".join(msgspec.json.encode(piece) + b"\n" for piece in worth_keeping(pieces))
    (FOLDER / f"{version}.jsonl.gz").write_bytes(gzip.compress(lines, 9, mtime=0))


def worth_keeping(pieces: Sequence[Piece]) -> Iterator[Piece]:
    """All that is told unasked; of answers the first over each connection, and another state of the cluster.

    The properties of the process name folders of the machine, so they stay out; in the configuration others stand for them.
    """
    readers: dict[FollowedConnection, MessageReader] = {}
    kept: dict[FollowedConnection, set[object]] = {}
    for piece in pieces:
        connection = FollowedConnection(piece.endpoint, piece.number)
        reader = readers.setdefault(connection, MessageReader(FrameLimits()))
        for frames in reader.feed(piece.data):
            message = decode_message(frames)[1]
            answer = message.state if isinstance(message, ClusterMetadata) else type(message)
            known = kept.setdefault(connection, set())
            repeated = answer in known and not frames[0].flags & IS_EVENT
            if not repeated and not isinstance(message, SystemProperties):
                known.add(answer)
                data = encode_frames(
                    [Frame(frame.flags, FOLDERS.sub(rb"\1/opt/hazelcast/", frame.payload)) for frame in frames]
                )
                yield Piece(piece.at_us, piece.endpoint, piece.number, b64encode(data).decode())


def read_recording(version: str) -> list[Piece]:
    """What was kept of one version."""
    lines = gzip.decompress((FOLDER / f"{version}.jsonl.gz").read_bytes()).splitlines()
    return [msgspec.json.decode(line, type=Piece) for line in lines]
