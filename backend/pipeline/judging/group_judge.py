"""Judges a group of files that hold whole runs, most often the files of one run.

Where the times of the records bring them in order, a run streams past, and only the checkers' memory is held. Where they do not,
the group is read again as a whole and put in the order of causes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from io import BufferedReader
from itertools import chain, count, islice, repeat
from operator import attrgetter
from pathlib import Path, PurePath

from msgspec import Struct

from quarterdeck.backend.journal.files import NOT_DECODABLE, SEALED_SUFFIX, current_path, naming, numbers_of
from quarterdeck.backend.judgement.observations.story import LogStory
from quarterdeck.backend.pipeline.address import BUFFER_BYTES, naming_damaged
from quarterdeck.backend.pipeline.audit_input import InputFile
from quarterdeck.backend.pipeline.judging.lines import (
    Line,
    NoRecord,
    SetAside,
    StrangeRecord,
    decode_record,
    file_order,
    run_of_line,
    strange_record,
)
from quarterdeck.backend.pipeline.judging.order import OutOfOrder, by_cause, by_time
from quarterdeck.backend.pipeline.judging.run_judge import AuditQuestion, RunJudge, RunVerdict
from quarterdeck.backend.pipeline.tasks import collector_paused

PARQUET = ".parquet"
MOST_WRITERS = 500
"""Files of more writers than these are not read side by side."""

LINES_AT_ONCE = 1_000
"""So many lines are decoded at once."""

TIME = attrgetter("at")

ReadLines = Callable[[InputFile], Iterable[bytes]]
"""Returns the lines of a file, with their line breaks or without."""

OnStrange = Callable[[str, int, StrangeRecord, str], None]
"""Called for a record that cannot be judged, with its file, line number, head and problem."""


class GroupVerdict(Struct, frozen=True):
    """The verdict on the runs in a group of files, or in all of them, and the lines that are not judged."""

    runs: tuple[RunVerdict, ...]
    aside: SetAside
    stories: tuple[LogStory, ...] = ()
    """Of members' logs, and of runs that a witness recorded: what is observed in each."""


def together(verdicts: Sequence[GroupVerdict]) -> GroupVerdict:
    """Put the verdicts on groups together to one on all."""
    runs = sorted((run for verdict in verdicts for run in verdict.runs), key=lambda run: run.run)
    aside = SetAside()
    aside.add(verdict.aside for verdict in verdicts)
    observed = (run.story for run in runs if run.story is not None)
    return GroupVerdict(tuple(runs), aside, (*(story for verdict in verdicts for story in verdict.stories), *observed))


def lines_of_file(file: InputFile) -> Iterator[bytes]:
    """Read the lines of a file: of text, or of a part of the table `events`. Raises OSError.

    A file that its writer has merged or retired since it was listed is read where its records are now, if they are.
    """
    place = file.source or current_path(Path(file.read))
    if place is None and numbers_of(Path(file.read).name).writer:
        return
    with naming(Path(file.listed)), (place or Path(file.read)).open("rb") as content:
        if file.read.endswith(PARQUET):  # which has lost the order of its lines
            import pyarrow.parquet

            with naming_damaged(file.listed):
                for batch in pyarrow.parquet.ParquetFile(content).iter_batches(columns=["raw"]):
                    yield from map(str.encode, batch.column("raw").to_pylist())
        else:
            yield from content if file.source is None else BufferedReader(content, BUFFER_BYTES)  # type: ignore[type-var]


def judge_group(files: Sequence[InputFile], question: AuditQuestion, read: ReadLines = lines_of_file) -> GroupVerdict:
    """Judge all runs in `files`. Raises OSError for what cannot be read."""
    chains = _writers(files)
    with collector_paused():
        if len(chains) <= MOST_WRITERS and not any(file.read.endswith(PARQUET) for file in files):
            try:
                return _Group(question, read).stream(chains)
            except OutOfOrder:
                pass
        return _Group(question, read).put_in_order(files)


def _writers(files: Sequence[InputFile]) -> list[list[InputFile]]:
    """Group the files by writer, in the order in which it wrote them."""
    chains: dict[tuple[str, str], list[InputFile]] = defaultdict(list)
    for file in sorted(files, key=_name):
        chains[str(PurePath(file.listed).parent), _name(file).rpartition("-")[0] or file.listed].append(file)
    return list(chains.values())


def _name(file: InputFile) -> str:
    return PurePath(file.read).name.removesuffix(SEALED_SUFFIX)


