"""Tables on disk: Parquet, partitioned by run, made of journals and kept up to date as more of them arrives.

The lines of the journals are kept as they were, in the tables `events` and `quarantine`; all others are made of `events`. So a
file is read once. What comes later, from another member or another place, is folded in, as if all had been read at once. Other
runs are not touched.
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
from quarterdeck.backend.pipeline.engine_input import EngineInput, resolve_engine_input
from quarterdeck.backend.pipeline.schemas import RECORD
from quarterdeck.backend.pipeline.spark.hadoop_path import HadoopPath
from quarterdeck.backend.pipeline.spark.tuning import is_small, persisted, tuned
from quarterdeck.backend.pipeline.tables import bronze
from quarterdeck.backend.pipeline.tables.bronze import NO_RUN
from quarterdeck.backend.pipeline.tables.columns import TEXT, schema
from quarterdeck.backend.pipeline.tables.registry import TABLES

if TYPE_CHECKING:
    from quarterdeck.backend.pipeline.commit import Place

RECORDS_PER_FILE = 2_000_000
SHARE_TO_DERIVE = 0.25
"""How much of a run has to be new for its tables to be made anew while more is to come."""

_RAW, _FILE = ("raw", TEXT, "the line as it stands in the journal"), ("file", TEXT, "a file in which it stands")

EVENTS = StructType([*RECORD.fields, *schema(_RAW, _FILE).fields])
"""Each record once. Fields of events that this version does not know are in `raw`."""

QUARANTINE = schema(
    ("run", TEXT, f"the run that the line names, else that of the directory of its file, else `{NO_RUN}`"),
    _FILE,
    _RAW,
    ("reason", TEXT, "why it is not a record, or which one it contradicts"),
)
"""Lines that are no records."""

SCHEMAS: dict[str, StructType] = {
    "events": EVENTS,
    "quarantine": QUARANTINE,
    **{name: table.schema for name, table in TABLES.items()},
}
"""All tables of a store, by name."""

FORMAT = sha256("".join(f"{name} {one.simpleString()}\n" for name, one in SCHEMAS.items()).encode()).hexdigest()[:16]
"""Names the form of the tables: a store of another form is made anew from the lines that it keeps."""


class StoreUpdate(Struct, frozen=True):
    """What became of a store. `runs` are those that what was read belongs to."""

    files_read: int
    files_known: int
    runs: tuple[str, ...]
    records: int
    """Of those runs, as is `quarantined`."""
    quarantined: int


def update_store(
    spark: SparkSession, paths: Sequence[Path | str], store: Path | str, *, is_last: bool = True
) -> StoreUpdate:
    """Bring the tables at `store` up to date with the journals at `paths`; nothing is lost that came from others before.

    What is new of a run is added to its events. The tables that are made of events need the whole run: they are made anew of its
    kept events. Where more folds follow (`is_last` is false) that waits until the run has grown by a quarter, so that all folds
    of a run together cost as much as a few of the whole.

    `paths` and `store` may be addresses. Only finished files are read there. In a store there a run is made anew whenever
    something of it is new, and nobody else may write at the same time.

    Raises `NoJournal`, `StoreRefused`, or OSError. Whatever fails, and whenever the process dies: the tables of a run
    are all as they were, or all as they should be.
    """
    with tempfile.TemporaryDirectory(prefix="quarterdeck-tables-") as staging:
        found = (
            resolve_engine_input(spark, list(map(str, paths)))
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
    """The directory at a path of this machine, or at an address. Raises OSError where the address is of no use."""
    return HadoopPath(spark, str(directory)) if are_addresses([directory]) else Path(directory)


def read_table(spark: SparkSession, store: Path | str, name: str) -> DataFrame:
    """The table `name` of the store, with the columns that this version knows: what it lacks is null, what is new is left out.

    Raises `StoreRefused` where there is no store; at an address, `resolve_engine_input` tells.
    """
    if isinstance(store, Path) and commit.read_manifest(store) is None:
        raise commit.StoreRefused(
            f"{store} holds no tables; make them with `quarterdeck pipeline tables PATH… --out DIR`"
        )
    return _read(spark, f"{store}/{name}", SCHEMAS[name])


def _read(spark: SparkSession, table: Place | str, wanted: StructType) -> DataFrame:
    return spark.read.schema(wanted).parquet(str(table)).select(wanted.names)


class _Plan(NamedTuple):
    """What a fold does with the runs that it touches."""

    anew: set[str]
    """Put together anew, out of their kept lines and the new ones."""
    growing: set[str]
    """New events are added to those that are kept."""
    behind: Mapping[str, int]
    """By run, how many events were added since its tables were made."""
    is_last: bool

    def still_behind(self, added: Mapping[str, int], spark: SparkSession, store: Place) -> dict[str, int]:
        """By run, how many of its events no table will be made of in this fold, after so many were `added`."""
        behind = {run: count for run, count in self.behind.items() if run not in self.anew}
        for run in sorted(self.growing):
            derived = _rows(spark, store / "events", {run}) - behind.get(run, 0)
            new = behind.pop(run, 0) + added.get(run, 0)
            if new and not self.is_last and new < SHARE_TO_DERIVE * derived:
                behind[run] = new
        return behind


def _fold(
    spark: SparkSession,
    store: Place,
    building: Place,
    manifest: TableManifest,
    new_input: AuditInput | EngineInput,
    *,
    is_last: bool,
) -> StoreUpdate:
    is_other_form = manifest.form != FORMAT
    known = len(manifest.files)
    if not new_input.files and not is_other_form and not (is_last and manifest.behind):
        return StoreUpdate(0, known, (), 0, 0)
    new, anew = _new_lines(spark, new_input), set[str]()
    with tuned(spark, new_input.size_bytes):
        touched = set() if new is None else _runs(new)
        if commit.directories_by_run(store / "quarantine"):
            anew |= _runs(
                _read(spark, store / "quarantine", QUARANTINE).join(_names(spark, new_input), "file", "left_semi")
            )
    if is_other_form:
        anew |= {run for name in ("events", "quarantine") for run in commit.directories_by_run(store / name)}
    touched |= anew | (set(manifest.behind) if is_last else set())
    if isinstance(store, HadoopPath):  # nothing there can be linked
        anew = touched
    size_bytes = new_input.size_bytes + text_bytes(store, touched)
    read: DataFrame | None = None
    with tuned(spark, size_bytes):
        if new is not None and (kept := set(commit.directories_by_run(store / "events")) & touched - anew):
            read = persisted(new, size_bytes)
            new, contradicted = _without_known(spark, store, read, kept)
            anew |= contradicted
        plan = _Plan(anew, touched - anew, manifest.behind, is_last)
        made = _make(spark, store, building, _lines(spark, store, new_input, new, anew), plan, size_bytes)
        if read is not None:
            read.unpersist()
    stamps = {str(file.place): file.stamp for file in new_input.files if not file.is_open}
    order = Order(
        tuple(sorted(touched)),
        tuple(SCHEMAS),
        TableManifest(FORMAT, {**manifest.files, **stamps}, behind=made.behind),
    )
    commit.commit(store, building, order)
    if NO_RUN not in commit.directories_by_run(store / "events"):
        touched.discard(NO_RUN)  # stray lines make no run
    return StoreUpdate(len(new_input.files), known, tuple(sorted(touched)), made.records, made.quarantined)


def _without_known(spark: SparkSession, store: Place, new: DataFrame, kept: set[str]) -> tuple[DataFrame, set[str]]:
    """The new lines but for those that stand in the `kept` runs already, and the runs of which a kept record is contradicted.

    Those have to be put together anew: which record is the first is seen only when all lie side by side.
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


