"""Tables on disk: a few Parquet files for each, made of journals in one pass and updated as more of them arrives.

The lines of the journals are kept unchanged in the tables `events` and `quarantine`; all others are made of `events`.
So a file is read once. Lines that come later, from another member or another place, are folded in as if all had been
read at once. Rows of other runs are not touched.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from uuid import uuid4

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from msgspec import Struct
from pyarrow.dataset import Dataset, dataset, partitioning

from quarterdeck.backend.journal.files import NoJournal
from quarterdeck.backend.pipeline import commit
from quarterdeck.backend.pipeline.address import Address, Place, address_of, naming_damaged, place_of
from quarterdeck.backend.pipeline.audit_input import AuditInput, resolve_input
from quarterdeck.backend.pipeline.commit import PARQUET, StoreRefused, TableManifest
from quarterdeck.backend.pipeline.delta_snapshot import DeltaSnapshot, newest
from quarterdeck.backend.pipeline.judging.lines import NO_RUN
from quarterdeck.backend.pipeline.rules import Finding
from quarterdeck.backend.pipeline.schemas import arrow_schema, columns_of
from quarterdeck.backend.pipeline.spark.engine import HERE, Engine, engine_session
from quarterdeck.backend.pipeline.staging import staging_folder
from quarterdeck.backend.pipeline.tables.batches import (
    ARROW,
    MOST_SMALL,
    ROWS_A_GROUP,
    SCHEMAS,
    SMALL_BYTES,
    TABLES,
    TableWriter,
    known_columns,
    needed,
)
from quarterdeck.backend.pipeline.tables.delta_store import update_delta
from quarterdeck.backend.pipeline.tables.fold import KEPT, Counts, Fold, fold_in
from quarterdeck.backend.pipeline.tables.run_events import RunEvents, RunLines
from quarterdeck.backend.pipeline.tasks import collector_paused

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


FORMER_NAMES = {"incarnations": "lives"}
"""Tables by the names that they have in stores of earlier versions."""

FORMAT = sha256(
    "".join(f"{name} {columns.simpleString()}\n" for name, columns in SCHEMAS.items()).encode()
).hexdigest()[:16]
"""The form of the tables: a store of another form is made anew from the lines that it keeps."""


class StoreUpdate(Struct, frozen=True):
    """The result of an update. `runs` are those of the lines that were read."""

    files_read: int
    files_known: int
    runs: tuple[str, ...]
    records: int
    """Of those runs, as is `quarantined`."""
    quarantined: int
    tables: dict[str, int] = {}
    """How many rows each table has now, of all runs."""


TableFormat = Literal["", "parquet", "delta"]
"""How a store keeps its tables. Empty: as it does; a new one in files of Parquet here, in tables of Delta Lake at an address."""


def update_store(
    paths: Sequence[Path | str],
    store: Path | str,
    table_format: TableFormat = "",
    engine: Engine = HERE,
) -> StoreUpdate:
    """Update the tables at `store` with the journals at `paths`; what came from others before is kept.

    New lines of a run are added to its events. The tables that are made of events need the whole run: they are made anew from its
    kept events.

    `paths` and `store` may be addresses, where only finished files are read. Several processes may write to tables of Delta Lake
    at the same time.

    Spark makes the rows unless the `engine` is ``here``; its tasks write below `store`. Those of tables at an address are made
    here unless the `engine` names Spark, which must be of this machine.

    Raises `NoJournal`, `StoreRefused`, `PipelineMissing`, `SparkUnreachable` or OSError. Whatever fails, and whenever the
    process dies, all tables are either as they were, or as they should be.
    """
    place = _place(store, table_format)
    with staging_folder() as folder:
        found = resolve_input(paths, folder, "journal")
        if found.kind == "store":
            raise NoJournal(f"{found.paths[0]}: holds tables; expected the journals that they are made of")
        if isinstance(place, Address):
            if any(file.read.startswith(f"{str(place).rstrip('/')}/") for file in found.files):
                raise StoreRefused(f"{place} holds a journal, which tables would hide; choose another directory")
            counts, files_read, files_known, rows = update_delta(place, found, FORMAT, engine)
        else:
            counts, files_read, files_known, rows = update_parquet(place, found, FORMAT, engine)
    records, quarantined = (sum(count[which] for count in counts.values()) for which in (0, 1))
    runs = sorted(
        run for run, (records_of_run, _) in counts.items() if records_of_run or run != NO_RUN
    )  # no stray lines
    return StoreUpdate(files_read, files_known, tuple(runs), records, quarantined, rows)


def _place(store: Path | str, table_format: TableFormat) -> Place:
    """Return where tables of this format are, those of Delta as an address. Raises `StoreRefused` for another format."""
    place = place_of(store)
    if isinstance(place, Address):
        if table_format == "parquet":
            raise StoreRefused(f"{store}: tables at an address are Delta's; leave --format out")
        return place
    address = address_of(f"file://{place.resolve()}")
    is_delta = newest(address) is not None
    holds_other = {"parquet": is_delta, "delta": commit.read_manifest(place) is not None}
    if holds_other.get(table_format, False):
        raise StoreRefused(f"{place} holds tables of the other format; choose another directory")
    if not is_delta:
        commit.check(place, ())
    return address if is_delta or table_format == "delta" else place


def read_table(spark: SparkSession, store: Path | DeltaSnapshot, name: str) -> DataFrame:
    """Read the table `name` of the store with the columns that this version knows: missing ones are null, others are left out."""
    schema = SCHEMAS[name]
    if isinstance(store, Path):
        folder = name if (store / name).exists() else FORMER_NAMES.get(name, name)
        return spark.read.schema(schema).parquet(f"{store}/{folder}").select(schema.names)
    from quarterdeck.backend.pipeline.spark.arrow import in_tasks

    def read(files: Iterator[Address]) -> Iterator[pa.RecordBatch]:
        for file in files:
            with file.open() as content:
                for batch in pq.ParquetFile(content).iter_batches():
                    yield from known_columns(pa.Table.from_batches([batch]), ARROW[name]).to_batches()

    return in_tasks(spark, store.files(name) or store.files(FORMER_NAMES.get(name, "")), read, schema)


# In files of Parquet

EMPTY = f"empty{PARQUET}"
"""The file of a table without rows, so that every program can read it by its folder."""

RUN_IN_PATH = partitioning(pa.schema([("run", pa.string())]), flavor="hive")
"""In stores of earlier versions each run has a directory."""


def update_parquet(
    store: Path, found: AuditInput, form: str, engine: Engine = HERE
) -> tuple[Counts, int, int, dict[str, int]]:
    """Update the store with the journals in `found`; one of another form than `form` is made anew from its lines first.

    Return the runs that were read, how many files they were in, how many files were known, and how many rows each table has.
    Raises `StoreRefused` and OSError.
    """
    counts: Counts = {}
    with commit.open_for_build(store, tuple(ARROW)) as building:
        manifest = commit.read_manifest(store)
        if manifest is not None and manifest.form != form:
            with collector_paused():
                fold = Fold(_kept(store), building)
                fold.make_anew()
            counts = fold.counts
            _replace(store, building, TableManifest(form, manifest.files), None)
    with commit.open_for_build(store, tuple(ARROW)) as building, naming_damaged(store):
        manifest = commit.read_manifest(store) or TableManifest(form, {})
        new = found.without(manifest.files)
        if new.files:
            if engine.name == "here":
                with collector_paused():
                    fold = fold_in(partial(_kept, store), new, building)
            else:
                with engine_session(engine, "pipeline tables") as spark:
                    fold = fold_in(partial(_kept, store.resolve()), new, building.resolve(), spark=spark)
            counts |= fold.counts
            stamps = {file.place: file.stamp for file in new.files if not file.opened}
            _replace(store, building, TableManifest(form, {**manifest.files, **stamps}), fold.replaced)
        rows = {
            table: sum(pq.read_metadata(file).num_rows for file in commit.files_of(store, table)) for table in ARROW
        }
    return counts, len(new.files), len(manifest.files), rows


def _kept(store: Path) -> dict[str, Dataset]:
    return {
        table: dataset(
            list(map(str, commit.files_of(store, table))),
            schema=ARROW[table],
            format="parquet",
            partitioning=RUN_IN_PATH,
            partition_base_dir=str(store / table),
        )
        for table in KEPT
    }


def _replace(store: Path, building: Path, manifest: TableManifest, replaced: Mapping[str, set[str]] | None) -> None:
    """Make the new files, and what is kept of the old ones, the content of the store.

    `replaced`: by table, the runs whose kept rows go; None: all go. Small files are put together where there are many.
    """
    stay: dict[str, list[str]] = {}
    for table, fields in ARROW.items():
        folder = building / table
        folder.mkdir(exist_ok=True)
        old = [] if replaced is None else [file for file in commit.files_of(store, table) if file.name != EMPTY]
        if replaced is not None and replaced[table]:
            old = [file for file in old if not _leave_out(file, replaced[table], folder)]
        small = [file for file in (*old, *folder.iterdir()) if file.stat().st_size < SMALL_BYTES]
        if len(small) > MOST_SMALL:
            _write(folder / f"{uuid4().hex[:12]}{PARQUET}", dataset(list(map(str, small)), schema=fields))
            old = [file for file in old if file not in small]
            for file in folder.iterdir():
                if file in small:
                    file.unlink()
        if not old and not any(folder.iterdir()):
            _write(folder / EMPTY, dataset(fields.empty_table()))
        stay[table] = [file.name for file in old]
    commit.commit(store, building, manifest, stay)


def _leave_out(file: Path, runs: set[str], folder: Path) -> bool:
    """Write the file without the rows of these runs into the folder, if it has any. Return whether it does."""
    rows, of_runs = dataset(str(file)), pc.field("run").isin(sorted(runs))
    if not rows.count_rows(filter=of_runs):
        return False
    if rows.count_rows(filter=~of_runs):
        _write(folder / file.name, rows.filter(~of_runs))
    return True


def _write(place: Path, rows: Dataset) -> None:
    writer = TableWriter(place, rows.schema)
    for batch in rows.to_batches():
        writer.add(pa.Table.from_batches([batch]))
    writer.close()


# Those of an audit

AUDIT_FORMAT = "2"
MADE_OF_EVENTS = ("views", "suspicions")


def make_tables(of_runs: Collection[Mapping[str, pa.Table]], findings: Sequence[Finding]) -> dict[str, pa.Table]:
    """Make the tables that an audit writes, of those of its runs."""
    tables = {
        name: pa.concat_tables([ARROW[name].empty_table(), *(made[name] for made in of_runs)])
        for name in MADE_OF_EVENTS
    }
    return tables | {"findings": findings_table(findings)}


def findings_table(findings: Sequence[Finding]) -> pa.Table:
    """Return findings as a table."""
    return pa.Table.from_pylist(list(map(msgspec.to_builtins, findings)), arrow_schema(columns_of(Finding)))


def tables_of_run(run: str, lines: RunLines) -> dict[str, pa.Table]:
    """Make of a run the tables that are made of events."""
    events = RunEvents(needed(lines.events(run)[1]))
    return {name: TABLES[name].arrow(events) for name in MADE_OF_EVENTS}


def write_tables(tables: Mapping[str, pa.Table], out_dir: Place, writer: str) -> None:
    """Replace the tables of an earlier audit: here all of them or none, at an address one after the other.

    Raises `StoreRefused` and OSError.
    """
    manifest = commit.TableManifest(AUDIT_FORMAT, {}, writer)
    if not isinstance(out_dir, Path):
        commit.check(out_dir, tuple(tables), writer)
        (out_dir / commit.MANIFEST).write_bytes(msgspec.json.encode(manifest))
        for name, table in tables.items():
            content = pa.BufferOutputStream()
            pq.write_table(table, content, compression="zstd", row_group_size=ROWS_A_GROUP)
            (out_dir / name / f"{name}{PARQUET}").write_bytes(content.getvalue())
        return
    with commit.open_for_build(out_dir, tuple(tables), writer) as building:
        for name, table in tables.items():
            _write(building / name / f"{name}{PARQUET}", dataset(table))
        commit.commit(out_dir, building, manifest, dict.fromkeys(tables, ()))
