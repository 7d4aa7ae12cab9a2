"""A run that was recorded, as a cluster to watch: its journal is read from the beginning, as fast as it is drained.

It can only be looked at, as every `PastRun`.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from heapq import merge
from itertools import islice
from pathlib import Path
from sys import intern
from typing import ClassVar

import msgspec

from quarterdeck.backend.clusters.cluster import Source, refused
from quarterdeck.backend.core.commands import Command
from quarterdeck.backend.core.events import CLUSTER_EVENTS, Record
from quarterdeck.backend.core.operations import Answer, Operation
from quarterdeck.backend.journal.files import RUN_PREFIX, NoJournal, journal_files, run_of_file, sealed_name
from quarterdeck.backend.journal.reader import JournalProblem, read_files, run_zero_us
from quarterdeck.backend.picture.text.formatting import bytes_text, counted


class PastRun:
    """The name and the members of a recorded cluster. No command reaches it: `refusal` says so."""

    source: Source = "recorded"
    writable = False
    refusal: ClassVar[str]

    def __init__(self, run: str) -> None:
        self.name = self.run = run
        self.failure = ""
        """Why the reading ended before its end."""
        self._labels: dict[str, None] = {}
        """In the order in which they were seen first."""

    @property
    def complete(self) -> bool:
        """Whether nothing is read any more."""
        raise NotImplementedError

    def now_us(self) -> int:
        """Return the time of the latest record that was read."""
        raise NotImplementedError

    def drain(self) -> list[Record]:
        """Return the next records, in the order of time."""
        raise NotImplementedError

    def began_utc_us(self) -> int:
        """Return the time in UTC at which the run's clock shows 0; 0 without a record. Takes records that are left to drain."""
        while not self.complete:
            for record in self.drain():
                return record.utc - record.at
            time.sleep(POLL_SECONDS)
        return 0

    @property
    def labels(self) -> Sequence[str]:
        """The members seen in the records read so far."""
        return tuple(self._labels)

    def execute(self, command: Command) -> Future[None]:
        return refused(self.refusal)

    def call(self, member: str, operation: Operation, *, watched: bool = False) -> Future[Answer]:
        return refused(self.refusal)


POLL_SECONDS = 0.02
RECORDS_A_DRAIN = 4_000
"""Records read at once, some 20 ms of work: a journal of gigabytes is read in the course of many calls."""

MOST_RECORDS = 1_000_000
"""Records that are read when a moment was named; records after both are left out."""

PROBLEMS_TOLD = 5
RUNS_NAMED = 8


