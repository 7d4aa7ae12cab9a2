"""The tables of a store, and the files that are written for them: whole runs side by side, in one file for each table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql.types import StructField, StructType, TimestampType

from quarterdeck.backend.pipeline.commit import PARQUET
from quarterdeck.backend.pipeline.judging.lines import NO_RUN
from quarterdeck.backend.pipeline.schemas import RECORD, arrow_schema, schema
from quarterdeck.backend.pipeline.tables.data_tables import DATA_TABLES
from quarterdeck.backend.pipeline.tables.membership_tables import MEMBERSHIP_TABLES
from quarterdeck.backend.pipeline.tables.run_events import QuarantineRow, RecordLine, RunEvents

TARGET_BYTES = 128 << 20
"""No run is added to files whose events have reached this size."""
SMALL_BYTES = 8 << 20
MOST_SMALL = 8
"""More files of a table that have fewer bytes than `SMALL_BYTES` are put together."""
ROWS_A_GROUP = 64 << 10
EVENTS_AT_ONCE = 16 << 10
"""Tables are made of the events of several small runs together."""

TABLES = {table.name: table for table in (*MEMBERSHIP_TABLES, *DATA_TABLES)}
"""In the order of the reference. Each is made of events that occur once."""

EVENTS = StructType(
    [
        *(field if field.name != "utc" else StructField("utc", TimestampType()) for field in RECORD.fields),
        *schema(
            """
            raw string the line as it stands in the journal
            file string the first file in which it stands
            line bigint its number there, from 1; 0 where that is not known
            """
        ).fields,
    ]
)
"""Each record once. Fields of events that this version does not know are in `raw`."""

QUARANTINE = schema(
    f"""
    run string the run that the line names, else that of the directory of its file, else `{NO_RUN}`
    file string a file in which it stands
    raw string the line as it stands in the journal
    reason string why it is not a record, or which one it contradicts
    contradicts boolean whether it is a record, but not the first of its identity
    line bigint its number in the file, from 1; 0 where that is not known
    """
)
"""Lines that are no records."""

SCHEMAS: dict[str, StructType] = {
    "events": EVENTS,
    "quarantine": QUARANTINE,
    **{name: table.schema for name, table in TABLES.items()},
}
"""All tables of a store, by name."""

ARROW = {name: arrow_schema(columns) for name, columns in SCHEMAS.items()}
_FIELDS = sorted({name for table in TABLES.values() for name in table.fields.split()})


class BatchWriter:
    """Writes into a directory files of whole runs that belong together, one for each table that has rows of them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._name = uuid4().hex[:12]
        self._writers: dict[str, TableWriter] = {}
        self._pending: list[pa.Table] = []

    def add(self, name: str, rows: pa.Table) -> None:
        if rows.num_rows:
            if name not in self._writers:
                self._writers[name] = TableWriter(self._folder / name / f"{self._name}{PARQUET}", ARROW[name])
            self._writers[name].add(rows)

    def add_lines(self, events: Sequence[RecordLine], columns: pa.Table) -> None:
        """Add events of a run, with the columns of their records."""
        columns = columns.append_column("raw", pa.array([line.raw for line in events], pa.string()))
        columns = columns.append_column("file", pa.array([line.file for line in events], pa.string()))
        columns = columns.append_column("line", pa.array([line.number for line in events], pa.int64()))
        self.add("events", columns.cast(ARROW["events"]))

    def add_quarantined(self, rows: Sequence[QuarantineRow]) -> None:
        self.add("quarantine", pa.Table.from_pylist([row._asdict() for row in rows], ARROW["quarantine"]))

    def derive(self, events: pa.Table) -> None:
        """Make all tables of the events of whole runs: columns of a record, those that `needed` returns."""
        self._pending.append(events)
        if sum(table.num_rows for table in self._pending) >= EVENTS_AT_ONCE:
            self._derive_pending()

    def end_run(self) -> None:
        """Begin other files if these are large enough: no run is in two of them."""
        if "events" in self._writers and self._writers["events"].size_bytes >= TARGET_BYTES:
            self.close()

    def close(self) -> None:
        """Write what is left. Raises OSError."""
        self._derive_pending()
        for writer in self._writers.values():
            writer.close()
        self._name, self._writers = uuid4().hex[:12], {}

    def _derive_pending(self) -> None:
        if self._pending:
            events = RunEvents(pa.concat_tables(self._pending))
            self._pending = []
            for name, table in TABLES.items():
                self.add(name, table.arrow(events))


class TableWriter:
    """Writes a file of one table."""

    def __init__(self, path: Path, fields: pa.Schema) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("wb")
        self._writer = pq.ParquetWriter(self._file, fields, compression="zstd")
        self._held: list[pa.Table] = []

    @property
    def size_bytes(self) -> int:
        """How large the file is so far."""
        return self._file.tell()

    def add(self, rows: pa.Table) -> None:
        self._held.append(rows)
        if sum(table.num_rows for table in self._held) >= ROWS_A_GROUP:
            self._flush()

    def close(self) -> None:
        """Write what is held, and end the file."""
        self._flush()
        self._writer.close()
        self._file.close()

    def _flush(self) -> None:
        if self._held:
            self._writer.write_table(pa.concat_tables(self._held), row_group_size=ROWS_A_GROUP)
            self._held = []


def needed(events: pa.Table) -> pa.Table:
    """Return the columns that the tables are made of."""
    fields = [pc.struct_field(events["event"], name).combine_chunks() for name in _FIELDS]
    columns = {name: events[name] for name in (*RECORD.names[:5], "form")}
    utc = events["utc"].cast(ARROW["events"].field("utc").type)
    return pa.table(columns | {"utc": utc, "event": pa.StructArray.from_arrays(fields, names=_FIELDS)})


def known_columns(table: pa.Table, fields: pa.Schema) -> pa.Table:
    """Return just these columns; those that the table lacks are null."""
    names = table.column_names
    columns = [
        table[field.name].cast(field.type) if field.name in names else pa.nulls(table.num_rows, field.type)
        for field in fields
    ]
    return pa.table(columns, schema=fields)
