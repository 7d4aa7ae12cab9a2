"""Tables of Delta Lake, in transactions that several processes may make at once, on this machine or at an address.

New lines are merged into `events` by run, incarnation and number, so that a second writing of the same changes nothing. The
writer does that itself: files that MERGE of deltalake 1.6 writes cannot be filtered by pyarrow 26.

Each transaction is of one table. What belongs together is said by the last one, a row of the table `updates` with the version of
every table: whoever reads the store through it sees the tables of one moment, and what an interrupted writer left is not yet in
it. The next update of any process makes the tables of all runs whose events changed since that row, also those of an interrupted
writer.

No transaction is repeated by itself. A writer opens all tables, then reads `events`, then writes; where another one has written a
table meanwhile, it begins again. So no table is ever made of older events than those that it replaces.
"""

from __future__ import annotations

import random
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset
import pyarrow.parquet as pq

from quarterdeck.backend.pipeline.address import Address
from quarterdeck.backend.pipeline.audit_input import AuditInput, Group, InputFile
from quarterdeck.backend.pipeline.commit import StoreRefused
from quarterdeck.backend.pipeline.delta_snapshot import (
    UPDATES,
    DeltaSnapshot,
    files_of,
    needing_delta,
    newest,
    open_table,
)
from quarterdeck.backend.pipeline.judging.group_judge import collector_paused
from quarterdeck.backend.pipeline.schemas import RECORD
from quarterdeck.backend.pipeline.tables.batches import (
    ARROW,
    MOST_SMALL,
    SMALL_BYTES,
    TABLES,
    TARGET_BYTES,
    BatchWriter,
)
from quarterdeck.backend.pipeline.tables.fold import RunDivided, add_rows, names_read_again
from quarterdeck.backend.pipeline.tables.run_events import RunLines

ATTEMPTS = 30
LONGEST_WAIT_S = 2.0
ROWS_AT_ONCE = 200_000
WHOLE = "whole"

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

Counts = dict[str, tuple[int, int]]
"""By run, how many records it has, and how many quarantined lines."""


class Outdated(Exception):
    """Raised where another process has written a table since it was opened."""


def update_delta(store: Address, found: AuditInput, form: str) -> tuple[Counts, int, DeltaSnapshot]:
    """Merge the journals in `found` into the store. Return the runs that were read, how many files they were in, and the result.

    `form` is that of the tables; a store of another one is made anew. Raises `StoreRefused`, `PipelineMissing` and OSError.
    """
    for attempt in range(ATTEMPTS):
        try:
            _make_tables(store)
            state = newest(store)
            if state is not None and state.form not in ("", form):
                state = _Update(store, state, form).make_anew()
            assert state is not None
            new = found.without(state.known)
            update = _Update(store, state, form)
            counts = update.merge(new) if new.files else {}
            return counts, len(new.files), update.finish(new.files)
        except Outdated:
            time.sleep(random.uniform(0, min(LONGEST_WAIT_S, 0.05 * 2**attempt)))
    raise StoreRefused(f"{store}: other processes kept writing tables there; try again later")


