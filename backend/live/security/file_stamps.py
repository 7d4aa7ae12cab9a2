"""By what one sees that a file was replaced or rewritten."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple


class FileStamp(NamedTuple):
    """Two of them differ when the file has changed in between."""

    modified_ns: int
    size: int
    inode: int


def stamp_of(path: Path) -> FileStamp | None:
    """None for a file that is not there, or cannot be looked at."""
    try:
        state = path.stat()
    except OSError:
        return None
    return FileStamp(state.st_mtime_ns, state.st_size, state.st_ino)
