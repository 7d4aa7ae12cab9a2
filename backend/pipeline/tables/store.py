"""Tables on disk: a few Parquet files for each, made of journals in one pass and updated as more of them arrives.

The lines of the journals are kept unchanged in the tables `events` and `quarantine`; all others are made of `events`.
So a file is read once. Lines that come later, from another member or another place, are folded in as if all had been
read at once. Rows of other runs are not touched.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
from msgspec import Struct, structs

from quarterdeck.backend.journal.files import NoJournal
from quarterdeck.backend.pipeline import commit
from quarterdeck.backend.pipeline.audit_input import AuditInput, InputFile, are_addresses, resolve_input
from quarterdeck.backend.pipeline.commit import TableManifest
from quarterdeck.backend.pipeline.judging.group_judge import ReadLines, collector_paused, lines_of_file
from quarterdeck.backend.pipeline.tables.batches import SCHEMAS
from quarterdeck.backend.pipeline.tables.fold import Fold, Folded, RunDivided

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from quarterdeck.backend.pipeline.commit import Place

FORMAT = sha256("".join(f"{name} {one.simpleString()}\n" for name, one in SCHEMAS.items()).encode()).hexdigest()[:16]
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


def update_store(
    paths: Sequence[Path | str], store: Path | str, spark: SparkSession | None = None, *, is_last: bool = True
) -> StoreUpdate:
    """Update the tables at `store` with the journals at `paths`; what came from others before is kept.

    New lines of a run are added to its events. The tables that are made of events need the whole run: they are made anew from its
    kept events. Where more folds follow (`is_last` is false) that waits until the run has grown by a quarter, so that all folds
    of a run together cost as much as a few of the whole.

    `paths` and `store` may be addresses, where only finished files are read; these need `spark`. No other process may write to a
    store at an address at the same time.

    Raises `NoJournal`, `StoreRefused`, or OSError. Whatever fails, and whenever the process dies, all tables are either as they
    were, or as they should be.
    """
    with tempfile.TemporaryDirectory(prefix="quarterdeck-tables-") as staging:
        found = _find(paths, Path(staging), spark)
        if found.kind == "store":
            raise NoJournal(f"{found.paths[0]}: holds tables; expected the journals that they are made of")
        return make_store(found, store, spark, is_last=is_last)


def make_store(
    found: AuditInput, store: Path | str, spark: SparkSession | None = None, *, is_last: bool = True
) -> StoreUpdate:
    """Update the tables at `store` with the journals that were `found`, as `update_store` does."""
    place, runs = place_of(spark, store), tuple[str, ...]()
    with tempfile.TemporaryDirectory(prefix="quarterdeck-tables-") as staging:
        with commit.open_for_build(place, tuple(SCHEMAS)) as building:
            manifest = commit.read_manifest(place)
            if manifest is not None and manifest.form != FORMAT:
                runs = _make_anew(place, building, manifest, Path(staging))
        with commit.open_for_build(place, tuple(SCHEMAS)) as building:
            manifest = commit.read_manifest(place) or TableManifest(FORMAT, {})
            new = found.without(manifest.files)
            if not new.files and not (is_last and manifest.behind):
                return StoreUpdate(0, len(manifest.files), runs, 0, 0, _rows(manifest))
            update = _update(place, building, manifest, new, Path(staging), spark, is_last=is_last)
            return structs.replace(update, runs=tuple(sorted({*runs, *update.runs})))


def place_of(spark: SparkSession | None, directory: Path | str) -> Place:
    """Return the directory at a path of this machine, or at an address. Raises OSError where the address cannot be used."""
    if not are_addresses([directory]):
        return Path(directory)
    from quarterdeck.backend.pipeline.spark.hadoop_path import HadoopPath

    assert spark is not None
    return HadoopPath(spark, str(directory))


def read_table(spark: SparkSession, store: Path | str, name: str) -> DataFrame:
    """Read the table `name` of the store with the columns that this version knows: missing ones are null, others are left out.

    Raises `StoreRefused` where there is no store; at an address, `resolve_far_input` checks that.
    """
    if isinstance(store, Path) and commit.read_manifest(store) is None:
        raise commit.StoreRefused(
            f"{store} holds no tables; make them with `quarterdeck pipeline tables PATH… --out DIR`"
        )
    return spark.read.schema(SCHEMAS[name]).parquet(f"{store}/{name}").select(SCHEMAS[name].names)


def quarantined_rows(store: Path | str, spark: SparkSession | None) -> int:
    """Return how many lines the store has in quarantine."""
    if are_addresses([store]):
        assert spark is not None
        return read_table(spark, store, "quarantine").count()
    return sum(
        pq.ParquetFile(part).metadata.num_rows for part in sorted((Path(store) / "quarantine").rglob("*.parquet"))
    )


def _find(paths: Sequence[Path | str], staging: Path, spark: SparkSession | None) -> AuditInput:
    if not are_addresses(paths):
        return resolve_input(list(map(Path, paths)), staging, "journal")
    from quarterdeck.backend.pipeline.far_input import resolve_far_input

    assert spark is not None
    return resolve_far_input(spark, list(map(str, paths)))


def _make_anew(store: Place, building: Place, manifest: TableManifest, staging: Path) -> tuple[str, ...]:
    """Make a store of another form anew from the lines that it keeps; return its runs."""
    fold = Fold(_folder(building, staging), manifest, _parts(store, staging), is_last=True)
    with collector_paused():
        fold.make_anew()
        made = fold.end()
    _commit(store, building, manifest.files, made, staging)
    return made.runs


def _update(
    store: Place,
    building: Place,
    manifest: TableManifest,
    new: AuditInput,
    staging: Path,
    spark: SparkSession | None,
    *,
    is_last: bool,
) -> StoreUpdate:
    parts = _parts(store, staging)
    read = _reader(spark, new, staging)
    groups = new.groups()
    while True:
        fold = Fold(_folder(building, staging), manifest, parts, is_last=is_last)
        try:
            with collector_paused():
                fold.reread(new)
                for group in groups:
                    fold.add(group, read)
                made = fold.end()
            break
        except RunDivided:  # rare: parts of one run are in several groups
            groups = [tuple(file for group in groups for file in group)]
    stamps = {file.place: file.stamp for file in new.files if not file.opened}
    after = _commit(store, building, {**manifest.files, **stamps}, made, staging)
    return StoreUpdate(len(new.files), len(manifest.files), made.runs, made.records, made.quarantined, _rows(after))


def _folder(building: Place, staging: Path) -> Path:
    """Return where the tables are built: at an address they are put when they are made."""
    folder = building if isinstance(building, Path) else staging / "built"
    for table in SCHEMAS:
        commit.remove(folder / table)
    return folder


def _commit(
    store: Place, building: Place, files: dict[str, tuple[int, int]], made: Folded, staging: Path
) -> TableManifest:
    if not isinstance(building, Path):
        for table in SCHEMAS:
            (building / table).mkdir()
            for file in (staging / "built" / table).iterdir():
                (building / table / file.name).put(file)
    manifest = TableManifest(FORMAT, files, behind=made.behind, batches=made.batches)
    commit.commit(store, building, manifest, made.kept)
    return manifest


def _rows(manifest: TableManifest) -> dict[str, int]:
    return {name: sum(batch.rows.get(name, 0) for batch in manifest.batches.values()) for name in SCHEMAS}


def _parts(store: Place, staging: Path) -> dict[str, list[Path]]:
    """Return the files of each table, also of those that an earlier version made, with a directory for each run."""
    if isinstance(store, Path):
        return {table: sorted((store / table).rglob(f"*{commit.PARQUET}")) for table in SCHEMAS}
    copies: dict[str, list[Path]] = {table: [] for table in SCHEMAS}
    for table, parts in copies.items():
        for folder in (store / table, *(store / table).glob("run=*")):
            for file in commit.stored_files(folder):
                copy = staging / "stored" / table / folder.name / file.name
                copy.parent.mkdir(parents=True, exist_ok=True)
                file.fetch(copy)  # type: ignore[union-attr] # at an address, as the store is
                parts.append(copy)
    return copies


def _reader(spark: SparkSession | None, new: AuditInput, staging: Path) -> ReadLines:
    """Return what reads these files. Copies of those at addresses are fetched where only Hadoop reads them."""
    if not new.is_far or not new.files:
        return lines_of_file
    from quarterdeck.backend.pipeline.judging.far_files import far_reader
    from quarterdeck.backend.pipeline.judging.spark_tasks import contents

    assert spark is not None
    if (far := far_reader(spark, new.files)) is not None:
        return far.lines
    copies: dict[str, InputFile] = {}
    (staging / "fetched").mkdir()
    for address, content in contents(spark, list(new.read)).select("path", "content").toLocalIterator():
        copy = staging / "fetched" / f"{len(copies):06d}"
        copy.write_bytes(content)
        copies[address] = InputFile(str(copy), address)
    return lambda file: lines_of_file(copies[file.read])
