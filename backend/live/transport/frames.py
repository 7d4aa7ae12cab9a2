"""Frames: how messages stand in a TCP stream. Four bytes of length, big-endian, then that many bytes of MessagePack.

A frame is never longer than a limit that both sides know, so no one on the port can make a member hoard memory.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import TypeVar

import msgspec

MAX_FRAME_BYTES = 32 * 1024 * 1024
"""The longest frame among members: room for the longest entry of a map together with the value that it replaces. A table of
50,021 partitions with 7 replicas each takes less than a megabyte."""

MAX_HANDSHAKE_BYTES = 4 * 1024
"""The longest frame from a peer that has not yet said who it is."""

PREFIX_BYTES = 4

_PREFIX = struct.Struct(">I")
_ENCODER = msgspec.msgpack.Encoder()

T = TypeVar("T")


class BadFrame(Exception):
    """Bytes that are no frame of ours; the message names the mistake."""


class FrameTooLarge(BadFrame):
    """A frame that announces more bytes than the limit allows."""

    def __init__(self, length: int, limit: int) -> None:
        super().__init__(f"announced a frame of {length} bytes; the limit is {limit}")


def frame_of(content: msgspec.Struct, limit: int = MAX_FRAME_BYTES) -> bytes:
    """`content` as one frame. Raises `FrameTooLarge` when it would be longer than `limit`."""
    payload = _ENCODER.encode(content)
    if len(payload) > limit:
        raise FrameTooLarge(len(payload), limit)
    return _PREFIX.pack(len(payload)) + payload


def content_of(decoder: msgspec.msgpack.Decoder[T], payload: memoryview) -> T:
    """Return the message in `payload`.

    Raises:
        BadFrame: It is not what `decoder` expects.
    """
    try:
        return decoder.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise BadFrame(f"sent a frame that cannot be read: {problem}") from problem


class FrameParser:
    """Cuts a stream into frames, however the network has chopped it up.

    `limit` may be changed between frames: it is small until the other side has introduced itself.
    """

    __slots__ = ("_rest", "_wanted", "completed", "limit")

    def __init__(self, limit: int = MAX_FRAME_BYTES) -> None:
        self.limit = limit
        self.completed = 0
        """How many frames were completed so far."""
        self._rest = bytearray()
        self._wanted = PREFIX_BYTES

    @property
    def pending_bytes(self) -> int:
        return len(self._rest)

    def feed(self, data: bytes | bytearray | memoryview) -> Iterator[memoryview]:
        """Yield the payloads completed by `data`, each valid until the next call.

        Bytes are copied only when a frame came in pieces, and then once, however many pieces there were.

        Raises:
            FrameTooLarge: A frame is longer than allowed.
        """
        if self._rest:
            self._rest += data
            if len(self._rest) < self._wanted:
                return
            data, self._rest = self._rest, bytearray()
        view = memoryview(data)
        place, end = 0, len(data)
        self._wanted = PREFIX_BYTES
        while end - place >= PREFIX_BYTES:
            length = _PREFIX.unpack_from(data, place)[0]
            if length > self.limit:
                raise FrameTooLarge(length, self.limit)
            stop = place + PREFIX_BYTES + length
            if stop > end:
                self._wanted = PREFIX_BYTES + length
                break
            self.completed += 1
            yield view[place + PREFIX_BYTES : stop]
            place = stop
        if place < end:
            self._rest += view[place:]