def text_bytes(store: Place, runs: Collection[str] | None = None) -> int:
    """How many bytes the lines in a store were, about; only those of `runs`, if any are named."""
    return SHRUNK * commit.stored_bytes(store / "events", runs)


def _runs(rows: DataFrame) -> set[str]:
    return {row.run for row in rows.select("run").distinct().collect()}


def _new_lines(spark: SparkSession, new_input: AuditInput | EngineInput) -> DataFrame | None:
    """Columns raw, file, record, reason and run of all lines that are new."""
    if not new_input.files:
        return None
    lines = bronze.read_lines(spark, [str(file) for file in new_input.read]).withColumn("file", _path("file"))
    copies = {str(file.read): str(file.place) for file in new_input.files if file.is_open}
    if copies:
        names = F.create_map(*(F.lit(part) for pair in copies.items() for part in pair))
        lines = lines.withColumn("file", F.coalesce(names[F.col("file")], "file"))
    return bronze.with_run_name(lines).withColumn("run", _run_of_line())


def _names(spark: SparkSession, new_input: AuditInput | EngineInput) -> DataFrame:
    """The files that are read, also under the names that they had while they were open: then their lines were the same."""
    places = sorted(str(file.place) for file in new_input.files)
    opened = [
        file.place.parent.parent / OPEN_DIRECTORY / f"{file.place.stem}{OPEN_SUFFIX}"
        for file in new_input.files
        if isinstance(file.place, Path)
    ]
    return spark.createDataFrame([(str(place),) for place in (*places, *opened)], "file string")


