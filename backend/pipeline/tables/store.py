"""Tables on disk: a few Parquet files for each, made of journals in one pass and updated as more of them arrives.

The lines of the journals are kept unchanged in the tables `events` and `quarantine`; all others are made of `events`.
So a file is read once. Lines that come later, from another member or another place, are folded in as if all had been
read at once. Rows of other runs are not touched.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Struct, structs

from quarterdeck.backend.journal.files import NoJournal
from quarterdeck.backend.pipeline import commit
from quarterdeck.backend.pipeline.address import Address, Place, address_of, place_of
from quarterdeck.backend.pipeline.audit_input import AuditInput, resolve_input
from quarterdeck.backend.pipeline.commit import StoreRefused, TableManifest
from quarterdeck.backend.pipeline.delta_snapshot import DeltaSnapshot, newest, open_table
from quarterdeck.backend.pipeline.judging.group_judge import collector_paused
from quarterdeck.backend.pipeline.judging.lines import NO_RUN
from quarterdeck.backend.pipeline.tables.batches import ARROW, SCHEMAS, known_columns
from quarterdeck.backend.pipeline.tables.fold import Fold, RunDivided

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

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


def update_store(paths: Sequence[Path | str], store: Path | str, table_format: TableFormat = "") -> StoreUpdate:
    """Update the tables at `store` with the journals at `paths`; what came from others before is kept.

    New lines of a run are added to its events. The tables that are made of events need the whole run: they are made anew from its
    kept events.

    `paths` and `store` may be addresses, where only finished files are read. Several processes may write to tables of Delta Lake
    at the same time.

    Raises `NoJournal`, `StoreRefused`, `PipelineMissing`, or OSError. Whatever fails, and whenever the process dies, all tables
    are either as they were, or as they should be.
    """
    place = _place(store, table_format)
    with tempfile.TemporaryDirectory(prefix="quarterdeck-tables-") as folder:
        staging, runs = Path(folder), tuple[str, ...]()
        found = resolve_input(paths, staging, "journal")
        if found.kind == "store":
            raise NoJournal(f"{found.paths[0]}: holds tables; expected the journals that they are made of")
        if isinstance(place, Address):
            return _update_delta(place, found)
        with commit.open_for_build(place, tuple(SCHEMAS)) as building:
            manifest = commit.read_manifest(place)
            if manifest is not None and manifest.form != FORMAT:
                runs = _make_anew(place, building, manifest)
        with commit.open_for_build(place, tuple(SCHEMAS)) as building:
            manifest = commit.read_manifest(place) or TableManifest(FORMAT, {})
            new = found.without(manifest.files)
            if not new.files:
                return StoreUpdate(0, len(manifest.files), runs, 0, 0, _rows(manifest))
            update = _update(place, building, manifest, new)
            return structs.replace(update, runs=tuple(sorted({*runs, *update.runs})))


def _place(store: Path | str, table_format: TableFormat) -> Place:
    """Return where tables of this format are, those of Delta as an address. Raises `StoreRefused` for another format."""
    place = place_of(store)
    if isinstance(place, Address):
        if table_format == "parquet":
            raise StoreRefused(f"{store}: tables at an address are Delta's; leave --format out")
        return place
    address = address_of(f"file://{place.resolve()}")
    is_delta = newest(address) is not None
    if is_delta if table_format == "parquet" else table_format == "delta" and commit.read_manifest(place) is not None:
        raise StoreRefused(f"{place} holds tables of the other format; choose another directory")
    return address if is_delta or table_format == "delta" else place


def _update_delta(store: Address, found: AuditInput) -> StoreUpdate:
    from quarterdeck.backend.pipeline.tables.delta_store import update_delta

    counts, files_read, state = update_delta(store, found, FORMAT)
    stored = {name: open_table(store / name, version) for name, version in state.versions.items()}
    rows = {name: sum(table.get_add_actions()["num_records"].to_pylist()) for name, table in stored.items()}
    return StoreUpdate(
        files_read,
        len(state.known) - files_read,
        tuple(sorted(run for run, (records, _) in counts.items() if records or run != NO_RUN)),
        sum(records for records, _ in counts.values()),
        sum(quarantined for _, quarantined in counts.values()),
        rows,
    )


def read_table(spark: SparkSession, store: Path | DeltaSnapshot, name: str) -> DataFrame:
    """Read the table `name` of the store with the columns that this version knows: missing ones are null, others are left out."""
    schema = SCHEMAS[name]
    if isinstance(store, Path):
        return spark.read.schema(schema).parquet(f"{store}/{name}").select(schema.names)
    from quarterdeck.backend.pipeline.spark.arrow import in_tasks, tasks_in

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for file in tasks_in(batches):
            with file.open() as content:
                for batch in pq.ParquetFile(content).iter_batches():
                    yield from known_columns(pa.Table.from_batches([batch]), ARROW[name]).to_batches()

    return in_tasks(spark, store.files(name), read, schema)


def _make_anew(store: Path, building: Path, manifest: TableManifest) -> tuple[str, ...]:
    """Make a store of another form anew from the lines that it keeps; return its runs."""
    fold = Fold(building, manifest, _parts(store))
    with collector_paused():
        fold.make_anew()
        made = fold.end()
    commit.commit(store, building, TableManifest(FORMAT, manifest.files, batches=made.batches), made.kept)
    return made.runs


def _update(store: Path, building: Path, manifest: TableManifest, new: AuditInput) -> StoreUpdate:
    parts, groups = _parts(store), new.groups()
    while True:
        fold = Fold(building, manifest, parts)
        try:
            with collector_paused():
                fold.reread(new)
                for group in groups:
                    fold.add(group)
                made = fold.end()
            break
        except RunDivided:  # rare: parts of one run are in several groups
            groups = [tuple(file for group in groups for file in group)]
            for table in SCHEMAS:
                commit.remove(building / table)
    stamps = {file.place: file.stamp for file in new.files if not file.opened}
    after = TableManifest(FORMAT, {**manifest.files, **stamps}, batches=made.batches)
    commit.commit(store, building, after, made.kept)
    return StoreUpdate(len(new.files), len(manifest.files), made.runs, made.records, made.quarantined, _rows(after))


def _rows(manifest: TableManifest) -> dict[str, int]:
    return {name: sum(batch.rows.get(name, 0) for batch in manifest.batches.values()) for name in SCHEMAS}


def _parts(store: Path) -> dict[str, list[Path]]:
    """Return the files of each table, also of those that an earlier version made, with a directory for each run."""
    return {table: sorted((store / table).rglob(f"*{commit.PARQUET}")) for table in SCHEMAS}
