"""Tables on disk: Parquet, partitioned by run, made of journals and updated as more of them arrives.

The lines of the journals are kept unchanged in the tables `events` and `quarantine`; all others are made of `events`.
So a file is read once. Lines that come later, from another member or another place, are folded in as if all had been
read at once. Other runs are not touched.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Collection, Mapping, Sequence
from functools import reduce
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pyarrow.parquet
from msgspec import Struct
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from quarterdeck.backend.journal.files import OPEN_DIRECTORY, OPEN_SUFFIX, NoJournal
from quarterdeck.backend.pipeline import commit
from quarterdeck.backend.pipeline.audit_input import SHRUNK, AuditInput, are_addresses, resolve_input
from quarterdeck.backend.pipeline.commit import Order, TableManifest
from quarterdeck.backend.pipeline.far_input import resolve_far_input
from quarterdeck.backend.pipeline.schemas import RECORD
from quarterdeck.backend.pipeline.spark.hadoop_path import HadoopPath
from quarterdeck.backend.pipeline.spark.tuning import is_small, persisted, tuned
from quarterdeck.backend.pipeline.tables import bronze, faults
from quarterdeck.backend.pipeline.tables import data_tables as data
from quarterdeck.backend.pipeline.tables import membership_tables as membership
from quarterdeck.backend.pipeline.tables.bronze import NO_RUN
from quarterdeck.backend.pipeline.tables.columns import TableDefinition as Table
from quarterdeck.backend.pipeline.tables.columns import schema

if TYPE_CHECKING:
    from quarterdeck.backend.pipeline.commit import Place

RECORDS_PER_FILE = 2_000_000
SHARE_TO_DERIVE = 0.25
"""How much of a run has to be new before its tables are made anew, while more is to come."""

_TABLES: tuple[Table[DataFrame], ...] = (
    Table("lives", membership.LIVES, membership.incarnations, "the incarnations of members"),
    Table("views", membership.VIEWS, membership.views, "the lists that members installed"),
    Table("suspicions", membership.SUSPICIONS, membership.suspicions, "who suspected whom, and for how long"),
    Table("claims", membership.CLAIMS, membership.claims, "mastership claims"),
    Table("merges", membership.MERGES, membership.merges, "members that left their cluster for another one"),
    Table("table_versions", data.TABLE_VERSIONS, data.table_versions, "changes of partition tables"),
    Table("migrations", data.MIGRATIONS, data.migrations, "migrations, with their steps"),
    Table("writes", data.WRITES, data.writes, "puts and removes that clients reported"),
    Table("reads", data.READS, data.reads, "gets that clients reported"),
    Table("faults", faults.FAULTS, faults.faults, "what was done to the cluster from outside"),
)

TABLES = {table.name: table for table in _TABLES}
"""In the order of the reference. Each is made of events that occur once."""

EVENTS = StructType(
    [
        *RECORD.fields,
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


def update_store(
    spark: SparkSession, paths: Sequence[Path | str], store: Path | str, *, is_last: bool = True
) -> StoreUpdate:
    """Update the tables at `store` with the journals at `paths`; what came from others before is kept.

    New lines of a run are added to its events. The tables that are made of events need the whole run: they are made anew from its
    kept events. Where more folds follow (`is_last` is false) that waits until the run has grown by a quarter, so that all folds
    of a run together cost as much as a few of the whole.

    `paths` and `store` may be addresses, where only finished files are read. In a store there, a run is made anew whenever
    something of it is new, and no other process may write at the same time.

    Raises `NoJournal`, `StoreRefused`, or OSError. Whatever fails, and whenever the process dies, the tables of a run are
    either all as they were, or all as they should be.
    """
    with tempfile.TemporaryDirectory(prefix="quarterdeck-tables-") as staging:
        found = (
            resolve_far_input(spark, list(map(str, paths)))
            if are_addresses(paths)
            else resolve_input(list(map(Path, paths)), Path(staging), "journal")
        )
        if found.kind == "store":
            raise NoJournal(f"{found.paths[0]}: holds tables; expected the journals that they are made of")
        place = place_of(spark, store)
        with commit.open_for_build(place, tuple(SCHEMAS)) as building:
            manifest = commit.read_manifest(place) or TableManifest(FORMAT, {})
            return _fold(spark, place, building, manifest, found.without(manifest.files), is_last=is_last)


def place_of(spark: SparkSession, directory: Path | str) -> Place:
    """Return the directory at a path of this machine, or at an address. Raises OSError where the address cannot be used."""
    return HadoopPath(spark, str(directory)) if are_addresses([directory]) else Path(directory)


def read_table(spark: SparkSession, store: Path | str, name: str) -> DataFrame:
    """Read the table `name` of the store with the columns that this version knows: missing ones are null, others are left out.

    Raises `StoreRefused` where there is no store; at an address, `resolve_far_input` checks that.
    """
    if isinstance(store, Path) and commit.read_manifest(store) is None:
        raise commit.StoreRefused(
            f"{store} holds no tables; make them with `quarterdeck pipeline tables PATH… --out DIR`"
        )
    return _read(spark, f"{store}/{name}", SCHEMAS[name])


def _read(spark: SparkSession, table: Place | str, wanted: StructType) -> DataFrame:
    return spark.read.schema(wanted).parquet(str(table)).select(wanted.names)


class _Plan(NamedTuple):
    """What a fold does with the runs that it changes."""

    anew: set[str]
    """Rebuilt from their kept lines and the new ones."""
    growing: set[str]
    """New events are added to the kept ones."""
    behind: Mapping[str, int]
    """By run, how many events were added since its tables were made."""
    is_last: bool

    def still_behind(self, added: Mapping[str, int], spark: SparkSession, store: Place) -> dict[str, int]:
        """Return by run how many of its events no table will contain after this fold, which `added` so many."""
        behind = {run: count for run, count in self.behind.items() if run not in self.anew}
        for run in sorted(self.growing):
            derived = _rows(spark, store / "events", {run}) - behind.get(run, 0)
            new = behind.pop(run, 0) + added.get(run, 0)
            if new and not self.is_last and new < SHARE_TO_DERIVE * derived:
                behind[run] = new
        return behind


def _fold(
    spark: SparkSession, store: Place, building: Place, manifest: TableManifest, new_input: AuditInput, *, is_last: bool
) -> StoreUpdate:
    is_other_form = manifest.form != FORMAT
    known = len(manifest.files)
    if not new_input.files and not is_other_form and not (is_last and manifest.behind):
        return StoreUpdate(0, known, (), 0, 0)
    new, anew = _new_lines(spark, new_input), set[str]()
    with tuned(spark, new_input.size_bytes):
        changed = set() if new is None else _runs(new)
        if commit.directories_by_run(store / "quarantine"):
            quarantined = _read(spark, store / "quarantine", QUARANTINE)
            anew |= _runs(quarantined.join(_names(spark, new_input), "file", "left_semi"))
    if is_other_form:
        anew |= {run for name in ("events", "quarantine") for run in commit.directories_by_run(store / name)}
    changed |= anew | (set(manifest.behind) if is_last else set())
    if isinstance(store, HadoopPath):  # nothing there can be linked
        anew = changed
    size_bytes = new_input.size_bytes + SHRUNK * commit.stored_bytes(store / "events", changed)
    read: DataFrame | None = None
    with tuned(spark, size_bytes):
        if new is not None and (kept := set(commit.directories_by_run(store / "events")) & changed - anew):
            read = persisted(new, size_bytes)
            new, contradicted = _without_known(spark, store, read, kept)
            anew |= contradicted
        plan = _Plan(anew, changed - anew, manifest.behind, is_last)
        made = _make(spark, store, building, _lines(spark, store, new_input, new, anew), plan, size_bytes)
        if read is not None:
            read.unpersist()
    stamps = {file.place: file.stamp for file in new_input.files if not file.opened}
    order = Order(
        tuple(sorted(changed)), tuple(SCHEMAS), TableManifest(FORMAT, {**manifest.files, **stamps}, behind=made.behind)
    )
    commit.commit(store, building, order)
    if NO_RUN not in commit.directories_by_run(store / "events"):
        changed.discard(NO_RUN)  # stray lines make no run
    return StoreUpdate(len(new_input.files), known, tuple(sorted(changed)), made.records, made.quarantined)


def _without_known(spark: SparkSession, store: Place, new: DataFrame, kept: set[str]) -> tuple[DataFrame, set[str]]:
    """Return the new lines without those that the `kept` runs contain already, and the runs with a contradicted record.

    Those have to be rebuilt: which record is the first shows only when all are side by side.
    """
    identity = ["run", "uuid", "seq"]
    numbered = new.withColumns(
        {name: F.when(F.col("reason").isNull(), F.col(f"record.{name}")) for name in identity[1:]}
    )
    stored = _read(spark, store / "events", EVENTS).where(F.col("run").isin(*sorted(kept)))
    news = numbered.where("reason is null").select(*identity, "raw")
    same = stored.select(*identity).join(news.select(*identity).distinct(), identity, "left_semi").localCheckpoint()
    if same.isEmpty():
        return new, set()
    stored = stored.select(*identity, F.col("raw").alias("kept_raw")).join(same, identity, "left_semi")
    compared = news.join(stored, identity).localCheckpoint()
    contradicted = _runs(compared.where("raw <> kept_raw"))
    known = compared.where(~F.col("run").isin(*sorted(contradicted))) if contradicted else compared
    return numbered.join(known.select(*identity), identity, "left_anti").drop(*identity[1:]), contradicted


def _runs(rows: DataFrame) -> set[str]:
    return {row.run for row in rows.select("run").distinct().collect()}


def _new_lines(spark: SparkSession, new_input: AuditInput) -> DataFrame | None:
    """Return columns raw, file, record, reason and run of all new lines."""
    if not new_input.files:
        return None
    lines = bronze.read_lines(spark, new_input.read).withColumn("file", _path("file"))
    copies = {file.read: file.opened for file in new_input.files if file.opened}
    if copies:
        names = F.create_map(*(F.lit(part) for pair in copies.items() for part in pair))
        lines = lines.withColumn("file", F.coalesce(names[F.col("file")], "file"))
    return bronze.with_run_name(lines).withColumn("run", _run_of_line())


def _names(spark: SparkSession, new_input: AuditInput) -> DataFrame:
    """Return the files that are read, also under the names that they had while they were open: then their lines were the same."""
    places = sorted(file.place for file in new_input.files)
    finished = [] if new_input.is_far else list(map(Path, places))
    opened = [str(path.parent.parent / OPEN_DIRECTORY / f"{path.stem}{OPEN_SUFFIX}") for path in finished]
    return spark.createDataFrame([(place,) for place in (*places, *opened)], "file string")


def _path(file: str) -> Column:
    """Return the path of a file's URI."""
    return F.url_decode(F.regexp_replace(F.regexp_replace(file, "^file:/+", "/"), r"\+", "%2B"))


