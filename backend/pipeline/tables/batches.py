"""The files of a store: each batch holds whole runs, in one Parquet file for each table that has rows of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql.types import StructField, StructType, TimestampType

from quarterdeck.backend.pipeline.commit import PARQUET, RunBatch
from quarterdeck.backend.pipeline.judging.lines import NO_RUN
from quarterdeck.backend.pipeline.schemas import RECORD, arrow_schema, schema
from quarterdeck.backend.pipeline.tables.data_tables import DATA_TABLES, FAULT_TABLE
from quarterdeck.backend.pipeline.tables.membership_tables import MEMBERSHIP_TABLES
from quarterdeck.backend.pipeline.tables.run_events import QuarantineRow, RecordLine, RunEvents

TARGET_BYTES = 128 << 20
"""A batch whose events reach this size is closed."""
SMALL_BYTES = 8 << 20
MOST_SMALL = 8
"""More batches whose files have fewer bytes than `SMALL_BYTES` are put together."""
ROWS_A_GROUP = 64 << 10
EVENTS_AT_ONCE = 16 << 10
"""Tables are made of the events of several small runs together."""

TABLES = {table.name: table for table in (*MEMBERSHIP_TABLES, *DATA_TABLES, FAULT_TABLE)}
"""In the order of the reference. Each is made of events that occur once."""

EVENTS = StructType(
    [
        *(field if field.name != "utc" else StructField("utc", TimestampType()) for field in RECORD.fields),
        *schema(
            """
            raw string the line as it stands in the journal
            file string a file in which it stands
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
    """Writes batches into a directory, one after the other."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.batches: dict[str, RunBatch] = {}
        self._name = ""
        self._runs: set[str] = set()
        self._writers: dict[str, _TableWriter] = {}
        self._pending: list[pa.Table] = []

    def add(self, run: str, name: str, rows: pa.Table) -> None:
        """Add rows of a run to a table."""
        if not self._name:
            self._name = uuid4().hex[:12]
        if rows.num_rows:
            self._runs.add(run)
            if name not in self._writers:
                self._writers[name] = _TableWriter(self._folder / name / f"{self._name}{PARQUET}", ARROW[name])
            self._writers[name].add(rows)

    def add_lines(
        self, run: str, events: Sequence[RecordLine], columns: pa.Table, quarantine: Sequence[QuarantineRow]
    ) -> None:
        """Add events of a run, with the columns of their records, and quarantined lines."""
        columns = columns.append_column("raw", pa.array([line.raw for line in events], pa.string()))
        columns = columns.append_column("file", pa.array([line.file for line in events], pa.string()))
        self.add(run, "events", columns.cast(ARROW["events"]))
        rows = [row._asdict() for row in quarantine]
        self.add(run, "quarantine", pa.Table.from_pylist(rows, ARROW["quarantine"]))

    def derive(self, run: str, events: pa.Table) -> None:
        """Make all tables of a whole run's events: columns of a record, at least those that `needed` returns."""
        self._runs.add(run)
        self._pending.append(needed(events))
        if sum(table.num_rows for table in self._pending) >= EVENTS_AT_ONCE:
            self._derive_pending()

    def end_run(self) -> None:
        """Close the batch if it is large enough: a run is never in two batches of one writer."""
        if "events" in self._writers and self._writers["events"].size_bytes >= TARGET_BYTES:
            self.close()

    def close(self) -> None:
        """Write what is left of the batch. Raises OSError."""
        self._derive_pending()
        for writer in self._writers.values():
            writer.close()
        if self._writers:
            rows = {name: writer.rows for name, writer in self._writers.items()}
            self.batches[self._name] = RunBatch(tuple(sorted(self._runs)), rows)
        self._name, self._runs, self._writers = "", set(), {}

    def _derive_pending(self) -> None:
        if self._pending:
            events = RunEvents(pa.concat_tables(self._pending))
            self._pending = []
            for name, table in TABLES.items():
                self.add(next(iter(self._runs)), name, table.arrow(events))


