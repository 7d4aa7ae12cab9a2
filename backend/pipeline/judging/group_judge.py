"""Judges a group of files that hold whole runs, most often the files of one run: everything about them is decided here.

Where the times of its records bring them in order, a run streams past, and nothing is held but what the checkers remember. Where
they do not, the group is read again as a whole and put in the order of causes.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path, PurePath
from typing import BinaryIO

import msgspec
from msgspec import Struct

from quarterdeck.backend.journal.files import SEALED_SUFFIX
from quarterdeck.backend.pipeline.audit_result import QuarantinedLine
from quarterdeck.backend.pipeline.judging.lines import Line, NoRecord, StrangeRecord, decode_record, strange_record
from quarterdeck.backend.pipeline.judging.order import OutOfOrder, by_cause, by_time
from quarterdeck.backend.pipeline.judging.run_judge import AuditQuestion, RunJudge, RunPart, RunVerdict, verdict_of_run
from quarterdeck.backend.pipeline.judging.set_aside import SetAside

PARQUET = ".parquet"
MOST_WRITERS = 500
"""Files of more writers than these are not read side by side."""


class JournalFile(Struct, frozen=True):
    """A file of lines: where it is read, and the name by which people know it."""

    read: str
    listed: str
    size_bytes: int = 0


ReadLines = Callable[[JournalFile], Iterable[bytes]]
"""Gives the lines of a file, each with its line break or without."""


class GroupVerdict(Struct, frozen=True):
    """What is said of the runs in a group of files, and of the lines in it that are not judged."""

    runs: tuple[RunVerdict, ...]
    lines: int
    duplicates: int
    contradicting: int
    quarantined: int
    """Lines that are no records, and those that contradict one."""
    problems: tuple[QuarantinedLine, ...]
    """The first of these."""


def lines_of_file(file: JournalFile) -> Iterator[bytes]:
    """The lines of a file on this machine: of text, or of a part of the table `events`. Raises OSError."""
    with Path(file.read).open("rb") as content:
        yield from lines_of_content(file, content)


def lines_of_content(file: JournalFile, content: BinaryIO) -> Iterable[bytes]:
    """The same of what the file holds."""
    return _lines_of_table(content) if file.read.endswith(PARQUET) else content


def _lines_of_table(part: BinaryIO) -> Iterator[bytes]:
    """The lines that a part of the table keeps, whose order is lost."""
    import pyarrow.parquet

    for batch in pyarrow.parquet.ParquetFile(part).iter_batches(columns=["raw"]):
        yield from (raw.encode() for raw in batch.column("raw").to_pylist())


def judge_group(files: Sequence[JournalFile], question: AuditQuestion, read: ReadLines = lines_of_file) -> GroupVerdict:
    """Judge all runs in `files`. Raises OSError for what cannot be read."""
    chains = _writers(files)
    with collector_paused():
        if len(chains) <= MOST_WRITERS and not any(file.read.endswith(PARQUET) for file in files):
            try:
                return _Group(question, read).stream(chains)
            except OutOfOrder:
                pass
        return _Group(question, read).put_in_order(files)


@contextmanager
def collector_paused() -> Iterator[None]:
    """Nobody looks for garbage in circles meanwhile: records are in none, and there are many of them to look at.

    What judges a run is in a circle, and so is collected after the block.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _writers(files: Sequence[JournalFile]) -> list[list[JournalFile]]:
    """The files of each writer, in the order in which it wrote them."""
    chains: dict[tuple[str, str], list[JournalFile]] = {}
    for file in sorted(files, key=lambda one: _name(one)):
        path = PurePath(file.listed)
        chains.setdefault((str(path.parent), _name(file).rpartition("-")[0] or file.listed), []).append(file)
    return list(chains.values())


def _name(file: JournalFile) -> str:
    return PurePath(file.read).name.removesuffix(SEALED_SUFFIX)


class _Group:
    """One reading of a group."""

    def __init__(self, question: AuditQuestion, read: ReadLines) -> None:
        self._question, self._read = question, read
        self._judges: dict[str, RunJudge] = {}
        self._aside = SetAside()

    def stream(self, chains: Sequence[Sequence[JournalFile]]) -> GroupVerdict:
        """Judge lines as their times bring them. Raises `OutOfOrder`."""
        judges = self._judges
        for line in by_time([chain.from_iterable(map(self._lines_of, files)) for files in chains]):
            judge = judges.get(line[3].run) or self._judge(line[3].run)
            is_same = judge.take(line)
            if is_same is not None:
                self._aside.repeats(*line[1:], is_same=is_same)
        return self._verdict()

    def put_in_order(self, files: Iterable[JournalFile]) -> GroupVerdict:
        """Hold all records, and judge those of each run in the order of causes."""
        runs: dict[str, dict[tuple[str, int], Line]] = {}
        repeats: list[Line] = []
        for file in files:
            for line in self._lines_of(file):
                record = line[3]
                lines = runs.setdefault(record.run, {})
                stands = lines.setdefault((record.uuid, record.seq), line)
                if stands is not line:
                    first, second = (line, stands) if line[:3] < stands[:3] else (stands, line)
                    lines[record.uuid, record.seq] = first
                    repeats.append(second)
        for line in repeats:
            record = line[3]
            self._aside.repeats(*line[1:], is_same=runs[record.run][record.uuid, record.seq][4] == line[4])
        for run, lines in runs.items():
            ordered, found = by_cause(lines.values())
            judge = self._judge(run)
            judge.take_in_order(ordered)
            judge.tell_leaps(found)
        return self._verdict()

    def _judge(self, run: str) -> RunJudge:
        judge = self._judges.get(run)
        if judge is None:
            judge = self._judges[run] = RunJudge(run, self._question)
        return judge

    def _lines_of(self, file: JournalFile) -> Iterator[Line]:
        return records_of(file, self._read, self._aside, self._tell_strange)

    def _tell_strange(self, place: str, number: int, strange: StrangeRecord, problem: str) -> None:
        self._judge(strange.run).tell_strange((place, number), strange.member, strange.seq, problem)

    def _verdict(self) -> GroupVerdict:
        return verdict_of_group([judge.part() for judge in self._judges.values()], self._aside)


TellStrange = Callable[[str, int, StrangeRecord, str], None]
"""Told of a record that cannot be judged: its file, number, head, and what is strange about it."""


def records_of(file: JournalFile, read: ReadLines, aside: SetAside, tell_strange: TellStrange) -> Iterator[Line]:
    """The records of a file, where they stand. What is no record is set aside; for a strange one another stands in."""
    place = f"{_name(file)}\0{file.listed}"
    number = 0
    for number, whole in enumerate(read(file), start=1):
        raw = whole.rstrip(b"\n")
        try:
            record = decode_record(raw)
        except (msgspec.MsgspecError, UnicodeDecodeError) as problem:
            try:
                strange = strange_record(raw, problem)
            except NoRecord as reason:
                aside.no_record(place, number, raw, str(reason))
                continue
            tell_strange(place, number, strange, str(problem))
            record = strange.stand_in()
        yield record.at, place, number, record, raw
    aside.lines += number


def verdict_of_group(parts: Iterable[RunPart], aside: SetAside) -> GroupVerdict:
    """What is said of the runs of which these are parts."""
    runs: dict[str, list[RunPart]] = {}
    for part in parts:
        runs.setdefault(part.run, []).append(part)
    return GroupVerdict(
        tuple(verdict_of_run(run, of_run) for run, of_run in runs.items()),
        aside.lines,
        aside.duplicates,
        aside.contradicting,
        aside.quarantined,
        tuple(aside.problems),
    )
