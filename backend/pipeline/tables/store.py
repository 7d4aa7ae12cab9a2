"""Tables on disk: Parquet, partitioned by run, made of journals and kept up to date as more of them arrives.

The lines of the journals are kept as they were, in the tables `events` and `quarantine`; all others are made of `events`. So a
file is read once. What comes later, from another member or another place, is folded in: the runs that it belongs to are made
anew out of what is kept and what is new, as if all had been read at once. Other runs are not touched.
"""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Sequence
from functools import reduce
from hashlib import sha256
from pathlib import Path

from msgspec import Struct
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from quarterdeck.backend.journal.files import OPEN_DIRECTORY, OPEN_SUFFIX
from quarterdeck.backend.pipeline import commit
from quarterdeck.backend.pipeline.audit_input import SHRUNK, AuditInput, resolve_input
from quarterdeck.backend.pipeline.commit import Manifest, Order
from quarterdeck.backend.pipeline.schemas import RECORD
from quarterdeck.backend.pipeline.spark.tuning import is_small, persisted, tuned
from quarterdeck.backend.pipeline.tables import bronze
from quarterdeck.backend.pipeline.tables.bronze import NO_RUN
from quarterdeck.backend.pipeline.tables.columns import TEXT, schema
from quarterdeck.backend.pipeline.tables.registry import TABLES

RECORDS_PER_FILE = 2_000_000
_RAW, _FILE = ("raw", TEXT, "the line as it stands in the journal"), ("file", TEXT, "a file in which it stands")

EVENTS = StructType([*RECORD.fields, *schema(_RAW, _FILE).fields])
"""Each record once. Fields of events that this version does not know are in `raw`."""

