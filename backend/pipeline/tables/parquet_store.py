"""Tables in files of Parquet on this machine: a few for each table, replaced all at once or not at all by `commit`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow.dataset import Dataset, dataset, partitioning

from quarterdeck.backend.pipeline import commit
from quarterdeck.backend.pipeline.audit_input import AuditInput
from quarterdeck.backend.pipeline.commit import PARQUET, TableManifest
from quarterdeck.backend.pipeline.judging.group_judge import collector_paused
from quarterdeck.backend.pipeline.tables.batches import ARROW, MOST_SMALL, SMALL_BYTES, TableWriter
from quarterdeck.backend.pipeline.tables.fold import KEPT, Counts, Fold, fold_in

EMPTY = f"empty{PARQUET}"
"""The file of a table without rows, so that every program can read it by its folder."""

RUN_IN_PATH = partitioning(pa.schema([("run", pa.string())]), flavor="hive")
"""In stores of earlier versions each run has a directory."""


def update_parquet(store: Path, found: AuditInput, form: str) -> tuple[Counts, int, int, dict[str, int]]:
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
    with commit.open_for_build(store, tuple(ARROW)) as building:
        manifest = commit.read_manifest(store) or TableManifest(form, {})
        new = found.without(manifest.files)
        if new.files:
            with collector_paused():
                fold = fold_in(_kept(store), new, building)
            counts |= fold.counts
            stamps = {file.place: file.stamp for file in new.files if not file.opened}
            _replace(store, building, TableManifest(form, {**manifest.files, **stamps}), fold.replaced)
        rows = {table: sum(pq.read_metadata(file).num_rows for file in _files(store, table)) for table in ARROW}
    return counts, len(new.files), len(manifest.files), rows


def _files(store: Path, table: str) -> list[Path]:
    return sorted((store / table).rglob(f"*{PARQUET}"))


def _kept(store: Path) -> dict[str, Dataset]:
    return {
        table: dataset(
            list(map(str, _files(store, table))),
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
        old = [] if replaced is None else [file for file in _files(store, table) if file.name != EMPTY]
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
            pq.write_table(fields.empty_table(), folder / EMPTY)
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
