"""Reads a journal: every record once, and every line that is no record as a problem; and lists its runs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path

import msgspec
from msgspec import Struct

from quarterdeck.backend.core.events import CLUSTER_EVENTS, Record
from quarterdeck.backend.journal.files import RUN_PREFIX, current_path, journal_files, numbers_of
from quarterdeck.backend.journal.old_form import upgraded

_DECODER = msgspec.json.Decoder(Record)


class JournalProblem(Struct, frozen=True):
    """A line that is no record. If `torn`, it is an unfinished last line, as a killed writer leaves."""

    file: Path
    line: int
    reason: str
    torn: bool = False


class Journal:
    """A root, a run's directory or a single file, open files included.

    Raises `NoJournal` when the path holds none.
    """

    problems: list[JournalProblem]
    """Complete after the records have been read to their end; filled anew by each reading."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.problems = []
        journal_files(path)

    def __iter__(self) -> Iterator[Record]:
        """Yield every record once, one run after the other, in order of `at`.

        What happened in the same microsecond stays in the order in which it was written: that is the order of causes, also
        between two incarnations of one member. All records are held in memory, because they have to be sorted.
        """
        self.problems = []
        by_run: defaultdict[str, dict[tuple[str, int], Record]] = defaultdict(dict)
        for record in read_files(journal_files(self._path), self.problems):
            by_run[record.run].setdefault((record.uuid, record.seq), record)
        for run in sorted(by_run):
            yield from sorted(by_run[run].values(), key=attrgetter("at"))


def read_journal(path: Path) -> Journal:
    """Open the journal at `path`: iterate over it, then look at its `problems`. Raises `NoJournal`."""
    return Journal(path)


def read_files(files: Iterable[Path], problems: list[JournalProblem]) -> Iterator[Record]:
    """Yield the records of `files`, file by file and line by line as written; append lines that are none to `problems`.

    Those of an older form come as they would have been recorded now.
    """
    merged = set[Path]()
    for listed in files:
        file = current_path(listed)
        if file is None:
            problems.append(JournalProblem(listed, 0, "the file is gone"))
            continue
        if file != listed and numbers_of(file.name).is_merged:
            if file in merged:
                continue
            merged.add(file)
        with file.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                try:
                    yield upgraded(_DECODER.decode(line))
                except (msgspec.MsgspecError, UnicodeDecodeError) as error:
                    problems.append(_problem(file, number, line, str(error)))


A_YEAR_US = 365 * 24 * 3600 * 1_000_000


def run_zero_us(first: Record) -> int:
    """Return the `at` of a run's beginning, of which `first` is the first record.

    A member that is a process of its own shares no clock with the others but UTC, so its `at` counts from 1970. All others
    count from the beginning of their run, and no run lasts a year.
    """
    return first.at if first.at == first.utc > A_YEAR_US else 0


def _problem(file: Path, number: int, line: bytes, reason: str) -> JournalProblem:
    if line.endswith(b"\n"):
        return JournalProblem(file, number, reason)
    return JournalProblem(file, number, f"torn last line of {len(line)} bytes: {reason}", torn=True)


class RunListing(Struct, frozen=True):
    """One run in brief. `members` are labels in order of first appearance; the times are UTC microseconds."""

    run: str
    files: int
    size_bytes: int
    records: int
    members: tuple[str, ...]
    first_utc: int | None
    last_utc: int | None
    missing: int
    """Records of which only the numbers are known, because those before and after them are here."""
    problems: tuple[JournalProblem, ...]


@dataclass
class _Tally:
    files: int = 0
    size_bytes: int = 0
    records: int = 0
    members: dict[str, None] = field(default_factory=dict)
    utcs: tuple[int, int] | None = None
    problems: list[JournalProblem] = field(default_factory=list)
    numbers: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    """By incarnation: the lowest and the highest number of a record, and how many there are."""

    def count(self, record: Record) -> None:
        self.records += 1
        if type(record.event) not in CLUSTER_EVENTS:
            self.members[record.member] = None
        lowest, highest, count = self.numbers.get(record.uuid, (record.seq, record.seq, 0))
        self.numbers[record.uuid] = (min(lowest, record.seq), max(highest, record.seq), count + 1)
        first, last = self.utcs or (record.utc, record.utc)
        self.utcs = min(first, record.utc), max(last, record.utc)


def list_runs(path: Path) -> tuple[RunListing, ...]:
    """List the runs in the journal at `path`, in order of their names. Files are read through, one line at a time.

    A file without a readable record counts for the run that its directory names. Raises `NoJournal`.
    """
    tallies: dict[str, _Tally] = {}
    for file in journal_files(path):
        problems: list[JournalProblem] = []
        run = file.parent.name.removeprefix(RUN_PREFIX) if file.parent.name.startswith(RUN_PREFIX) else "unknown"
        for record in read_files([file], problems):
            run = record.run
            tallies.setdefault(run, _Tally()).count(record)
        tally = tallies.setdefault(run, _Tally())
        tally.files += 1
        tally.size_bytes += file.stat().st_size if file.exists() else 0
        tally.problems += problems
    return tuple(_listing(run, tallies[run]) for run in sorted(tallies))


def _listing(run: str, tally: _Tally) -> RunListing:
    first_utc, last_utc = tally.utcs or (None, None)
    return RunListing(
        run=run,
        files=tally.files,
        size_bytes=tally.size_bytes,
        records=tally.records,
        members=tuple(tally.members),
        first_utc=first_utc,
        last_utc=last_utc,
        missing=sum(max(0, high - low + 1 - count) for low, high, count in tally.numbers.values()),
        problems=tuple(tally.problems),
    )
