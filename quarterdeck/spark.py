"""Spark users at home: the formats ``quarterdeck`` and ``quarterdeck-logs`` in a session of theirs, and all tables as views."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from quarterdeck.backend.pipeline.audit_input import are_addresses, kind_of
from quarterdeck.backend.pipeline.commit import read_manifest
from quarterdeck.backend.pipeline.spark.requirements import PipelineMissing, needing_packages

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["register"]

FilePath = str | os.PathLike[str]


def register(
    spark: SparkSession, paths: FilePath | Iterable[FilePath] = (), *, prefix: str = "", **options: str
) -> tuple[str, ...]:
    """Make the formats known to the session. With `paths`, also make temporary views; their names are returned.

    `paths` are journals, logs of members, or one store that ``quarterdeck pipeline tables`` made; journals and stores may be at
    addresses such as ``s3a://bucket/journals``. The views are `events`, which
    has every record once, and all tables that are made of it, under these names after `prefix`; `options` are the format's.
    Raises `NoJournal` or `NoLogs` when there is nothing to read, and `PipelineMissing`, also where the session's workers run a
    Python without this package.
    """
    with needing_packages():
        from quarterdeck.backend.pipeline import data_sources
        from quarterdeck.backend.pipeline.spark.session import using
    _check_workers(spark)
    several = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    with using(spark):
        spark.dataSource.register(data_sources.JournalSource)
        spark.dataSource.register(data_sources.LogDataSource)
        spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
        tables = _tables(spark, several, options) if several else {}
        for name, table in tables.items():
            table.createOrReplaceTempView(prefix + name)
    return tuple(prefix + name for name in tables)


def _check_workers(spark: SparkSession) -> None:
    """Refuse a session of this machine whose workers run a Python that lacks the package; others are sent it."""
    context = getattr(spark, "_sc", None)  # a session of Spark Connect has none
    if context is None or not str(context.master).startswith("local"):
        return
    python = shutil.which(context.pythonExec)
    if python == sys.executable:
        return
    imports = [python or "", "-c", "import quarterdeck, msgspec, pyarrow"]
    if python is None or subprocess.run(imports, capture_output=True, check=False).returncode:
        raise PipelineMissing(
            f"Spark's workers run {python or context.pythonExec}, which cannot import quarterdeck: "
            f"set PYSPARK_PYTHON={sys.executable} before Spark starts"
        )


def _tables(spark: SparkSession, paths: list[FilePath], options: dict[str, str]) -> dict[str, DataFrame]:
    from pyspark.sql import functions as F

    from quarterdeck.backend.pipeline.data_sources import made_of
    from quarterdeck.backend.pipeline.tables.batches import TABLES
    from quarterdeck.backend.pipeline.tables.store import read_table

    store = _store_at(spark, paths)
    if store is not None:
        return {name: read_table(spark, store, name) for name in ("events", *TABLES)}
    if are_addresses([str(path) for path in paths]):
        events = _events_at(spark, list(map(str, paths)))
    else:
        events = _events_of(spark, [Path(path) for path in paths], options)
    events = events.withColumn("utc", F.timestamp_micros("utc"))  # as in a store
    return {"events": events, **{name: made_of(events, name) for name in TABLES}}


def _store_at(spark: SparkSession, paths: list[FilePath]) -> Path | str | None:
    """Return the store that was named; None where it is something else."""
    if len(paths) > 1:
        return None
    place = os.fspath(paths[0])
    if not are_addresses([place]):
        return Path(place) if read_manifest(Path(place)) is not None else None
    from quarterdeck.backend.pipeline.far_input import resolve_far_input

    return place if resolve_far_input(spark, [place]).kind == "store" else None


def _events_of(spark: SparkSession, paths: list[Path], options: dict[str, str]) -> DataFrame:
    """Return the events in journals or logs of this machine, each once."""
    from quarterdeck.backend.hazelcast.logs.reader import log_files
    from quarterdeck.backend.journal.files import journal_files
    from quarterdeck.backend.pipeline.data_sources import JOURNAL_FORMAT, LOG_FORMAT

    if kind_of(paths) == "logs":
        log_files(paths)  # raises here, and not in a task, where there is nothing
        source = LOG_FORMAT
    else:
        for path in paths:
            journal_files(path)
        source = JOURNAL_FORMAT
    read = spark.read.format(source).options(**options).load([str(path.resolve()) for path in paths])
    return read.dropDuplicates(["run", "uuid", "seq"])


def _events_at(spark: SparkSession, addresses: list[str]) -> DataFrame:
    """Return the events in journals at addresses, each once: Spark reads what Python cannot open."""
    from quarterdeck.backend.pipeline.data_sources import records_at
    from quarterdeck.backend.pipeline.far_input import resolve_far_input

    return records_at(spark, resolve_far_input(spark, addresses).read).dropDuplicates(["run", "uuid", "seq"])