def _path(file: str) -> Column:
    """A path as people write it, of a file's URI."""
    return F.url_decode(F.regexp_replace(F.regexp_replace(file, "^file:/+", "/"), r"\+", "%2B"))


def _run_of_line() -> Column:
    directory = F.regexp_extract("file", "/run=([^/]+)/[^/]*$", 1)
    return F.coalesce("record.run", F.when(directory != "", directory), F.lit(NO_RUN))


def _lines(
    spark: SparkSession, store: Place, new_input: AuditInput | EngineInput, new: DataFrame | None, anew: set[str]
) -> DataFrame | None:
    """The new lines, and the kept ones of runs that are made `anew`. What was wrong in a file that is read again is forgotten."""
    parts = [] if new is None else [new]
    for name, columns in (("events", EVENTS), ("quarantine", QUARANTINE)):
        if runs := set(commit.directories_by_run(store / name)) & anew:
            table = _read(spark, store / name, columns).where(F.col("run").isin(*sorted(runs)))
            if name == "quarantine":
                table = table.join(_names(spark, new_input), "file", "left_anti")
            parts.append(bronze.with_run_name(bronze.parse_lines(table.select("run", "raw", "file"))))
    return reduce(DataFrame.unionByName, parts) if parts else None


class _Made(NamedTuple):
    """What was built: how much there is of the runs that were touched, and which runs' tables do not yet have all."""

    records: int
    quarantined: int
    behind: dict[str, int]


def _make(
    spark: SparkSession, store: Place, building: Place, lines: DataFrame | None, plan: _Plan, size_bytes: int
) -> _Made:
    """Build what `plan` says in `building`: of `lines`, and of what is kept of the runs that grow."""
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
    """Let what is kept of a run stand beside what is new of it, without copying."""
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
    """How many rows `table` has; only of these `runs`, if any are named. The files' footers tell."""
    files = commit.stored_files(table, runs)
    if isinstance(table, Path):
        return sum(pyarrow.parquet.read_metadata(part).num_rows for part in files)
    return spark.read.parquet(*map(str, files)).count() if files else 0


def _write(table: DataFrame, path: Place, wanted: StructType, *, small: bool) -> None:
    """What is small is written by one task; else small runs get one file each, great ones several."""
    rows = table.select(wanted.names)
    rows = rows.coalesce(1) if small else rows.hint("rebalance", F.col("run"))
    rows.write.partitionBy("run").option("maxRecordsPerFile", RECORDS_PER_FILE).parquet(str(path), compression="zstd")