def _make_tables(store: Address) -> None:
    """Make the tables that are missing, without rows; that of the updates comes last."""
    with needing_delta():
        from deltalake import write_deltalake
    if newest(store) is not None:
        return
    if store.exists() and not store.is_dir():
        raise StoreRefused(f"{store} is not a directory")
    for name, fields in {**ARROW, UPDATES: UPDATE}.items():
        place = store / name
        if not (place / "_delta_log").is_dir() and place.files():
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

    def merge(self, new: AuditInput) -> Counts:
        """Merge the lines of these files into the events, and put what is no record among the quarantined lines."""
        groups, again = new.groups(), names_read_again(new)
        while True:
            with TemporaryDirectory(prefix="quarterdeck-tables-") as name, collector_paused():
                folder = Path(name)
                try:
                    counts, displaced, quarantined = self._stage(groups, again, folder)
                except RunDivided:  # rare: parts of one run are in several groups
                    groups = [tuple(new.files)]
                    continue
                self._replace("events", displaced, folder / WHOLE)
                if (folder / "events").exists():
                    self._write("events", folder, mode="append")
                self._replace("quarantine", quarantined, folder)
                return counts

    def make_anew(self) -> DeltaSnapshot:
        """Make all tables anew from the lines that are kept."""
        runs = {run for table in ("events", "quarantine") for run in self._rows(table, ["run"])["run"].to_pylist()}
        with TemporaryDirectory(prefix="quarterdeck-tables-") as name, collector_paused():
            writer = BatchWriter(Path(name))
            for share in self._shares(runs):
                lines = RunLines()
                for table in ("events", "quarantine"):
                    add_rows(lines, self._rows(table, ["run", "raw", "file"], pc.field("run").isin(share)))
                for run in lines.runs():
                    events, columns = lines.events(run)
                    writer.add_lines(run, events, columns, lines.quarantine.get(run, ()))
                    writer.derive(run, columns)
            writer.close()
            for table in ARROW:
                self._write(table, Path(name), mode="overwrite", schema_mode="overwrite")
        return self._record(())

    def finish(self, files: Sequence[InputFile]) -> DeltaSnapshot:
        """Make the tables of all runs whose events are not those of the state before, and record what belongs together."""
        pending = self._runs_since_state()
        if not pending and not files:
            return self._state
        with TemporaryDirectory(prefix="quarterdeck-tables-") as name, collector_paused():
            writer = BatchWriter(Path(name))
            for share in self._shares(pending):
                writer.derive(share[0], self._rows("events", [*RECORD.names], pc.field("run").isin(share)))
            writer.close()
            for table in TABLES:
                self._replace(table, pending, Path(name))
        for name, open_one in self._tables.items():
            if sum(size < SMALL_BYTES for size in open_one.get_add_actions()["size_bytes"].to_pylist()) > MOST_SMALL:
                with _transaction(self._store / name) as once:
                    open_one.optimize.compact(target_size=TARGET_BYTES, **once)
        return self._record([file for file in files if not file.opened])

    def _stage(
        self, groups: Sequence[Group], again: Collection[str], folder: Path
    ) -> tuple[Counts, set[str], set[str]]:
        """Write the new events, and all quarantined lines, of the runs in these files; `again`: files that were read before.

        Return the runs; those of them in which a new record displaces one that is kept, whose events are written as a whole, to
        the folder `WHOLE`; and those whose quarantined lines are not those that are kept. Raises `RunDivided`.
        """
        writer, whole = BatchWriter(folder), BatchWriter(folder / WHOLE)
        counts, displaced, quarantined = Counts(), set[str](), set[str]()

        def stage(lines: RunLines, runs: Sequence[str]) -> None:
            wanted = pc.field("run").isin(list(runs))
            kept = self._rows("events", ["run", "raw", "file", "uuid", "seq"], wanted)
            aside = self._rows("quarantine", ["run", "raw", "file"], wanted)
            add_rows(lines, kept)
            add_rows(lines, aside.filter(pc.invert(pc.is_in(aside["file"], pa.array(sorted(again), pa.string())))))
            identities = _tuples(kept.select(["run", "uuid", "seq"]))
            known = dict(zip(identities, map(str.encode, kept["raw"].to_pylist()), strict=True))
            before = sorted(_tuples(aside))
            for run in runs:
                events, columns = lines.events(run)
                rows = lines.quarantine.get(run, [])
                stored = [known.get((run, line.uuid, line.seq)) for line in events]
                if any(raw not in (None, line.raw) for raw, line in zip(stored, events, strict=True)):
                    displaced.add(run)
                    whole.add_lines(run, events, columns, ())
                else:
                    is_new = pa.array([raw is None for raw in stored], pa.bool_())
                    new = [line for raw, line in zip(stored, events, strict=True) if raw is None]
                    writer.add_lines(run, new, columns.filter(is_new), ())
                if sorted((run, row.raw, row.file) for row in rows) != [row for row in before if row[0] == run]:
                    quarantined.add(run)
                    writer.add_lines(run, [], columns.slice(0, 0), rows)
                counts[run] = len(events), len(rows)

        for group in groups:
            lines = RunLines()
            lines.read(group)
            if not counts.keys().isdisjoint(lines.runs()):
                raise RunDivided
            stage(lines, lines.runs())
        of_files = pc.field("file").isin(sorted(again))
        if left := set(self._rows("quarantine", ["run"], of_files)["run"].to_pylist()) - counts.keys():
            stage(RunLines(), sorted(left))
        writer.close()
        whole.close()
        return counts, displaced, quarantined

    def _rows(self, table: str, columns: Sequence[str], wanted: pc.Expression | None = None) -> pa.Table:
        return self._tables[table].to_pyarrow_dataset().to_table(columns=list(columns), filter=wanted)

    def _runs_since_state(self) -> set[str]:
        """Return the runs with rows in files of `events` that the state before does not have."""
        before = {file.name for file in self._state.files("events")}
        runs = set[str]()
        for file in files_of(self._store / "events", self._tables["events"]):
            if file.name not in before:
                with file.open() as content:
                    runs.update(pq.read_table(content, columns=["run"])["run"].unique().to_pylist())
        return runs

    def _shares(self, runs: Collection[str]) -> Iterator[list[str]]:
        """Divide runs among shares with not too many events."""
        share, held = list[str](), 0
        counts = self._rows("events", ["run"])["run"].value_counts().to_pylist()
        events = {count["values"]: count["counts"] for count in counts}
        for run in sorted(runs):
            if share and held + events.get(run, 0) > ROWS_AT_ONCE:
                yield share
                share, held = [], 0
            share.append(run)
            held += events.get(run, 0)
        if share:
            yield share

    def _replace(self, table: str, runs: Collection[str], folder: Path) -> None:
        """Replace the rows of these runs by those in the folder, in one transaction, or none where there are no rows."""
        if not runs:
            return
        wanted = pc.field("run").isin(sorted(runs))
        if self._rows(table, ["run"], wanted).num_rows:
            names = ", ".join("'" + run.replace("'", "''") + "'" for run in sorted(runs))
            self._write(table, folder, mode="overwrite", predicate=f"run IN ({names})")
        elif (folder / table).exists():
            self._write(table, folder, mode="append")

    def _write(self, table: str, folder: Path, **how: str) -> None:
        from deltalake import write_deltalake

        with _transaction(self._store / table) as once:
            write_deltalake(self._tables[table], _rows_in(folder, table), **how, **once)  # type: ignore[call-overload]

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


def _rows_in(folder: Path, table: str) -> pa.RecordBatchReader:
    """Read the rows of a table that were written into the folder."""
    if not (folder / table).exists():
        return ARROW[table].empty_table().to_reader()
    dataset = pyarrow.dataset.dataset(folder / table, schema=ARROW[table])
    return pa.RecordBatchReader.from_batches(ARROW[table], dataset.to_batches())


def _tuples(table: pa.Table) -> Iterator[tuple[Any, ...]]:
    return zip(*(column.to_pylist() for column in table.columns), strict=True)