def _run_of_line() -> Column:
    directory = F.regexp_extract("file", "/run=([^/]+)/[^/]*$", 1)
    return F.coalesce("record.run", F.when(directory != "", directory), F.lit(NO_RUN))


def _lines(
    spark: SparkSession, store: Place, new_input: AuditInput, new: DataFrame | None, anew: set[str]
) -> DataFrame | None:
    """Return the new lines, and the kept ones of runs that are made `anew`.

    Quarantined lines of files that are read again are left out.
    """
    parts = [] if new is None else [new]
    for name, columns in (("events", EVENTS), ("quarantine", QUARANTINE)):
        if runs := set(commit.directories_by_run(store / name)) & anew:
            table = _read(spark, store / name, columns).where(F.col("run").isin(*sorted(runs)))
            if name == "quarantine":
                table = table.join(_names(spark, new_input), "file", "left_anti")
            parts.append(bronze.with_run_name(bronze.parse_lines(table.select("run", "raw", "file"))))
    return reduce(DataFrame.unionByName, parts) if parts else None


class _Made(NamedTuple):
    """What was built: the size of the changed runs, and by run how many events are not yet in its tables."""

    records: int
    quarantined: int
    behind: dict[str, int]


def _make(
    spark: SparkSession, store: Place, building: Place, lines: DataFrame | None, plan: _Plan, size_bytes: int
) -> _Made:
    """Build in `building` what `plan` requires, from `lines` and from what is kept of the runs that grow."""
    small = is_small(size_bytes)
    ranked = None
    events = spark.createDataFrame([], EVENTS)
    added: dict[str, int] = {}
    if lines is not None:
        ranked = persisted(bronze.ranked(lines.coalesce(1) if small else lines), size_bytes)
        records = [F.col(f"record.{name}").alias(name) for name in RECORD.names]
        events = ranked.where("place = 1").select(*records, "raw", "file")
        added = {row.run: row["count"] for row in events.groupBy("run").count().collect()}
    try:
        behind = plan.still_behind(added, spark, store)
        derived = plan.anew | {run for run in plan.growing - set(behind) if added.get(run) or run in plan.behind}
        if regrown := derived & plan.growing & set(commit.directories_by_run(store / "events")):
            kept = _read(spark, store / "events", EVENTS).where(F.col("run").isin(*sorted(regrown)))
            events = events.unionByName(kept)
            events = persisted(events.coalesce(1), size_bytes) if small else events
        _write(events, building / "events", EVENTS, small=small)
        if ranked is not None:
            _write(bronze.quarantined_lines(ranked), building / "quarantine", QUARANTINE, small=small)
        if derived:
            # Read back, each table is made of the few columns that it needs.
            # Where there is little, that costs more than it saves.
            whole = events if small else _read(spark, building / "events", EVENTS)
            if added.keys() - derived:
                whole = whole.where(F.col("run").isin(*sorted(derived)))
            for name, table in TABLES.items():
                _write(table.make(whole), building / name, table.schema, small=small)
    finally:
        if ranked is not None:
            ranked.unpersist()
    for run in sorted(plan.growing):
        for name in SCHEMAS if run not in derived else ("quarantine",):
            _link_kept(Path(str(store / name)), Path(str(building / name)), run)
    return _Made(_rows(spark, building / "events"), _rows(spark, building / "quarantine"), behind)


