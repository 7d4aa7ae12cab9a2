"""The lines of journals by run: events, each once, in columns that are asked by kind, and what is quarantined with a reason."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from operator import attrgetter
from pathlib import PurePosixPath
from typing import Any, NamedTuple, TypeVar

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StructType

from quarterdeck.backend.core.events import CLUSTER_EVENTS
from quarterdeck.backend.journal.files import NOT_DECODABLE, RUN_PREFIX
from quarterdeck.backend.pipeline.audit_input import InputFile
from quarterdeck.backend.pipeline.judging.group_judge import ReadLines, lines_of_file
from quarterdeck.backend.pipeline.judging.lines import (
    CONTRADICTS,
    NO_RUN,
    TORN,
    NoRecord,
    decode_record,
    file_order,
    run_of_line,
    strange_record,
)
from quarterdeck.backend.pipeline.schemas import RECORD, arrow_schema

Row = dict[str, Any]
RowT = TypeVar("RowT")

ROWS_AT_ONCE = 4_096

_ARROW = arrow_schema(RECORD)
_RECORD = pa.struct(list(_ARROW))
_decode = msgspec.json.Decoder().decode


class UnfitLines(ValueError):
    """Records with a number that no column can hold; `lines` are theirs."""

    def __init__(self, lines: Sequence[bytes]) -> None:
        super().__init__("a number that no column can hold")
        self.lines = frozenset(lines)


class RunEvents:
    """Events of whole runs: a table with the columns of a record, of which `event` may have only some fields."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table.combine_chunks()
        self._kinds = pc.struct_field(self._table["event"], "kind")

    def column(self, name: str) -> pa.ChunkedArray:
        """Return a column of the record, or the kinds of all events."""
        return self._kinds if name == "kind" else self._table[name]

    def mask(self, *kinds: str) -> pa.ChunkedArray:
        """Return which events are of these kinds."""
        return pc.is_in(self._kinds, pa.array(kinds))

    def columns(self, mask: pa.ChunkedArray, envelope: str, event: str = "") -> pa.Table:
        """Return columns of the record, and fields of its event, for the events of `mask`."""
        kept = self._table.select([*envelope.split(), "event"]).filter(mask)
        fields = {name: pc.struct_field(kept["event"], name) for name in event.split()}
        return pa.table({name: kept[name] for name in envelope.split()} | fields)

    def rows(self, kinds: Sequence[str], envelope: str, event: str = "", among: pa.Array | None = None) -> list[Row]:
        """Return the events of these kinds as rows; only of the incarnations `among` these, if they are named."""
        mask = self.mask(*kinds)
        if among is not None:
            mask = pc.and_(mask, pc.is_in(self._table["uuid"], among))
        table = self.columns(mask, envelope, event)
        if not table.num_rows:
            return []
        columns, names = [column.to_pylist() for column in table.columns], table.column_names
        return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


Make = Callable[[RunEvents], "list[Row] | pa.Table"]


@dataclass(frozen=True)
class JournalTable:
    """A table that is made of events: its columns, the kinds of events that it needs and their fields, and how it is made."""

    name: str
    schema: StructType
    kinds: tuple[str, ...]
    """Empty: all."""
    fields: str
    meaning: str
    make: Make

    def arrow(self, events: RunEvents) -> pa.Table:
        made = self.make(events)
        return shaped(made if isinstance(made, pa.Table) else table_of(made, self.schema), self.schema)


def journal_table(
    name: str, columns: StructType, kinds: Sequence[str], fields: str, meaning: str
) -> Callable[[Make], JournalTable]:
    """Declare the table that the decorated function makes."""
    return lambda make: JournalTable(name, columns, tuple(kinds), f"kind {fields}", meaning, make)


def shaped(table: pa.Table, wanted: StructType) -> pa.Table:
    """Select just the columns of `wanted`, in its order and types."""
    fields = arrow_schema(wanted)
    return pa.table([table[field.name].cast(field.type) for field in fields], schema=fields)


def table_of(rows: Sequence[Row], wanted: StructType) -> pa.Table:
    """Return rows as a table."""
    fields = arrow_schema(wanted)
    return pa.table([pa.array([row.get(field.name) for row in rows], field.type) for field in fields], schema=fields)


def record_columns(raws: Sequence[bytes]) -> pa.Table:
    """Return the columns of the records in these lines. A field that a line lacks is null. Raises `UnfitLines`."""
    parts = [_some_columns(raws[at : at + ROWS_AT_ONCE]) for at in range(0, len(raws), ROWS_AT_ONCE)]
    return pa.Table.from_batches(parts, _ARROW)


def _some_columns(raws: Sequence[bytes]) -> pa.RecordBatch:
    rows = [_decode(raw) for raw in raws]
    for row in rows:
        row["run"] = row["run"] or NO_RUN
    try:
        return pa.RecordBatch.from_struct_array(pa.array(rows, _RECORD))
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        raise UnfitLines([raw for raw, row in zip(raws, rows, strict=True) if not _fits(row)]) from None


