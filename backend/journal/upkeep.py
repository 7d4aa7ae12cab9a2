"""Keeps the finished files of one writer few and within their limits: small ones are merged, the oldest go.

A finished file never changes, for other programs read it once. So the merged file comes first, under a name that says which
numbers it holds, and those in it go a while later. What was removed for good is noted beside the files, so that an audit says
that the beginning was retired and does not look for a fault.

How much is kept is said by a `Retention`: the oldest files go when they are too old, or all of them hold too much.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from math import inf
from pathlib import Path

import msgspec
from msgspec import Struct

from quarterdeck.backend.journal.files import (
    RETIRED_SUFFIX,
    merged_name,
    numbers_of,
    without_merged,
    writer_files,
)
from quarterdeck.backend.journal.recovery import flush_directory


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


MERGED_FILES = 64
"""So many small files in a row become one, and so many of those one again."""
MERGED_BYTES = 8 * 1024 * 1024
"""No merged file is longer."""
GRACE_SECONDS = 600.0
"""How long merged files stay for programs that have listed them."""


class Retired(Struct, frozen=True, omit_defaults=True):
    """What of a writer's files was removed because of its retention."""

    files: int = 0
    size_bytes: int = 0
    until_utc_s: float = 0.0
    """When the last of them was written last; seconds since 1970."""


def keep_up(directory: Path, writer: str, retention: Retention, now_s: float) -> None:
    """Remove what is too old or too much, and merge small files. Raises OSError."""
    if not directory.is_dir():
        return
    _remove_merged(directory, writer, now_s - GRACE_SECONDS)
    _retire(directory, writer, without_merged(writer_files(directory, writer)), retention, now_s)
    for row in rows_to_merge(without_merged(writer_files(directory, writer))):
        _merge(row)
    if 0 < retention.most_bytes < sum(path.stat().st_size for path in writer_files(directory, writer)):
        _remove_merged(directory, writer, inf)


def _remove_merged(directory: Path, writer: str, merged_before_s: float) -> None:
    """Remove the files whose records stand in another one that was made before this time."""
    finished = writer_files(directory, writer)
    merged = [path for path in finished if numbers_of(path.name).is_merged]
    for path in set(finished) - set(without_merged(finished)):
        holders = (file for file in merged if file != path and numbers_of(file.name).holds(numbers_of(path.name)))
        if any(file.stat().st_ctime < merged_before_s for file in holders):
            path.unlink(missing_ok=True)


def rows_to_merge(finished: Sequence[Path]) -> Iterator[list[Path]]:
    """Yield rows of small files, each of one level, that should become one file each.

    A row has no gap: a file with a number in between may still be open, and come later.
    """
    row: list[Path] = []
    total, level = 0, 0
    for path in finished:
        size, its_level = path.stat().st_size, _level(path)
        is_large = size > MERGED_BYTES // 2
        is_next = not row or numbers_of(path.name).first == numbers_of(row[-1].name).last + 1
        is_full = is_large or not is_next or total + size > MERGED_BYTES or len(row) == MERGED_FILES
        if is_full or its_level != level:
            if is_full and len(row) > 1:
                yield row
            row, total = [], 0
        if not is_large:
            row.append(path)
            total, level = total + size, its_level
    if len(row) == MERGED_FILES:
        yield row


def _level(path: Path) -> int:
    numbers = numbers_of(path.name)
    count = numbers.last - numbers.first + 1
    return 0 if count == 1 else 1 if count <= MERGED_FILES else 2


def _merge(row: Sequence[Path]) -> None:
    first, last = numbers_of(row[0].name), numbers_of(row[-1].name)
    directory = row[0].parent
    target = directory / merged_name(first.writer, first.first, last.last)
    unfinished = directory / f".{target.name}.new"
    descriptor = os.open(unfinished, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as whole:
            for path in row:
                with path.open("rb") as part:
                    shutil.copyfileobj(part, whole)
            whole.flush()
            os.fsync(whole.fileno())
        written_s = row[-1].stat().st_mtime
        os.utime(unfinished, (written_s, written_s))
        unfinished.rename(target)
    finally:
        unfinished.unlink(missing_ok=True)
    flush_directory(directory)


def _retire(directory: Path, writer: str, finished: Sequence[Path], retention: Retention, now_s: float) -> None:
    sizes = {path: path.stat() for path in finished}
    removed = retire(finished, retention, now_s)
    if not removed:
        return
    for path in writer_files(directory, writer):  # what was merged into them would be merged again, and never go
        if any(numbers_of(file.name).holds(numbers_of(path.name)) for file in removed):
            path.unlink(missing_ok=True)
    note = directory / f"{writer}{RETIRED_SUFFIX}"
    before = retired_of(note)
    now = Retired(
        before.files + len(removed),
        before.size_bytes + sum(sizes[path].st_size for path in removed),
        max(before.until_utc_s, sizes[removed[-1]].st_mtime),
    )
    unfinished = directory / f".{note.name}.new"
    unfinished.write_bytes(msgspec.json.encode(now) + b"\n")
    unfinished.chmod(0o600)
    unfinished.rename(note)


def retired_of(note: Path) -> Retired:
    """Return what a note says; nothing where there is none or it is damaged."""
    try:
        return msgspec.json.decode(note.read_bytes(), type=Retired)
    except (OSError, msgspec.MsgspecError):
        return Retired()