def _link_kept(table: Path, building: Path, run: str) -> None:
    """Link the kept files of a run into its new directory, without copying them where possible."""
    if (directory := commit.directories_by_run(table).get(run)) is None:
        return
    place = building / directory
    place.mkdir(parents=True, exist_ok=True)
    for part in (table / directory).glob("*.parquet"):
        try:
            (place / part.name).hardlink_to(part)
        except OSError:  # not every file system has links
            shutil.copy2(part, place / part.name)


def _rows(spark: SparkSession, table: Place, runs: Collection[str] | None = None) -> int:
    """Return how many rows `table` has; only of these `runs`, if any are named. The files' footers contain the counts."""
    files = commit.stored_files(table, runs)
    if isinstance(table, Path):
        return sum(pyarrow.parquet.read_metadata(part).num_rows for part in files)
    return spark.read.parquet(*map(str, files)).count() if files else 0


def _write(table: DataFrame, path: Place, wanted: StructType, *, small: bool) -> None:
    """Write a small table in one task; otherwise give each small run one file and each large one several."""
    rows = table.select(wanted.names)
    rows = rows.coalesce(1) if small else rows.hint("rebalance", F.col("run"))
    rows.write.partitionBy("run").option("maxRecordsPerFile", RECORDS_PER_FILE).parquet(str(path), compression="zstd")
