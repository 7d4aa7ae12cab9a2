"""Where the last whole line of a file ends: what stands behind it is still being written, or was torn."""

from __future__ import annotations

from io import SEEK_END
from typing import BinaryIO

_BLOCK_BYTES = 64 * 1024


def end_of_last_line(file: BinaryIO) -> int:
    """The place behind the last end of line; 0 where there is none. Moves the file's position."""
    end = file.seek(0, SEEK_END)
    while end:
        begin = max(0, end - _BLOCK_BYTES)
        file.seek(begin)
        place = file.read(end - begin).rfind(b"\n")
        if place >= 0:
            return begin + place + 1
        end = begin
    return 0
