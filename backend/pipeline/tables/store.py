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
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Struct, structs

from quarterdeck.backend.journal.files import NoJournal
from quarterdeck.backend.pipeline import commit
from quarterdeck.backend.pipeline.address import Place, place_of
from quarterdeck.backend.pipeline.audit_input import AuditInput, resolve_input
from quarterdeck.backend.pipeline.commit import TableManifest
from quarterdeck.backend.pipeline.judging.group_judge import collector_paused
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


def update_store(paths: Sequence[Path | str], store: Path | str) -> StoreUpdate:
    """Update the tables at `store` with the journals at `paths`; what came from others before is kept.

    New lines of a run are added to its events. The tables that are made of events need the whole run: they are made anew from its
    kept events.

    `paths` and `store` may be addresses, where only finished files are read. No other process may write to a store at an address
    at the same time.

    Raises `NoJournal`, `StoreRefused`, or OSError. Whatever fails, and whenever the process dies, all tables are either as they
    were, or as they should be.
    """
    place, runs = place_of(store), tuple[str, ...]()
    with tempfile.TemporaryDirectory(prefix="quarterdeck-tables-") as folder:
        staging = Path(folder)
        found = resolve_input(paths, staging, "journal")
        if found.kind == "store":
            raise NoJournal(f"{found.paths[0]}: holds tables; expected the journals that they are made of")
        with commit.open_for_build(place, tuple(SCHEMAS)) as building:
            manifest = commit.read_manifest(place)
            if manifest is not None and manifest.form != FORMAT:
                runs = _make_anew(place, building, manifest, staging)
        with commit.open_for_build(place, tuple(SCHEMAS)) as building:
            manifest = commit.read_manifest(place) or TableManifest(FORMAT, {})
            new = found.without(manifest.files)
            if not new.files:
                return StoreUpdate(0, len(manifest.files), runs, 0, 0, _rows(manifest))
            update = _update(place, building, manifest, new, staging)
            return structs.replace(update, runs=tuple(sorted({*runs, *update.runs})))


def read_table(spark: SparkSession, store: Place, name: str) -> DataFrame:
    """Read the table `name` of the store with the columns that this version knows: missing ones are null, others are left out.

    Raises `StoreRefused` where there is no store.
    """
    if commit.read_manifest(store) is None:
        raise commit.StoreRefused(
            f"{store} holds no tables; make them with `quarterdeck pipeline tables PATH… --out DIR`"
        )
    schema = SCHEMAS[name]
    if isinstance(store, Path):
        return spark.read.schema(schema).parquet(f"{store}/{name}").select(schema.names)
    from quarterdeck.backend.pipeline.spark.arrow import in_tasks, tasks_in

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for file in tasks_in(batches):
            with file.open() as content:
                for batch in pq.ParquetFile(content).iter_batches():
                    yield from known_columns(pa.Table.from_batches([batch]), ARROW[name]).to_batches()

    return in_tasks(spark, [file.place for file in (store / name).files()], read, schema)


def _make_anew(store: Place, building: Path, manifest: TableManifest, staging: Path) -> tuple[str, ...]:
    """Make a store of another form anew from the lines that it keeps; return its runs."""
    fold = Fold(building, manifest, _parts(store, staging))
    with collector_paused():
        fold.make_anew()
        made = fold.end()
    commit.commit(store, building, TableManifest(FORMAT, manifest.files, batches=made.batches), made.kept)
    return made.runs


def _update(store: Place, building: Path, manifest: TableManifest, new: AuditInput, staging: Path) -> StoreUpdate:
    parts, groups = _parts(store, staging), new.groups()
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


def _parts(store: Place, staging: Path) -> dict[str, list[Path]]:
    """Return the files of each table, also of those that an earlier version made, with a directory for each run."""
    if isinstance(store, Path):
        return {table: sorted((store / table).rglob(f"*{commit.PARQUET}")) for table in SCHEMAS}
    copies: dict[str, list[Path]] = {table: [] for table in SCHEMAS}
    for table, parts in copies.items():
        for file in (store / table).files():
            copy = staging / "stored" / str(file.place).removeprefix(f"{store}/")
            copy.parent.mkdir(parents=True, exist_ok=True)
            file.place.fetch(copy)
            parts.append(copy)
    return copies
