"""Frames, and the messages that they make: how bytes are cut, and how many of them are accepted from a peer.

A frame is its length as an int32 (these six bytes of head included), flags as a uint16, and its payload. A message is a row of
frames, the last of which is final. A message that is cut into fragments has the fragments' number before each of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from struct import Struct as Layout

from msgspec import Struct

BEGIN_FRAGMENT = 1 << 15
END_FRAGMENT = 1 << 14
UNFRAGMENTED = BEGIN_FRAGMENT | END_FRAGMENT
IS_FINAL = 1 << 13
BEGIN_STRUCTURE = 1 << 12
END_STRUCTURE = 1 << 11
IS_NULL = 1 << 10
IS_EVENT = 1 << 9
PREAMBLE = b"CP2"
"""What a client sends first: the second version of the client protocol."""
HEAD = Layout("<iH")
FRAGMENT_ID = Layout("<q")


class BadBytes(ValueError):
    """Bytes that are no message of a member, or more than is accepted from one. The connection is closed."""


class Frame(Struct, frozen=True):
    """One frame."""

    flags: int
    payload: bytes = b""


Frames = tuple[Frame, ...]
"""The frames of one whole message."""


class FrameLimits(Struct, frozen=True):
    """How much is accepted from one peer."""

    message_bytes: int = 4 * 1024 * 1024
    """With the heads of the frames. Unfinished fragments count together."""
    message_frames: int = 100_000


STRANGER = FrameLimits(message_bytes=64 * 1024, message_frames=1_000)
"""For a peer that has not yet identified itself as a member."""


class MessageReader:
    """Cuts a stream of bytes into messages and joins fragments. It holds no more than `limits` allow."""

    def __init__(self, limits: FrameLimits = STRANGER) -> None:
        self.limits = limits
        self._bytes = bytearray()
        self._frames: list[Frame] = []
        self._frames_bytes = 0
        self._fragments: dict[int, list[Frame]] = {}
        self._fragments_bytes = 0

    @property
    def unfinished(self) -> bool:
        return bool(self._bytes or self._frames or self._fragments)

    def feed(self, data: bytes) -> list[Frames]:
        """Return the messages that `data` completes, in order. After a `BadBytes` nothing more can be read."""
        self._bytes += data
        messages: list[Frames] = []
        at = 0
        while len(self._bytes) - at >= HEAD.size:
            length, flags = HEAD.unpack_from(self._bytes, at)
            self._check_length(length)
            if len(self._bytes) - at < length:
                break
            self._frames.append(Frame(flags, bytes(self._bytes[at + HEAD.size : at + length])))
            self._frames_bytes += length
            at += length
            if flags & IS_FINAL:
                messages += self._finished()
        del self._bytes[:at]
        return messages

    def _check_length(self, length: int) -> None:
        if length < HEAD.size:
            raise BadBytes(f"a frame says that it is {length} bytes long, less than its own head")
        if self._frames_bytes + self._fragments_bytes + length > self.limits.message_bytes:
            most = f"a message of more than {self.limits.message_bytes} is not taken"
            raise BadBytes(f"a frame says that it is {length} bytes long; {most}")
        if len(self._frames) >= self.limits.message_frames:
            raise BadBytes(f"a message of more than {self.limits.message_frames} frames is not taken")

    def _finished(self) -> list[Frames]:
        """Return the message whose last frame has arrived, unless it is a fragment and others are missing."""
        frames, size = self._frames, self._frames_bytes
        self._frames, self._frames_bytes = [], 0
        first = frames[0]
        if first.flags & UNFRAGMENTED == UNFRAGMENTED:
            return [tuple(frames)]
        return self._fragment(first, frames[1:], size)

    def _fragment(self, first: Frame, frames: list[Frame], size: int) -> list[Frames]:
        if len(first.payload) < FRAGMENT_ID.size or not frames:
            raise BadBytes("a message begins with a frame that is neither its first nor that of a fragment")
        (number,) = FRAGMENT_ID.unpack_from(first.payload)
        if first.flags & BEGIN_FRAGMENT:
            if number in self._fragments:
                raise BadBytes("a fragmented message begins twice")
            self._fragments[number] = []
        elif number not in self._fragments:
            raise BadBytes("a fragment belongs to no message that has begun")
        whole = self._fragments[number]
        last = frames[-1]
        whole += (*frames[:-1], Frame(last.flags & ~IS_FINAL, last.payload))
        self._fragments_bytes += size
        if sum(map(len, self._fragments.values())) > self.limits.message_frames:
            raise BadBytes(f"fragments of more than {self.limits.message_frames} frames are not taken")
        if not first.flags & END_FRAGMENT:
            return []
        del self._fragments[number]
        self._fragments_bytes = sum(size_of(rest) for rest in self._fragments.values())
        return [tuple(whole)]


def size_of(frames: Iterable[Frame]) -> int:
    """Return how many bytes frames take."""
    return sum(HEAD.size + len(frame.payload) for frame in frames)


def encode_frames(frames: Sequence[Frame]) -> bytes:
    """Encode one whole message: its first frame is marked as unfragmented, its last one as final."""
    first, *rest = frames
    return frames_bytes([Frame(first.flags | UNFRAGMENTED, first.payload), *rest])


def frames_bytes(frames: Sequence[Frame]) -> bytes:
    """Return the bytes of frames, the last of which is final."""
    marks = [*(0 for _ in frames[1:]), IS_FINAL]
    return b"".join(
        HEAD.pack(HEAD.size + len(frame.payload), frame.flags | mark) + frame.payload
        for frame, mark in zip(frames, marks, strict=True)
    )