class _Group:
    def __init__(self, question: AuditQuestion, read: ReadLines) -> None:
        self._question, self._read = question, read
        self._judges: dict[str, RunJudge] = {}
        self._verdicts: list[RunVerdict] = []
        self._aside = SetAside()
        self._strange: dict[tuple[str, int], tuple[StrangeRecord, str]] = {}
        """By file and line number, the records that cannot be judged, with their problems."""

    def stream(self, chains: Sequence[Sequence[InputFile]]) -> GroupVerdict:
        """Judge lines in the order of their times. Raises `OutOfOrder`."""
        judge: RunJudge | None = None
        for line in by_time([chain.from_iterable(map(self._lines_of, files)) for files in chains]):
            run = line[3].run
            if judge is None or judge.run != run:
                judge = self._judge(run)
            if not judge.receive(line):
                self._aside.duplicates += 1
        for place, (strange, problem) in self._strange.items():
            self._judge(strange.run).report_strange(place, strange.member, strange.seq, problem)
        return self._verdict()

    def put_in_order(self, files: Sequence[InputFile]) -> GroupVerdict:
        """Hold all records, and judge those of each run in the order of causes.

        In tables each record stands once, so that a run can be judged as soon as it is whole.
        """
        runs: dict[str, dict[tuple[str, int], Line]] = {}
        repeats: list[Line] = []
        tables = [file for file in files if file.read.endswith(PARQUET)]
        left = Counter(run_of_line(raw).run for file in tables for raw in self._read(file))
        for file in files:
            for line in self._lines_of(file):
                record = line[3]
                lines = runs.setdefault(record.run, {})
                known = lines.setdefault((record.uuid, record.seq), line)
                if known is not line:
                    first, second = (line, known) if line[1:3] < known[1:3] else (known, line)
                    lines[record.uuid, record.seq] = first
                    repeats.append(second)
                left[record.run] -= 1
                if not left[record.run] and len(tables) == len(files):
                    self._judge_whole(record.run, runs.pop(record.run))
        for line in repeats:
            record = line[3]
            self._aside.repeat(*line[1:], is_same=runs[record.run][record.uuid, record.seq][4] == line[4])
        for run, lines in runs.items():
            self._judge_whole(run, lines)
        return self._verdict()

    def _judge_whole(self, run: str, lines: Mapping[tuple[str, int], Line]) -> None:
        ordered, leaps = by_cause(lines.values())
        judge = self._judge(run)
        for line in lines.values() if self._strange else ():
            if known := self._strange.get(line[1:3]):
                judge.report_strange(line[1:3], known[0].member, known[0].seq, known[1])
        judge.judge_in_order(ordered)
        judge.report_leaps(leaps)
        self._verdicts.append(self._judges.pop(run).verdict())

    def _judge(self, run: str) -> RunJudge:
        judge = self._judges.get(run)
        if judge is None:
            judge = self._judges[run] = RunJudge(run, self._question, observes=True)
        return judge

    def _lines_of(self, file: InputFile) -> Iterator[Line]:
        return records_of(file, self._read, self._aside, self._on_strange)

    def _on_strange(self, place: str, number: int, strange: StrangeRecord, problem: str) -> None:
        self._strange[place, number] = strange, problem

    def _verdict(self) -> GroupVerdict:
        return GroupVerdict((*self._verdicts, *(judge.verdict() for judge in self._judges.values())), self._aside)


def records_of(file: InputFile, read: ReadLines, aside: SetAside, on_strange: OnStrange) -> Iterator[Line]:
    """Yield the records of a file. Set aside what is no record; let another record stand in for a strange one."""
    place = f"{file_order(file.place)}\0{file.listed}"
    lines = iter(read(file))
    number = 0
    while raws := [line.rstrip(b"\n") for line in islice(lines, LINES_AT_ONCE)]:
        try:
            records = list(map(decode_record, raws))
        except NOT_DECODABLE:
            yield from _records_beside_others(raws, place, number, aside, on_strange)
        else:
            yield from zip(map(TIME, records), repeat(place), count(number + 1), records, raws, strict=False)
        number += len(raws)
    aside.lines += number


def _records_beside_others(
    raws: Sequence[bytes], place: str, before: int, aside: SetAside, on_strange: OnStrange
) -> Iterator[Line]:
    for number, raw in enumerate(raws, start=before + 1):
        try:
            record = decode_record(raw)
        except NOT_DECODABLE as problem:
            try:
                strange = strange_record(raw, problem)
            except NoRecord as reason:
                aside.quarantine(place, number, raw, str(reason))
                continue
            on_strange(place, number, strange, str(problem))
            record = strange.stand_in()
        yield record.at, place, number, record, raw
