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

from backend.journal.files import OPEN_SUFFIX, journal_files, whereabouts

LOOK_BYTES = 64 * 1024

Stamp = tuple[int, int]
"""Size and time of the last change, in nanoseconds: another one means that the file is to be read again."""


class Sources(NamedTuple):
    """`read`: the files to read, each with the name by which it is known. `stamps`: of those that are finished."""

    read: dict[Path, Path]
    stamps: dict[str, Stamp]


def settled(paths: Sequence[Path], staging: Path, known: Mapping[str, Stamp]) -> Sources:
    """The files of the journals at `paths` but those that are `known` as they are now. Raises `NoJournal`, OSError.

    Copies of open files go into `staging`.
    """
    sources = Sources({}, {})
    for number, listed in enumerate(file for path in paths for file in journal_files(path)):
        place = whereabouts(listed.resolve())
        if place is not None and place.name.endswith(OPEN_SUFFIX):
            copy = staging / f"{number:06d}.jsonl"
            if _copied(place, copy):
                sources.read[copy] = place
                continue
            place = whereabouts(place)  # finished since
        if place is None:
            continue
        status = place.stat()
        stamp = (status.st_size, status.st_mtime_ns)
        if known.get(str(place)) != stamp:
            sources.read[place] = place
            sources.stamps[str(place)] = stamp
    return sources


def _copied(place: Path, copy: Path) -> bool:
    """Copy the whole lines of an open file; whether it was still there."""
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