class RecordedCluster(PastRun):
    """The run in the journal at `path`: a journal root, the directory of a run, a directory of files, or one file.

    Without `until_us` the whole run is read, whatever its size: the reader
    forgets what it cannot hold. With `until_us` no more is read after that moment than fits into `most_records`.

    Raises `NoJournal` when there is no run, and when there are several.
    """

    refusal = "this is a recorded run; nothing can be done to it"

    def __init__(
        self, path: Path, *, run: str = "", until_us: int | None = None, most_records: int = MOST_RECORDS
    ) -> None:
        """`run` names the run that is meant, where the journal has several."""
        self.journal_path = path
        files = _files_by_run(path)
        super().__init__(_only(path, list(files), run))
        self._sizes = {file: _size(file) for file in files[self.run]}
        self._bytes_read = 0
        self._problems = _Problems()
        self._stopped = ""
        """Why no more is read before the end."""
        self._highest: dict[str, int] = {}
        """By uuid: the number of its latest record. An event stands twice where a file was finished while it was looked for."""
        self._others = self._read = self._now_us = 0
        self._until_us, self._most_records = until_us, most_records
        self._records: Iterator[Record] | None = self._in_order(files[self.run])

    @property
    def complete(self) -> bool:
        """Whether nothing is read any more."""
        return self._records is None

    def now_us(self) -> int:
        return self._now_us

    def drain(self) -> list[Record]:
        """Return the next records of the journal, in the order of time as far as each of its writers kept it."""
        fresh: list[Record] = []
        if self._records is not None:
            try:
                fresh = list(islice(self._records, RECORDS_A_DRAIN))
            except OSError as problem:
                self.failure = f"reading stopped: {problem}"
                self._stop(self.failure)
            if len(fresh) < RECORDS_A_DRAIN:
                self._records = None
        if fresh:
            self._read += len(fresh)
            self._now_us = max(self._now_us, *(record.at for record in fresh))
            if self._until_us is not None and self._now_us > self._until_us and self._read >= self._most_records:
                self._stop(f"the run goes on after {self._now_us / 1e6:.3f} s, which is not read")
        return fresh

    def moment_of(self, member: str, seq: int) -> int | None:
        """When a member, named by label or uuid, recorded its event of this number; its latest incarnation if several did.

        Reads the run to its end, so nothing is left to drain.
        """
        at_us = None
        for record in self._records or ():
            if record.seq == seq and member in (record.member, record.uuid):
                at_us = record.at
        self._records = None
        return at_us

    def close(self) -> None:
        self._records = None

    def notes(self) -> Sequence[str]:
        """Return the progress of the reading, the records left out, and the problems of the journal."""
        notes = []
        total = sum(self._sizes.values())
        if self._records is not None:
            notes.append(f"reading the journal: {self._bytes_read * 100 // max(1, total)} % of {bytes_text(total)}")
        if self._stopped:
            left = bytes_text(total - self._bytes_read)
            notes.append(f"{self._stopped}; about {left} of {bytes_text(total)} are left out")
        if self._problems:
            notes.append(f"{counted(self._problems.count_all, 'line')} could not be read, left out:")
            notes += [f"{problem.file.name}:{problem.line}: {problem.reason}" for problem in self._problems]
        if self._others:
            notes.append(f"{counted(self._others, 'record')} of other runs in the same files left out")
        return notes

    def _stop(self, why: str) -> None:
        self._records, self._stopped = None, why

    def _in_order(self, files: Sequence[Path]) -> Iterator[Record]:
        """Yield the records of this run: those of each writer as written, between writers the earlier one first."""
        by_writer: defaultdict[str, list[Path]] = defaultdict(list)
        for file in files:
            by_writer[file.name.partition(".")[0].rpartition("-")[0] or file.name].append(file)
        zero_us: int | None = None
        streams = (self._timed(place, sorted(them, key=_age)) for place, them in enumerate(by_writer.values()))
        for _, _, record in merge(*streams):
            if record.run != self.run:
                self._others += 1
            elif record.seq > self._highest.get(record.uuid, 0):
                self._highest[record.uuid] = record.seq
                if type(record.event) not in CLUSTER_EVENTS:
                    self._labels[record.member] = None
                if zero_us is None:
                    zero_us = run_zero_us(record)
                if zero_us:
                    msgspec.structs.force_setattr(record, "at", record.at - zero_us)
                yield record

    def _timed(self, writer: int, files: Iterable[Path]) -> Iterator[tuple[int, int, Record]]:
        """Yield the records of one writer, each under a time that is never before that of the one before it."""
        latest_us = 0
        for record in read_files(self._counted(files), self._problems):
            latest_us = max(latest_us, record.at)
            for field in ("run", "member", "uuid"):  # of millions of records, a few names
                msgspec.structs.force_setattr(record, field, intern(getattr(record, field)))
            yield latest_us, writer, record

    def _counted(self, files: Iterable[Path]) -> Iterator[Path]:
        for file in files:
            yield file
            self._bytes_read += self._sizes[file]


class _Problems(list[JournalProblem]):
    """Remembers the first few, and counts all: a file that is no journal may have millions of bad lines."""

    count_all = 0

    def append(self, problem: JournalProblem) -> None:
        self.count_all += 1
        if len(self) < PROBLEMS_TOLD:
            super().append(problem)


def _files_by_run(path: Path) -> dict[str, list[Path]]:
    """Return the files of each run, by the run of the first readable line of each where its directory does not name the run."""
    runs: dict[str, list[Path]] = {}
    for file in journal_files(path):
        directory = file.parent.name
        run: str | None = directory.removeprefix(RUN_PREFIX)
        if not directory.startswith(RUN_PREFIX):
            with suppress(FileNotFoundError):  # finished between listing and looking: it is listed under its new name
                run = run_of_file(file)
        if run is not None:
            runs.setdefault(run, []).append(file)
    return runs


def _only(path: Path, runs: Sequence[str], wanted: str) -> str:
    if not runs:
        hint = f"name a journal, a {RUN_PREFIX}… directory or a .jsonl file"
        raise NoJournal(f"{path}: no line in it is a record; {hint}")
    if wanted in runs:
        return wanted
    if len(runs) > 1 or wanted:
        named = ", ".join(sorted(runs)[-RUNS_NAMED:]) + f" and {len(runs) - RUNS_NAMED} more" * (len(runs) > RUNS_NAMED)
        holds = f"has no run {wanted}" if wanted else f"holds {counted(len(runs), 'run')}"
        raise NoJournal(f"{path}: {holds}; name one with --run, or as {path / RUN_PREFIX}… : {named}")
    return runs[0]


def _age(file: Path) -> tuple[int, str]:
    """Sorts the files of one writer as they were written; an open one that was finished meanwhile beside its new name."""
    name = sealed_name(file.name)
    number = name.partition(".")[0].rpartition("-")[2]
    return (int(number) if number.isdecimal() else 0, name)


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0
