"""Tables of Delta Lake, in transactions that several processes may make at once, on this machine or at an address.

New lines are merged into `events` by run, incarnation and number, so that a second writing of the same changes nothing. Which
of two lines is the record depends on where they stand, which no MERGE can say, and pyarrow 26 cannot filter files that MERGE of
deltalake 1.6 writes: the rows are made as those of Parquet are, here or in Spark's tasks, and deltalake commits them. The
package delta-spark has no version for this Spark.

Each transaction is of one table. What belongs together is said by the last one, a row of the table `updates` with the version of
every table: a reader that begins with it sees the tables of one moment, and what an interrupted writer left is not yet in
it. The next update of any process makes the tables of all runs whose events changed since that row, also those of an interrupted
writer.

No transaction is repeated by itself. A writer opens all tables, then reads `events`, then writes; where another one has written a
table meanwhile, it begins again. So no table is ever made of older events than those that it replaces.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyarrow.dataset import Dataset, dataset

from quarterdeck.backend.pipeline.address import LOCAL, Address
from quarterdeck.backend.pipeline.audit_input import AuditInput, InputFile
from quarterdeck.backend.pipeline.commit import PARQUET, StoreRefused
from quarterdeck.backend.pipeline.delta_snapshot import (
    UPDATES,
    DeltaSnapshot,
    files_of,
    needing_delta,
    newest,
    open_table,
)
from quarterdeck.backend.pipeline.spark.engine import HERE, Engine, engine_session
from quarterdeck.backend.pipeline.staging import staging_folder
from quarterdeck.backend.pipeline.tables.batches import ARROW, MOST_SMALL, SMALL_BYTES, TARGET_BYTES
from quarterdeck.backend.pipeline.tables.fold import KEPT, Counts, Fold, fold_in
from quarterdeck.backend.pipeline.tasks import collector_paused

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ATTEMPTS = 30
LONGEST_WAIT_S = 2.0

_FILE = pa.struct({"place": pa.string(), "size_bytes": pa.int64(), "changed": pa.int64()})
_VERSION = pa.struct({"table": pa.string(), "version": pa.int64()})
UPDATE = pa.schema(
    {
        "number": pa.int64(),
        "at": pa.timestamp("us", "UTC"),
        "form": pa.string(),
        "files": pa.list_(_FILE),
        "versions": pa.list_(_VERSION),
    }
)
"""The columns of `updates`: number and time of the update, the form of the tables, the files that were read for it, and the
version of each table after it."""


class Outdated(Exception):
    """Raised where another process has written a table since it was opened."""


def update_delta(
    store: Address, found: AuditInput, form: str, engine: Engine = HERE
) -> tuple[Counts, int, int, dict[str, int]]:
    """Merge the journals in `found` into the store; one of another form than `form` is made anew from its lines first.

    Return the runs that were read, how many files they were in, how many files were known, and how many rows each table has.
    Raises `StoreRefused`, `PipelineMissing` and OSError.
    """
    with ExitStack() as until_written:
        return _update(store, found, form, partial(_session, store, engine, until_written))


def _session(store: Address, engine: Engine, until_written: ExitStack) -> SparkSession | None:
    """Start the Spark that makes the rows, if one does. Raises `StoreRefused` where its tasks would write to no common folder."""
    is_here = LOCAL.match(str(store)) is not None
    if engine.name == "here" or not (is_here or engine.is_spark):
        return None
    spark = until_written.enter_context(engine_session(engine, "pipeline tables"))
    if not is_here and not (spark.conf.get("spark.master") or "").startswith("local"):
        raise StoreRefused(
            f"{store}: a cluster cannot make tables at an address; name a master of this machine, as local[*]"
        )
    return spark


def _update(
    store: Address, found: AuditInput, form: str, start_spark: Callable[[], SparkSession | None]
) -> tuple[Counts, int, int, dict[str, int]]:
    anew: Counts = {}
    spark: SparkSession | None = None
    for attempt in range(ATTEMPTS):
        try:
            _make_tables(store)
            state = newest(store)
            assert state is not None
            if state.form not in ("", form):
                anew, state = _Update(store, state, form).make_anew()
            new, known = found.without(state.known), len(state.known)
            spark = spark or (start_spark() if new.files else None)
            counts, state = _Update(store, state, form).merge(new, spark)
        except Outdated:
            time.sleep(random.uniform(0, min(LONGEST_WAIT_S, 0.05 * 2**attempt)))
            continue
        stored = {name: open_table(store / name, version) for name, version in state.versions.items()}
        rows = {name: sum(table.get_add_actions()["num_records"].to_pylist()) for name, table in stored.items()}
        return anew | counts, len(new.files), known, rows
    raise StoreRefused(f"{store}: other processes kept writing tables there; try again later")


def _make_tables(store: Address) -> None:
    """Make the tables that are missing, without rows; that of the updates comes last."""
    with needing_delta():
        from deltalake import write_deltalake
    if store.exists() and not store.is_dir():
        raise StoreRefused(f"{store} is not a directory")
    for name, fields in {**ARROW, UPDATES: UPDATE}.items():
        place = store / name
        if (place / "_delta_log").is_dir():
            continue
        if place.files():
            raise StoreRefused(f"{place} exists and is no table of Delta Lake; choose another directory")
        options = place.delta_options or None
        with _transaction(place) as once:
            write_deltalake(place.delta_uri, fields.empty_table(), mode="ignore", storage_options=options, **once)


@contextmanager
def _transaction(place: Address) -> Iterator[dict[str, Any]]:
    """Yield the arguments of a transaction that is not repeated. Raises `Outdated` and OSError."""
    from deltalake import CommitProperties, WriterProperties
    from deltalake.exceptions import CommitFailedError, DeltaError

    try:
        yield {
            "commit_properties": CommitProperties(max_commit_retries=0),
            "writer_properties": WriterProperties(compression="ZSTD"),
        }
    except CommitFailedError as problem:
        raise Outdated from problem
    except DeltaError as problem:
        raise OSError(5, f"cannot be written ({problem})", str(place)) from problem


class _Update:
    """An attempt to update a store whose state is `state`."""

    def __init__(self, store: Address, state: DeltaSnapshot, form: str) -> None:
        self._store, self._state, self._form = store, state, form
        self._tables = {name: open_table(store / name) for name in ARROW}
        self._open_kept = partial(_datasets, store, {name: self._tables[name].version() for name in KEPT})

    def make_anew(self) -> tuple[Counts, DeltaSnapshot]:
        """Make all tables anew from the lines that are kept."""
        with staging_folder() as folder, collector_paused():
            fold = Fold(self._open_kept(), folder)
            fold.make_anew()
            for table in ARROW:
                self._write(table, _made(folder, table), mode="overwrite", schema_mode="overwrite")
        return fold.counts, self._record(())

    def merge(self, new: AuditInput, spark: SparkSession | None = None) -> tuple[Counts, DeltaSnapshot]:
        """Merge the lines of these files, make the tables of runs whose events changed, and record what belongs together.

        The rows are made on Spark where a session is given.
        """
        unfinished = self._runs_since_state()
        if not unfinished and not new.files:
            return {}, self._state
        parent = Path(self._store.delta_uri) if LOCAL.match(str(self._store)) else None
        with staging_folder(parent) as folder, collector_paused():
            fold = fold_in(self._open_kept, new, folder, unfinished, spark)
            for name in ARROW:
                self._replace(name, fold.replaced[name], _made(folder, name))
        for name, table in self._tables.items():
            if sum(size < SMALL_BYTES for size in table.get_add_actions()["size_bytes"].to_pylist()) > MOST_SMALL:
                with _transaction(self._store / name) as once:
                    table.optimize.compact(target_size=TARGET_BYTES, **once)
        return fold.counts, self._record([file for file in new.files if not file.opened])

    def _runs_since_state(self) -> set[str]:
        """Return the runs with rows in files of `events` that the state before does not have."""
        before = {file.name for file in self._state.files("events")}
        runs = set[str]()
        for file in files_of(self._store / "events", self._tables["events"]):
            if file.name not in before:
                with file.open() as content:
                    runs.update(pq.read_table(content, columns=["run"])["run"].unique().to_pylist())
        return runs

    def _replace(self, table: str, runs: Collection[str], made: Dataset) -> None:
        """Add the rows that were made, those of these runs in one transaction in place of the ones that are kept."""
        of_runs = pc.field("run").isin(sorted(runs))
        if runs and self._tables[table].to_pyarrow_dataset().count_rows(filter=of_runs):
            names = ", ".join("'" + run.replace("'", "''") + "'" for run in sorted(runs))
            self._write(table, made.filter(of_runs), mode="overwrite", predicate=f"run IN ({names})")
            made = made.filter(~of_runs)
        if made.count_rows():
            self._write(table, made, mode="append")

    def _write(self, table: str, made: Dataset, **how: str) -> None:
        from deltalake import write_deltalake

        rows = pa.RecordBatchReader.from_batches(ARROW[table], made.to_batches())
        with _transaction(self._store / table) as once:
            write_deltalake(self._tables[table], rows, **how, **once)  # type: ignore[call-overload]

    def _record(self, files: Sequence[InputFile]) -> DeltaSnapshot:
        """Add a row to `updates`. A version that another process has recorded meanwhile, and that is newer, stays."""
        from deltalake import write_deltalake

        read = [{"place": file.place, "size_bytes": file.size_bytes, "changed": file.changed} for file in files]
        while True:
            updates = open_table(self._store / UPDATES)
            last = newest(self._store)
            assert last is not None
            if last.form not in ("", self._form) and last.number > self._state.number:
                raise Outdated
            versions = {name: max(table.version(), last.versions.get(name, 0)) for name, table in self._tables.items()}
            named = [{"table": name, "version": version} for name, version in versions.items()]
            row = [[last.number + 1], [datetime.now(UTC)], [self._form], [read], [named]]
            try:
                with _transaction(self._store / UPDATES) as once:
                    write_deltalake(updates, pa.table(row, schema=UPDATE), mode="append", **once)
            except Outdated:
                continue
            return DeltaSnapshot(self._store, last.number + 1, self._form, versions)


def _datasets(store: Address, versions: Mapping[str, int]) -> dict[str, Dataset]:
    return {name: open_table(store / name, version).to_pyarrow_dataset() for name, version in versions.items()}


def _made(folder: Path, table: str) -> Dataset:
    """Return the rows of a table that were written into the folder."""
    return dataset(list(map(str, (folder / table).glob(f"*{PARQUET}"))), schema=ARROW[table], format="parquet")
