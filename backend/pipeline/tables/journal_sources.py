"""The files that journals consist of, as Spark can read them: it comes later than the look that found them.

A living writer renames its open file about once a second, and its last line may be half written. Of such a file a copy is
read, up to its last whole line; the rest comes with a later look.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

from quarterdeck.backend.journal.files import OPEN_SUFFIX, current_path, journal_files, sealed_name

LOOK_BYTES = 64 * 1024

Stamp = tuple[int, int]
"""Size and time of the last change, in nanoseconds: another one means that the file is to be read again."""


class Sources(NamedTuple):
    """`read`: the files to read, each with the name by which it is known. `stamps`: of those that are finished."""

    read: dict[Path, Path]
    stamps: dict[str, Stamp]


class FileSnapshot(NamedTuple):
    """A file that will still be there when Spark comes to read it. `read` is a copy of `place` while that `is_open`."""

    read: Path
    place: Path
    is_open: bool


def snapshot(listed: Path, staging: Path, number: int) -> FileSnapshot | None:
    """The file that was `listed`; None when it is gone. Its copy goes into `staging`, under the name that it will have."""
    place = current_path(listed.resolve())
    if place is not None and place.name.endswith(OPEN_SUFFIX):
        copy = staging / f"{number:06d}" / sealed_name(place.name)
        if _copied(place, copy):
            return FileSnapshot(copy, place, True)
        place = current_path(place)  # finished since
    return None if place is None else FileSnapshot(place, place, False)


def sources_of(paths: Sequence[Path], staging: Path, known: Mapping[str, Stamp]) -> Sources:
    """The files of the journals at `paths` but those that are `known` as they are now. Raises `NoJournal`, OSError.

    Copies of open files go into `staging`.
    """
    read: dict[Path, Path] = {}
    stamps: dict[str, Stamp] = {}
    for number, listed in enumerate(file for path in paths for file in journal_files(path)):
        one = snapshot(listed, staging, number)
        if one is None:
            continue
        if one.is_open:
            read[one.read] = one.place
            continue
        status = one.place.stat()
        stamp = (status.st_size, status.st_mtime_ns)
        if known.get(str(one.place)) != stamp:
            read[one.place] = one.place
            stamps[str(one.place)] = stamp
    return Sources(read, stamps)


def _copied(place: Path, copy: Path) -> bool:
    """Copy the whole lines of an open file; whether it was still there."""
    copy.parent.mkdir(exist_ok=True)
    try:
        shutil.copyfile(place, copy)
    except FileNotFoundError:
        return False
    with copy.open("r+b") as file:
        file.truncate(_end_of_last_line(file))
    return True


def _end_of_last_line(file: BinaryIO) -> int:
    end = file.seek(0, os.SEEK_END)
    while end:
        begin = max(0, end - LOOK_BYTES)
        file.seek(begin)
        place = file.read(end - begin).rfind(b"\n")
        if place >= 0:
            return begin + place + 1
        end = begin
    return 0
