"""Lists the runs of a journal: members, records, times and problems of each."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from msgspec import Struct

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.journal.files import RUN_PREFIX, journal_files
from quarterdeck.backend.journal.reader import FROM_OUTSIDE, JournalProblem, read_files


class RunListing(Struct, frozen=True):
    """One run at a glance. `members` are labels in order of first appearance; the times are UTC microseconds."""

    run: str
    files: int
    size_bytes: int
    records: int
    members: tuple[str, ...]
    first_utc: int | None
    last_utc: int | None
    missing: int
    """Records of which only the numbers are known, for those before and after them are here."""
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
        if type(record.event) not in FROM_OUTSIDE:  # such stands under the cluster's name
            self.members[record.member] = None
        lowest, highest, count = self.numbers.get(record.uuid, (record.seq, record.seq, 0))
        self.numbers[record.uuid] = (min(lowest, record.seq), max(highest, record.seq), count + 1)
        first, last = self.utcs or (record.utc, record.utc)
        self.utcs = min(first, record.utc), max(last, record.utc)


def list_runs(path: Path) -> tuple[RunListing, ...]:
    """The runs in the journal at `path`, in order of their names. Files are read through, one line at a time.

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