QUARANTINE = schema(
    ("run", TEXT, f"the run that the line names, else that of the directory of its file, else `{NO_RUN}`"),
    _FILE,
    _RAW,
    ("reason", TEXT, "why it is no record, or which one it contradicts"),
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
    """What became of a store. `runs` are those whose tables were made anew."""

    files_read: int
    files_known: int
    runs: tuple[str, ...]
    records: int
    """Of those runs, as is `quarantined`."""
    quarantined: int


def update_store(spark: SparkSession, paths: Sequence[Path], store: Path) -> StoreUpdate:
    """Bring the tables at `store` up to date with the journals at `paths`; nothing is lost that came from others before.

    Raises `NoJournal`, `StoreRefused`, or OSError. Whatever fails, and whenever the process dies: the tables of a run
    are all as they were, or all as they should be.
    """
    with tempfile.TemporaryDirectory(prefix="quarterdeck-tables-") as staging:
        found = resolve_input(paths, Path(staging), "journal")
        with commit.open_for_build(store, tuple(SCHEMAS)) as building:
            manifest = commit.read_manifest(store) or Manifest(FORMAT, {})
            return _fold(spark, store, building, manifest, found.without(manifest.files))


def read_table(spark: SparkSession, store: Path, name: str) -> DataFrame:
    """The table `name` of the store, with the columns that this version knows: what it lacks is null, what is new is left out.

    Raises `StoreRefused` where there is no store.
    """
    if commit.read_manifest(store) is None:
        raise commit.StoreRefused(
            f"{store} holds no tables; make them with `quarterdeck pipeline tables PATH… --out DIR`"
        )
    return _read(spark, store / name, SCHEMAS[name])


def _read(spark: SparkSession, table: Path, wanted: StructType) -> DataFrame:
    return spark.read.schema(wanted).parquet(str(table)).select(wanted.names)


def _fold(spark: SparkSession, store: Path, building: Path, manifest: Manifest, new_input: AuditInput) -> StoreUpdate:
    is_other_form = manifest.form != FORMAT
    known = len(manifest.files)
    if not new_input.files and not is_other_form:
        return StoreUpdate(0, known, (), 0, 0)
    new = _new_lines(spark, new_input)
    with tuned(spark, new_input.size_bytes):
        touched = set() if new is None else _runs(new)
        if commit.directories_by_run(store / "quarantine"):
            touched |= _runs(
                _read(spark, store / "quarantine", QUARANTINE).join(_names(spark, new_input), "file", "left_semi")
            )
    if is_other_form:
        touched |= {run for name in ("events", "quarantine") for run in commit.directories_by_run(store / name)}
    size_bytes = new_input.size_bytes + text_bytes(store, touched)
    with tuned(spark, size_bytes):
        made = _make(spark, building, _lines(spark, store, new_input, new, touched), size_bytes)
    stamps = {str(file.place): file.stamp for file in new_input.files if not file.is_open}
    order = Order(
        tuple(sorted(touched)),
        tuple(SCHEMAS),
        Manifest(FORMAT, {**manifest.files, **stamps}),
    )
    commit.commit(store, building, order)
    if NO_RUN not in commit.directories_by_run(store / "events"):
        touched.discard(NO_RUN)  # stray lines make no run
    return StoreUpdate(len(new_input.files), known, tuple(sorted(touched)), *made)


def text_bytes(store: Path, runs: Collection[str] | None = None) -> int:
    """How many bytes the lines in a store were, about; only those of `runs`, if any are named."""
    return SHRUNK * commit.stored_bytes(store / "events", runs)


def _runs(rows: DataFrame) -> set[str]:
    return {row.run for row in rows.select("run").distinct().collect()}


def _new_lines(spark: SparkSession, new_input: AuditInput) -> DataFrame | None:
    """Columns raw, file, record, reason and run of all lines that are new."""
    if not new_input.files:
        return None
    lines = bronze.read_lines(spark, [str(file) for file in new_input.read]).withColumn("file", _path("file"))
    copies = {str(file.read): str(file.place) for file in new_input.files if file.is_open}
    if copies:
        names = F.create_map(*(F.lit(part) for pair in copies.items() for part in pair))
        lines = lines.withColumn("file", F.coalesce(names[F.col("file")], "file"))
    return bronze.with_run_name(lines).withColumn("run", _run_of_line())


def _names(spark: SparkSession, new_input: AuditInput) -> DataFrame:
    """The files that are read, also under the names that they had while they were open: then their lines were the same."""
    places = sorted(file.place for file in new_input.files)
    opened = [place.parent.parent / OPEN_DIRECTORY / f"{place.stem}{OPEN_SUFFIX}" for place in places]
    return spark.createDataFrame([(str(place),) for place in (*places, *opened)], "file string")


def _path(file: str) -> Column:
    """A path as people write it, of a file's URI."""
    return F.url_decode(F.regexp_replace(F.regexp_replace(file, "^file:/+", "/"), r"\+", "%2B"))


def _run_of_line() -> Column:
    directory = F.regexp_extract("file", "/run=([^/]+)/[^/]*$", 1)
    return F.coalesce("record.run", F.when(directory != "", directory), F.lit(NO_RUN))


def _lines(
    spark: SparkSession, store: Path, new_input: AuditInput, new: DataFrame | None, touched: set[str]
) -> DataFrame:
    """All lines of the touched runs, kept and new. What was wrong in a file that is read again is forgotten."""
    parts = [] if new is None else [new]
    for name, columns in (("events", EVENTS), ("quarantine", QUARANTINE)):
        if runs := set(commit.directories_by_run(store / name)) & touched:
            table = _read(spark, store / name, columns).where(F.col("run").isin(*sorted(runs)))
            if name == "quarantine":
                table = table.join(_names(spark, new_input), "file", "left_anti")
            parts.append(bronze.with_run_name(bronze.parse_lines(table.select("run", "raw", "file"))))
    return reduce(DataFrame.unionByName, parts)


def _make(spark: SparkSession, building: Path, lines: DataFrame, size_bytes: int) -> tuple[int, int]:
    """Write all tables of these lines into `building`; how many records and how many quarantined lines there are."""
    small = is_small(size_bytes)
    ranked = persisted(bronze.ranked(lines.coalesce(1) if small else lines), size_bytes)
    try:
        records = [F.col(f"record.{name}").alias(name) for name in RECORD.names]
        of_lines = ranked.where("place = 1").select(*records, "raw", "file")
        _write(of_lines, building / "events", EVENTS, small=small)
        _write(bronze.quarantined_lines(ranked), building / "quarantine", QUARANTINE, small=small)
        # Read back, each table is made of the few columns that it needs. Where there is little, that costs more than it saves.
        events = of_lines if small else _read(spark, building / "events", EVENTS)
        for name, table in TABLES.items():
            _write(table.make(events), building / name, table.schema, small=small)
        are_records, are_unfit = F.count_if(F.col("place") == 1), F.count_if(bronze.is_quarantined())
        counts = ranked.agg(are_records.alias("records"), are_unfit.alias("unfit")).collect()[0]
    finally:
        ranked.unpersist()
    return counts.records, counts.unfit


def _write(table: DataFrame, path: Path, wanted: StructType, *, small: bool) -> None:
    """What is small is written by one task; else small runs get one file each, great ones several."""
    rows = table.select(wanted.names)
    rows = rows.coalesce(1) if small else rows.hint("rebalance", F.col("run"))
    rows.write.partitionBy("run").option("maxRecordsPerFile", RECORDS_PER_FILE).parquet(str(path), compression="zstd")