class _TableWriter:
    def __init__(self, path: Path, fields: pa.Schema) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("wb")
        self._writer = pq.ParquetWriter(self._file, fields, compression="zstd")
        self._held: list[pa.Table] = []
        self._held_rows = self.rows = 0

    @property
    def size_bytes(self) -> int:
        """How large the file is so far."""
        return self._file.tell()

    def add(self, rows: pa.Table) -> None:
        """Add rows."""
        self._held.append(rows)
        self.rows += rows.num_rows
        self._held_rows += rows.num_rows
        if self._held_rows >= ROWS_A_GROUP:
            self._flush()

    def close(self) -> None:
        """Write what is held, and end the file."""
        self._flush()
        self._writer.close()
        self._file.close()

    def _flush(self) -> None:
        if self._held:
            self._writer.write_table(pa.concat_tables(self._held), row_group_size=ROWS_A_GROUP)
            self._held, self._held_rows = [], 0


def needed(events: pa.Table) -> pa.Table:
    """Return the columns that the tables are made of."""
    fields = [pc.struct_field(events["event"], name).combine_chunks() for name in _FIELDS]
    columns = {name: events[name] for name in (*RECORD.names[:5], "form")}
    utc = events["utc"].cast(ARROW["events"].field("utc").type)
    return pa.table(columns | {"utc": utc, "event": pa.StructArray.from_arrays(fields, names=_FIELDS)})


def rows_of_runs(
    parts: Sequence[Path], columns: Sequence[str], runs: Collection[str] | None = None
) -> Iterator[pa.Table]:
    """Yield these columns of the rows of `runs`, or of all, some at a time. `run` is null in stores of earlier forms."""
    wanted = None if runs is None else pa.array(sorted(runs), pa.string())
    for part in parts:
        file = pq.ParquetFile(part)
        wanted_fields = pa.schema([ARROW["events"].field(name) for name in columns])
        for batch in file.iter_batches(ROWS_A_GROUP, columns=list(columns)):
            table = known_columns(pa.Table.from_batches([batch]), wanted_fields)
            table = table if wanted is None else table.filter(pc.is_in(table["run"], wanted))
            if table.num_rows:
                yield table


def known_columns(table: pa.Table, fields: pa.Schema) -> pa.Table:
    """Return just these columns; those that the table lacks are null."""
    names = table.column_names
    columns = [
        table[field.name].cast(field.type) if field.name in names else pa.nulls(table.num_rows, field.type)
        for field in fields
    ]
    return pa.table(columns, schema=fields)


def without_runs(part: Path, place: Path, runs: Collection[str]) -> int | None:
    """Write `part` to `place` without the rows of `runs`. Return how many are left; None where nothing has to go."""
    gone = pa.array(sorted(runs), pa.string())
    file = pq.ParquetFile(part)
    if not any(pc.any(pc.is_in(batch["run"], gone)).as_py() for batch in file.iter_batches(columns=["run"])):
        return None
    writer: _TableWriter | None = None
    for batch in file.iter_batches(ROWS_A_GROUP):
        table = pa.Table.from_batches([batch])
        table = table.filter(pc.invert(pc.is_in(table["run"], gone)))
        if table.num_rows:
            writer = writer or _TableWriter(place, table.schema)
            writer.add(table)
    if writer is None:
        return 0
    writer.close()
    return writer.rows


def put_together(parts: Mapping[str, Sequence[Path]], folder: Path, name: str) -> dict[str, int]:
    """Write the rows of several files of each table into one, of this name in `folder`. Return how many rows by table."""
    rows = Counter[str]()
    for table, files in parts.items():
        if files:
            writer = _TableWriter(folder / table / f"{name}{PARQUET}", ARROW[table])
            for file in files:
                for batch in pq.ParquetFile(file).iter_batches(ROWS_A_GROUP):
                    writer.add(pa.Table.from_batches([batch]).cast(ARROW[table]))
            writer.close()
            rows[table] = writer.rows
    return dict(rows)