def _fits(row: Row) -> bool:
    try:
        pa.array([row], _RECORD)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return False
    return True


def followed(in_order: Sequence[RowT]) -> Iterator[tuple[RowT, RowT | None]]:
    """Yield each row with the next one, which the last does not have."""
    yield from zip_longest(in_order, in_order[1:])


def shares_of(counts: Mapping[str, int], most: int) -> Iterator[list[str]]:
    """Divide runs with so many lines each among shares of no more than `most` lines, if no run has more."""
    share, held = list[str](), 0
    for run, count in counts.items():
        if share and held + count > most:
            yield share
            share, held = [], 0
        share.append(run)
        held += count
    if share:
        yield share


def nones_first(row: Row, names: Iterable[str]) -> list[Any]:
    """Return what rows are sorted by in the order of these fields, None before all else."""
    return [(row[name] is not None, str(row[name]) if isinstance(row[name], list) else row[name]) for name in names]


# Lines


class RecordLine(NamedTuple):
    """A line that is a record."""

    at: int
    raw: bytes
    file: str
    number: int
    """Of the line in its file, from 1; 0 where that is not known."""
    uuid: str
    seq: int

    @property
    def place(self) -> tuple[str, int]:
        """Where it stands; of several lines with one identity the first one counts."""
        return file_order(self.file), self.number


class QuarantineRow(NamedTuple):
    """A row of the table `quarantine`."""

    run: str
    file: str
    raw: str
    reason: str
    contradicts: bool
    line: int


class RunLines:
    """The lines of some files: records by run, and what is no record."""

    def __init__(self, wanted: Collection[str] | None = None) -> None:
        """`wanted`: the runs whose lines are kept; all, where none are named."""
        self._wanted = wanted
        self.records: dict[str, list[RecordLine]] = defaultdict(list)
        self.quarantine: dict[str, list[QuarantineRow]] = defaultdict(list)
        self.members: dict[str, set[str]] = defaultdict(set)
        """The labels of the members, by run."""

    def read(self, files: Iterable[InputFile], read: ReadLines = lines_of_file) -> None:
        """Add the lines of files. Raises OSError."""
        for file in files:
            place = file.place
            directory = PurePosixPath(place).parent.name
            run = directory.removeprefix(RUN_PREFIX) if directory.startswith(RUN_PREFIX) else NO_RUN
            for number, line in enumerate(read(file), start=1):
                self.add(line.rstrip(b"\n"), place, number, run)

    def add(self, raw: bytes, file: str, number: int, run: str) -> None:
        """Add the line of this number in `file`; `run` is that of a line that names none."""
        if self._wanted is not None and (_run_named(raw) or NO_RUN) not in self._wanted:
            return
        try:
            head = decode_record(raw)
        except NOT_DECODABLE as problem:
            try:
                head = strange_record(raw, problem)  # type: ignore[assignment] # only its head counts
            except NoRecord as reason:
                self._set_aside(_run_named(raw) or run, file, number, raw, str(reason))
                return
        named = head.run or NO_RUN
        self.records[named].append(RecordLine(head.at, raw, file, number, head.uuid, head.seq))
        if getattr(head, "event", None).__class__ not in CLUSTER_EVENTS:
            self.members[named].add(head.member)

    def runs(self) -> list[str]:
        return list(self.records | self.quarantine)

    def first_of(self, run: str) -> dict[tuple[str, int], RecordLine]:
        """Return the records of the run by identity, each once: the first one by file and line."""
        first: dict[tuple[str, int], RecordLine] = {}
        for line in sorted(self.records[run], key=attrgetter("place")):
            first.setdefault((line.uuid, line.seq), line)
        return first

    def events(self, run: str) -> tuple[list[RecordLine], pa.Table]:
        """Return each event of the run once, by time, as lines and as columns; set aside what contradicts one, or fits none."""
        while True:
            first = self.first_of(run)
            contradicting = [line for line in self.records[run] if first[line.uuid, line.seq].raw != line.raw]
            events = sorted(first.values(), key=lambda line: (line.at, line.place))
            try:
                columns = record_columns([line.raw for line in events])
            except UnfitLines as unfit:
                for line in events:
                    if line.raw in unfit.lines:
                        self._set_aside(run, line.file, line.number, line.raw, TORN)
                self.records[run] = [line for line in self.records[run] if line.raw not in unfit.lines]
                continue
            for line in contradicting:
                reason = f"{CONTRADICTS}, uuid {line.uuid} seq {line.seq}"
                self._set_aside(run, line.file, line.number, line.raw, reason, contradicts=True)
            return events, columns

    def _set_aside(
        self, run: str, file: str, number: int, raw: bytes, reason: str, *, contradicts: bool = False
    ) -> None:
        text = raw.decode(errors="replace")
        self.quarantine[run].append(QuarantineRow(run, file, text, reason, contradicts, number))


def _run_named(raw: bytes) -> str:
    try:
        return run_of_line(raw).run
    except NOT_DECODABLE:
        return ""
