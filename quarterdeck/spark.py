"""Spark users at home: the formats ``quarterdeck`` and ``quarterdeck-logs`` in a session of theirs, and all tables as views."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from quarterdeck.backend.pipeline.audit_input import kind_of
from quarterdeck.backend.pipeline.commit import read_manifest
from quarterdeck.backend.pipeline.spark.requirements import needing_packages

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["register"]

FilePath = str | os.PathLike[str]


def register(
    spark: SparkSession, paths: FilePath | Iterable[FilePath] = (), *, prefix: str = "", **options: str
) -> tuple[str, ...]:
    """Make the formats known to the session. With `paths`, also make temporary views; their names are returned.

    `paths` are journals, logs of members, or one store that ``quarterdeck pipeline tables`` made. The views are `events`, which
    has every record once, and all tables that are made of it, under these names after `prefix`; `options` are the format's.
    Raises `NoJournal` or `NoLogs` when there is nothing to read, and `PipelineMissing`.
    """
    with needing_packages():
        from quarterdeck.backend.pipeline import data_sources
        from quarterdeck.backend.pipeline.spark.session import using
    several = [Path(paths)] if isinstance(paths, str | os.PathLike) else [Path(path) for path in paths]
    with using(spark):
        spark.dataSource.register(data_sources.JournalSource)
        spark.dataSource.register(data_sources.LogSource)
        tables = _tables(spark, several, options) if several else {}
        for name, table in tables.items():
            table.createOrReplaceTempView(prefix + name)
    return tuple(prefix + name for name in tables)


def _tables(spark: SparkSession, paths: list[Path], options: dict[str, str]) -> dict[str, DataFrame]:
    from quarterdeck.backend.hazelcast.logs.reader import log_files
    from quarterdeck.backend.journal.files import journal_files
    from quarterdeck.backend.pipeline.data_sources import JOURNAL_FORMAT, LOG_FORMAT
    from quarterdeck.backend.pipeline.tables.registry import TABLES
    from quarterdeck.backend.pipeline.tables.store import read_table

    if len(paths) == 1 and read_manifest(paths[0]) is not None:
        return {name: read_table(spark, paths[0], name) for name in ("events", *TABLES)}
    if kind_of(paths) == "logs":
        log_files(paths)  # nothing there is told here, and not by a task
        source = LOG_FORMAT
    else:
        for path in paths:
            journal_files(path)
        source = JOURNAL_FORMAT
    read = spark.read.format(source).options(**options).load([str(path.resolve()) for path in paths])
    events = read.dropDuplicates(["run", "uuid", "seq"])
    return {"events": events, **{name: table.make(events) for name, table in TABLES.items()}}
