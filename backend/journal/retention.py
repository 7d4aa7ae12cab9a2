"""How much is kept of what a member writes: the oldest files go when they are too old, or all of them hold too much."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct


class Retention(Struct, frozen=True):
    """The limits of the files of one writer. 0 stands for no limit."""

    most_seconds: float = 0.0
    """Since a file was written last."""
    most_bytes: int = 0


UNLIMITED = Retention()


def retire(finished: Sequence[Path], retention: Retention, now_s: float) -> list[Path]:
    """Remove the first of these files, oldest first, until the others are within the limits; return those removed.

    `now_s` is in seconds since 1970. The newest file always stays. Raises OSError.
    """
    stats = [path.stat() for path in finished]
    total = sum(stat.st_size for stat in stats)
    removed = []
    for path, stat in list(zip(finished, stats, strict=True))[:-1]:
        too_much = retention.most_bytes and total > retention.most_bytes
        too_old = retention.most_seconds and now_s - stat.st_mtime > retention.most_seconds
        if not (too_much or too_old):
            break
        path.unlink(missing_ok=True)
        total -= stat.st_size
        removed.append(path)
    return removed
