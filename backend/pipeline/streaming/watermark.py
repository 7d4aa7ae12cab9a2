"""Finds what of a run is written but has not arrived yet: the files that a writer has open, and those just finished.

Each member writes files of its own and finishes them about once a second, so its records come up to a second later than those of
others. Checkers need them in the order of causes. As all files can be seen, no lateness has to be guessed: what is older than the
first record of every unread file can be judged.
"""

from __future__ import annotations

from collections.abc import Collection
from math import inf
from pathlib import Path

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.journal.files import (
    OPEN_DIRECTORY,
    SEALED_SUFFIX,
    as_record,
    open_files,
    run_directory,
    sealed_files,
)

FINISHED = f"*-*{SEALED_SUFFIX}"
"""The names that writers give to finished files. Nothing else in the directory of a run is read, or waited for."""

STALLED_SECONDS = 3.0
"""A file that stays open this long belongs to a paused or dead process: it is read as it is."""


class ArrivalWatermark:
    """Looks at the files of the journal at `root`, or of only one run. Times are in seconds on one monotonic clock."""

    def __init__(self, root: Path, only_run: str = "") -> None:
        self._root, self._only_run = root, only_run
        self._heads: dict[Path, Record] = {}
        """The first record of each file that was not read when it was looked at."""
        self._seen_s: dict[Path, float] = {}
        self._read_bytes: dict[Path, int] = {}

    def watermark_us(self, run: str, arrived: Collection[str], now_s: float) -> float:
        """Return the time of the run's clock before which nothing is missing; infinite when every file has arrived.

        `arrived` are the names of the run's files that were read.
        """
        # Open files first: one that is finished meanwhile is looked at twice rather than never.
        waited_for = [file for file in self._open() if not self._is_stalled(file, now_s)]
        finished = sealed_files(run_directory(self._root, run))
        waited_for += [file for file in finished if file.match(FINISHED) and file.name not in arrived]
        try:
            heads = [head for head in map(self._head, waited_for) if head is not None]
        except FileNotFoundError:  # finished since it was listed: look again
            return -inf
        return min((head.at for head in heads if head.run == run), default=inf)

    def stalled(self, now_s: float, *, at_once: bool = False) -> list[Path]:
        """Return the open files that will not be finished soon and have grown since the last call.

        With `at_once`, all open files that have grown are returned.
        """
        listed = self._open()
        self._forget_all_but(listed)
        return [file for file in listed if (at_once or self._is_stalled(file, now_s)) and self._has_grown(file)]

    def read_while_open(self) -> list[Path]:
        """Return the files returned by `stalled` that are still open."""
        return sorted(self._read_bytes)

    def forget(self, run: str) -> None:
        """Forget a run of which everything has arrived."""
        directory = run_directory(self._root, run)
        for file in [file for file in self._heads if file.parent == directory]:
            del self._heads[file]

    def _open(self) -> list[Path]:
        files = open_files(self._root / OPEN_DIRECTORY)
        return [file for file in files if self._is_of_run(file)] if self._only_run else files

    def _is_of_run(self, file: Path) -> bool:
        try:
            head = self._head(file)
        except FileNotFoundError:  # finished since it was listed
            return False
        return head is not None and head.run == self._only_run

    def _is_stalled(self, file: Path, now_s: float) -> bool:
        return now_s - self._seen_s.setdefault(file, now_s) >= STALLED_SECONDS

    def _has_grown(self, file: Path) -> bool:
        try:
            size = file.stat().st_size
        except FileNotFoundError:
            return False
        grown = size > self._read_bytes.get(file, 0)
        self._read_bytes[file] = size
        return grown

    def _head(self, file: Path) -> Record | None:
        """Return the first record of a file, or None without a whole record. Raises FileNotFoundError."""
        known = self._heads.get(file)
        if known is None:
            known = _first_record(file)
            if known is not None:
                self._heads[file] = known
        return known

    def _forget_all_but(self, listed: list[Path]) -> None:
        for table in (self._seen_s, self._read_bytes):
            for file in table.keys() - set(listed):
                del table[file]
        for file in [file for file in self._heads if file.parent.name == OPEN_DIRECTORY and file not in listed]:
            del self._heads[file]


def whole_lines(file: Path) -> list[bytes]:
    """Read the finished lines of a file that may be growing; none when it is gone."""
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        return []
    return content[: content.rfind(b"\n") + 1].splitlines()


def _first_record(file: Path) -> Record | None:
    with file.open("rb") as lines:
        return next(filter(None, map(as_record, lines)), None)
