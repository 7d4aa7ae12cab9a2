"""Fields of messages: those at fixed places in the first frame of a message or structure, and those that are frames of their own.

Whatever a later version adds is skipped: bytes after the known fixed fields, and frames before the end of a structure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from struct import Struct as Layout
from typing import TypeVar
from uuid import UUID

from quarterdeck.backend.core.address import Address, BadAddress, make_address, parse_address
from quarterdeck.backend.hazelcast.wire.codec.frames import BEGIN_STRUCTURE, END_STRUCTURE, IS_NULL, BadBytes, Frame

T = TypeVar("T")
BYTE = Layout("<b")
BOOL = Layout("<?")
INT = Layout("<i")
LONG = Layout("<q")
UUID_LAYOUT = Layout("<?QQ")
BEGIN = Frame(BEGIN_STRUCTURE)
END = Frame(END_STRUCTURE)
NULL = Frame(IS_NULL)
MOST_NESTED = 32
"""How deep skipped structures may be nested."""


class FixedReader:
    """Reads the fields of one frame's payload in order."""

    def __init__(self, payload: bytes, at: int = 0) -> None:
        self._payload = payload
        self._at = at

    def _read(self, layout: Layout) -> tuple[int, ...]:
        start, self._at = self._at, self._at + layout.size
        if self._at > len(self._payload):
            raise BadBytes(f"a frame of {len(self._payload)} bytes ends before byte {self._at}")
        return layout.unpack_from(self._payload, start)

    def byte(self) -> int:
        return self._read(BYTE)[0]

    def boolean(self) -> bool:
        return bool(self._read(BOOL)[0])

    def int32(self) -> int:
        return self._read(INT)[0]

    def int64(self) -> int:
        return self._read(LONG)[0]

    def uuid(self) -> str | None:
        """Read a mark whether there is a uuid, and its sixteen bytes, in two halves."""
        is_null, most, least = self._read(UUID_LAYOUT)
        return None if is_null else uuid_text(most, least)

    def known_uuid(self) -> str:
        if (found := self.uuid()) is None:
            raise BadBytes("a uuid is missing")
        return found


class FrameReader:
    """Reads the frames of one message in order."""

    def __init__(self, frames: Sequence[Frame]) -> None:
        self._frames = frames
        self._at = 0

    @property
    def at_end(self) -> bool:
        """Whether the message, or the structure that is being read, has no more frames."""
        return self._at >= len(self._frames) or bool(self._frames[self._at].flags & END_STRUCTURE)

    def next(self) -> Frame:
        if self._at >= len(self._frames):
            raise BadBytes("a message ends in the middle")
        self._at += 1
        return self._frames[self._at - 1]

    def next_is_null(self) -> bool:
        """Return whether the next field is null; if so, pass it."""
        if self._at < len(self._frames) and self._frames[self._at].flags & IS_NULL:
            self._at += 1
            return True
        return False

    def fixed(self) -> FixedReader:
        return FixedReader(self.next().payload)

    def text(self) -> str:
        """Read a string. Bytes that are not UTF-8 are replaced by marks."""
        frame = self.next()
        if frame.flags & (BEGIN_STRUCTURE | END_STRUCTURE | IS_NULL):
            raise BadBytes("a structure stands where a string should")
        return frame.payload.decode(errors="replace")

    def optional_text(self) -> str | None:
        return None if self.next_is_null() else self.text()

    def structure(self, read: Callable[[FrameReader], T]) -> T:
        """Read a structure with `read`. What `read` leaves is skipped."""
        if not self.next().flags & BEGIN_STRUCTURE:
            raise BadBytes("a structure should begin here")
        made = read(self)
        self._skip_to_end()
        return made

    def many(self, read: Callable[[FrameReader], T]) -> list[T]:
        made: list[T] = []
        if not self.next().flags & BEGIN_STRUCTURE:
            raise BadBytes("a structure should begin here")
        while not self.at_end:
            made.append(read(self))
        self._skip_to_end()
        return made

    def texts(self) -> dict[str, str]:
        return dict(self.many(lambda reader: (reader.text(), reader.optional_text() or "")))

    def address(self) -> Address:
        port, host = self.structure(lambda reader: (reader.fixed().int32(), reader.text()))
        try:
            return parse_address(make_address(host, port))
        except BadAddress as error:
            raise BadBytes(f"an address is none: {error}") from error

    def _skip_to_end(self) -> None:
        depth = 1
        while depth:
            flags = self.next().flags
            if flags & BEGIN_STRUCTURE:
                depth += 1
            elif flags & END_STRUCTURE:
                depth -= 1
            if depth > MOST_NESTED:
                raise BadBytes(f"structures lie more than {MOST_NESTED} deep in each other")


def uuid_text(most: int, least: int) -> str:
    """Return a uuid as text, from its two halves."""
    return str(UUID(int=most << 64 | least))


def pack_uuid(uuid: str | None) -> bytes:
    """Return the bytes of a uuid among fixed fields."""
    if uuid is None:
        return UUID_LAYOUT.pack(True, 0, 0)
    number = UUID(uuid).int
    return UUID_LAYOUT.pack(False, number >> 64, number & 0xFFFF_FFFF_FFFF_FFFF)


def text_frame(text: str | None) -> Frame:
    """Return the frame of a string, or of None."""
    return NULL if text is None else Frame(0, text.encode())


def structure_frames(*frames: Frame) -> list[Frame]:
    """Return the frames of a structure or a list."""
    return [BEGIN, *frames, END]
