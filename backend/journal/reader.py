"""Reads a journal back: every record once, and every line that is no record as a problem."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from operator import attrgetter
from pathlib import Path

import msgspec
from msgspec import Struct

from quarterdeck.backend.core import events
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.journal.files import current_path, journal_files
from quarterdeck.backend.journal.old_form import upgraded

FROM_OUTSIDE: frozenset[type] = frozenset(
    {
        events.ProcessKilled,
        events.ProcessPaused,
        events.ProcessResumed,
        events.LinkChanged,
        events.StrangerRefused,
        events.OperatorAsked,
        events.JournalChanged,
    }
)
"""What is recorded under the name of the cluster: whoever a record of such a kind stands under is no member for that."""

_DECODER = msgspec.json.Decoder(Record)


class JournalProblem(Struct, frozen=True):
    """A line that is no record. `torn` says that it is merely an unfinished last line, as a killed writer leaves."""

    file: Path
    line: int
    reason: str
    torn: bool = False


class Journal:
    """What a root, a run's directory or a single file holds, open files included.

    Raises `NoJournal` when the path holds none.
    """

    problems: list[JournalProblem]
    """Complete after `records` has been read to its end; filled anew by each reading."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.problems = []
        journal_files(path)

    def records(self) -> Iterator[Record]:
        """Every record once, one run after the other, in order of `at`.

        What happened in the same microsecond stays in the order in which it was written: that is the order of causes,
        also between two incarnations of one member. All records are held in memory, for they have to be sorted.
        """
        self.problems = []
        by_run: defaultdict[str, dict[tuple[str, int], Record]] = defaultdict(dict)
        for record in read_files(journal_files(self._path), self.problems):
            by_run[record.run].setdefault((record.uuid, record.seq), record)
        for run in sorted(by_run):
            yield from sorted(by_run[run].values(), key=attrgetter("at"))

    def __iter__(self) -> Iterator[Record]:
        return self.records()


def read_journal(path: Path) -> Journal:
    """The journal at `path`: iterate over it, then look at its `problems`. Raises `NoJournal`."""
    return Journal(path)


def read_files(files: Iterable[Path], problems: list[JournalProblem]) -> Iterator[Record]:
    """The records of `files`, file by file and line by line as written; lines that are none are added to `problems`.

    Those of an older form come as they would have been recorded now.
    """
    for listed in files:
        file = current_path(listed)
        if file is None:
            problems.append(JournalProblem(listed, 0, "the file is gone"))
            continue
        with file.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                try:
                    yield upgraded(_DECODER.decode(line))
                except (msgspec.MsgspecError, UnicodeDecodeError) as error:
                    problems.append(_problem(file, number, line, str(error)))


A_YEAR_US = 365 * 24 * 3600 * 1_000_000


def run_zero_us(first: Record) -> int:
    """The `at` of a run's beginning, of which `first` is the first record.

    A member that is a process of its own shares no clock with the others but UTC, so its `at` counts from 1970. All others
    count from the beginning of their run, and no run lasts a year.
    """
    return first.at if first.at == first.utc > A_YEAR_US else 0


def _problem(file: Path, number: int, line: bytes, reason: str) -> JournalProblem:
    if line.endswith(b"\n"):
        return JournalProblem(file, number, reason)
    return JournalProblem(file, number, f"torn last line of {len(line)} bytes: {reason}", torn=True)
