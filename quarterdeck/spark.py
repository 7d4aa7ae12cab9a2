"""Spark users at home: the formats ``quarterdeck`` and ``quarterdeck-logs`` in a session of theirs, and all tables as views."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from quarterdeck.backend.pipeline.audit_input import resolve_input
from quarterdeck.backend.pipeline.spark.requirements import PipelineMissing, needing_packages
from quarterdeck.backend.pipeline.staging import staging_folder

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

    from quarterdeck.backend.pipeline.data_sources import (
        JOURNAL_FORMAT,
        LOG_FORMAT,
        each_once,
        made_of,
        records_of_files,
    )
    from quarterdeck.backend.pipeline.tables.batches import TABLES
    from quarterdeck.backend.pipeline.tables.store import read_table

    with staging_folder() as staging:
        found = resolve_input(
            [os.fspath(path) for path in paths], staging, spark=spark
        )  # raises where there is nothing
    if found.kind == "store":
        assert found.store is not None
        return {name: read_table(spark, found.store, name) for name in ("events", *TABLES)}
    if found.is_far:
        records = records_of_files(spark, found)
    else:
        reader = spark.read.format(LOG_FORMAT if found.kind == "logs" else JOURNAL_FORMAT).options(**options)
        records = reader.load([str(Path(path).resolve()) for path in found.paths])
    events = each_once(records).withColumn("utc", F.timestamp_micros("utc"))  # as in a store
    return {"events": events, **{name: made_of(events, name) for name in TABLES}}
