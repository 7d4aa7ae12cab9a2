"""The events of runs in columns: made of the lines of journals, and asked by kind by what makes the other tables of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, TypeVar

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StructType

from quarterdeck.backend.pipeline.judging.lines import NO_RUN
from quarterdeck.backend.pipeline.schemas import RECORD
from quarterdeck.backend.pipeline.tables.columns import arrow_schema

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
        columns = [column.to_pylist() for column in table.columns]
        return [dict(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True)]


@dataclass(frozen=True)
class JournalTable:
    """A table that is made of events: its columns, the fields and kinds of events that it needs, and how it is made."""

    name: str
    schema: StructType
    fields: str
    kinds: tuple[str, ...]
    """Empty: all."""
    make: Callable[[RunEvents], list[Row] | pa.Table]
    meaning: str

    def arrow(self, events: RunEvents) -> pa.Table:
        """Return the table of these events."""
        made = self.make(events)
        return shaped(made if isinstance(made, pa.Table) else table_of(made, self.schema), self.schema)


def shaped(table: pa.Table, wanted: StructType) -> pa.Table:
    """Select just the columns of `wanted`, in its order and types."""
    fields = arrow_schema(wanted)
    return pa.table([table[field.name].cast(field.type, safe=False) for field in fields], schema=fields)


def table_of(rows: Sequence[Row], wanted: StructType) -> pa.Table:
    """Return rows as a table; a number may be greater than its column holds."""
    fields = arrow_schema(wanted)
    wide = [pa.int64() if pa.types.is_integer(field.type) else field.type for field in fields]
    return pa.table(
        [pa.array([row.get(field.name) for row in rows], kind) for field, kind in zip(fields, wide, strict=True)],
        names=fields.names,
    )


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
