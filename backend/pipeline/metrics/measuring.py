"""Journals or tables in, metrics out. Importing this file imports no Spark; calling `measure` does."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from quarterdeck.backend.journal.files import NoJournal
from quarterdeck.backend.pipeline import commit
from quarterdeck.backend.pipeline.audit_input import are_addresses, kind_of, resolve_input
from quarterdeck.backend.pipeline.spark.requirements import needing_packages

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from quarterdeck.backend.pipeline.metrics.table_source import TableSource

By = Literal["run", "scenario", "settings", "all"]

TABLE_NAMES = ("detection", "one_view", "splits", "availability", "migration_rates", "plans", "messages")
"""The tables of metrics. A test tells when this is not what the registry has."""

MAX_ROWS = 100_000
NOT_OF_LOGS = (
    "members' logs tell neither faults nor when a member died, so nothing can be measured of them; try `audit`"
)


class Measured(Struct, frozen=True):
    """`rows` have the fields `columns`. `is_cut`: there were more than `MAX_ROWS`. `quarantined`: lines that were no records."""

    columns: tuple[str, ...]
    rows: tuple[dict[str, Any], ...]
    is_cut: bool
    quarantined: int


def measure(paths: Sequence[Path | str], by: By, table: str = "", *, master: str = "", remote: str = "") -> Measured:
    """Percentiles of all metrics by `by`, or the rows of one `table` of them.

    `paths` are journals or one directory of tables, also at addresses that Spark reads. Raises `NoJournal`, `StoreRefused`,
    `PipelineMissing`, `JavaMissing` or `SparkUnreachable`.
    """
    if are_addresses(paths):
        return _measure_addresses(list(map(str, paths)), by, table, master, remote)
    places = list(map(Path, paths))
    is_store = len(places) == 1 and commit.read_manifest(places[0]) is not None
    if not is_store and kind_of(places) == "logs":
        raise NoJournal(f"{places[0]}: holds no journal; {NOT_OF_LOGS}")
    with tempfile.TemporaryDirectory(prefix="quarterdeck-metrics-") as staging:
        found = None if is_store else resolve_input(places, Path(staging), "journal")
        with needing_packages():
            from quarterdeck.backend.pipeline.spark import session, tuning
            from quarterdeck.backend.pipeline.tables.store import text_bytes
        size_bytes = text_bytes(places[0]) if found is None else found.size_bytes
        with session.spark_session(master, remote=remote) as spark, tuning.tuned(spark, size_bytes):
            if found is None:
                table_source, quarantined = _of_store(spark, places[0])
            elif tuning.is_small(size_bytes):
                table_source, quarantined = _of_few(spark, found.read)
            else:
                table_source, quarantined = _of_files(spark, found.read, Path(staging) / "events")
            return _measured(table_source, by, table, quarantined)


def _of_store(spark: SparkSession, store: Path | str) -> tuple[TableSource, int]:
    from quarterdeck.backend.pipeline.metrics.table_source import TableSource
    from quarterdeck.backend.pipeline.tables.store import read_table

    return TableSource.of_store(spark, store), read_table(spark, store, "quarantine").count()


def _measure_addresses(paths: Sequence[str], by: By, table: str, master: str, remote: str) -> Measured:
    with needing_packages():
        from quarterdeck.backend.pipeline.engine_input import resolve_engine_input
        from quarterdeck.backend.pipeline.spark import session, tuning
    with session.spark_session(master, remote=remote) as spark, tempfile.TemporaryDirectory() as staging:
        found = resolve_engine_input(spark, paths)
        with tuning.tuned(spark, found.size_bytes):
            if found.kind == "store":
                table_source, quarantined = _of_store(spark, found.paths[0])
            elif tuning.is_small(found.size_bytes):
                table_source, quarantined = _of_few(spark, found.read)
            else:
                table_source, quarantined = _of_files(spark, found.read, Path(staging) / "events")
            return _measured(table_source, by, table, quarantined)


def _of_few(spark: SparkSession, files: Sequence[Path | str]) -> tuple[TableSource, int]:
    from pyspark.sql import functions as F

    from quarterdeck.backend.pipeline.metrics.table_source import TableSource
    from quarterdeck.backend.pipeline.tables import bronze

    lines = bronze.with_run_name(bronze.read_lines(spark, [str(file) for file in files])).coalesce(1)
    ranked = bronze.ranked(lines).localCheckpoint()
    unfit = ranked.agg(F.count_if(bronze.is_quarantined()).alias("lines")).collect()[0]
    return TableSource(bronze.bronze(ranked).events), unfit.lines


def _of_files(spark: SparkSession, files: Sequence[Path | str], place: Path) -> tuple[TableSource, int]:
    """The events go through Parquet at `place`: so each table is made of the few columns that it needs."""
    from pyspark.sql import Observation
    from pyspark.sql import functions as F

    from quarterdeck.backend.pipeline.metrics.table_source import TableSource
    from quarterdeck.backend.pipeline.schemas import RECORD
    from quarterdeck.backend.pipeline.tables import bronze

    seen = Observation()
    lines = bronze.ranked(bronze.with_run_name(bronze.read_lines(spark, [str(file) for file in files])))
    counted = lines.observe(seen, F.count_if(bronze.is_quarantined()).alias("unfit"))
    bronze.bronze(counted).events.write.parquet(str(place), compression="zstd")
    return TableSource(spark.read.schema(RECORD).parquet(str(place))), int(seen.get["unfit"])


def _measured(table_source: TableSource, by: By, table: str, quarantined: int) -> Measured:
    from quarterdeck.backend.pipeline.metrics.registry import METRICS
    from quarterdeck.backend.pipeline.metrics.summary import summary

    if table:
        made = METRICS[table].make(table_source)
        rows = made.orderBy(*(name for name in ("run", "from_at", "at", *made.columns) if name in made.columns))
    else:
        rows = summary(table_source, by)
    found = [row.asDict(recursive=True) for row in rows.limit(MAX_ROWS + 1).collect()]
    return Measured(tuple(rows.columns), tuple(found[:MAX_ROWS]), len(found) > MAX_ROWS, quarantined)
