"""Reads a journal: every record once, and every line that is no record as a problem; and lists its runs.

Records of form 1, whose causes were only in sentences, are put where code looks for them now. Only the causes on which
something depends are found again. The others stay ``unknown``; their sentences are shown as they are.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from operator import attrgetter
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, structs

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.causes import SEPARATION_TEXT
from quarterdeck.backend.core.events import CLUSTER_EVENTS, Event, Record
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.core.partitions.events import MigrationsCancelled, MigrationsPlanned
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.journal.files import NOT_DECODABLE, RUN_PREFIX, current_path, journal_files, numbers_of

Sentences = Iterable[tuple[str, str]]
"""Patterns of sentences, ``*`` for any text, with the cause that each means."""

SUSPICION = (
    ("no heartbeat for *", "no-heartbeat"),
    ("no master confirmation for *", "no-confirmation"),
    ("no connection*", "no-connection"),
    ("it said goodbye", "goodbye"),
    ("it asked to be suspected", "asked"),
    ("a new life of the same address *", "new-incarnation"),
    ("it leads a cluster of its own", "leads-another-cluster"),
    ("it is disconnected from some of the members", "disconnected"),
)
REPORTS = " reports: "
"""Between the member that found a suspect silent, and what it found."""

MASTER = (
    ("it forms the cluster", "forms-cluster"),
    ("its cluster merges into that one", "merges"),
    ("it suspects every older member", "suspects-older"),
    ("its mastership claim is accepted", "claim-accepted"),
)
NAMES_IT = " names it"
STOP = (("asked to stop", "asked"), ("could not join in *", "could-not-join"))
CLEARANCE = (
    ("it sent a valid heartbeat", "heartbeat"),
    ("its reply to a probe *", "probe-reply"),
    ("its mastership claim is accepted", "claim-accepted"),
    ("it sent a member list as master", "list-received"),
    ("* hears of it again", "report-withdrawn"),
)
SEPARATION = (
    ("its heartbeat was for an earlier life of this member", "heartbeat-for-earlier-incarnation"),
    *((sentence, cause) for cause, sentence in SEPARATION_TEXT.items()),
)
CLAIM_END = (("asked to stop", "stopping"), ("it merges into another cluster", "merging"))
SEARCH = (
    ("", ""),
    ("* make it ACTIVE first", "state"),
    ("its cluster is changing to *", "state-changes"),
    ("* is just joining it", "somebody-joins"),
    ("every address that it knows is a member already*", "nobody-known"),
    ("nobody answers at *", "nobody-answers"),
)
MERGE = (
    ("", ""),
    ("the cluster could not be frozen*", "not-frozen"),
    ("* refused: *", "refused"),
    ("the other cluster does not answer any more", "no-answer"),
    ("* does not reach * both ways", "links-missing"),
    ("* did not report its links", "links-missing"),
)
PLAN = (
    ("a new master leads", "new-master"),
    ("the partitions are arranged", "arranged"),
    ("* wants to leave", "member-leaves"),
    ("* of those that hold data", "members-changed"),
    ("the cluster is *", "state-changed"),
    ("a migration failed: *", "migration-failed"),
    ("partition * is not as it was *", "partition-changed"),
)

_SILENCE = re.compile(r" for (\d+(?:\.\d+)?) s$")


def upgraded(record: Record) -> Record:
    """Return `record` with the causes that its sentences mean, if it is of form 1. Its form stays what it was."""
    if record.form > 1:
        return record
    upgrade = _UPGRADES.get(type(record.event))
    return record if upgrade is None else structs.replace(record, event=upgrade(record.event))


def _cause(sentence: str, sentences: Sentences, otherwise: str = "unknown") -> str:
    return next((cause for pattern, cause in sentences if fnmatchcase(sentence, pattern)), otherwise)


def _by(sentences: Sentences, field: str = "reason") -> Callable[[Any], Event]:
    """Return what upgrades an event whose sentence in `field` holds the cause."""
    return lambda event: structs.replace(event, cause=_cause(getattr(event, field), sentences))


def suspicion_said(reason: str, form: int | None) -> tuple[str, str | None]:
    """Return the cause of a suspicion or removal as its sentence has it, and in records of form 1 the reporter.

    `form` is None for form 1, as records leave it out. The reporter is None where the observer found it itself.
    """
    reporter, found, finding = reason.partition(REPORTS)
    return _cause(finding if found else reason, SUSPICION), reporter if found and form is None else None


def _suspicion(event: events.SuspicionRaised | events.MemberRemoved) -> Event:
    reporter, found, finding = event.reason.partition(REPORTS)
    if not found:
        reporter, finding = "", event.reason
    silence = _SILENCE.search(finding)
    return structs.replace(
        event,
        cause=_cause(finding, SUSPICION),
        silence=round(float(silence[1]) * SECOND_US) if silence else None,
        reporter=Address(reporter) if reporter else None,
    )


def _master(event: events.MasterChanged) -> Event:
    if event.reason.endswith(NAMES_IT):
        return structs.replace(event, cause="named", named_by=Address(event.reason.removesuffix(NAMES_IT)))
    return structs.replace(event, cause=_cause(event.reason, MASTER))


def _not_merging(event: events.NotMerging) -> Event:
    if event.remote is not None:
        return structs.replace(event, cause=_cause(event.reason, MERGE, "verdict"))
    cause = _cause(event.reason, SEARCH)
    silent = event.reason.removeprefix("nobody answers at ").split(", ") if cause == "nobody-answers" else ()
    return structs.replace(event, cause=cause, silent=tuple(map(Address, silent)))


_UPGRADES: dict[type, Callable[[Any], Event]] = {
    events.SuspicionRaised: _suspicion,
    events.MemberRemoved: _suspicion,
    events.MasterChanged: _master,
    events.MemberStopped: _by(STOP),
    events.SuspicionCleared: _by(CLEARANCE),
    events.ExplicitSuspicionSent: _by(SEPARATION),
    events.ClaimAbandoned: _by(CLAIM_END),
    events.NotMerging: _not_merging,
    events.MergeAbandoned: _by(MERGE),
    MigrationsPlanned: _by(PLAN, "why"),
    MigrationsCancelled: _by(PLAN),
}


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
                except NOT_DECODABLE as error:
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
