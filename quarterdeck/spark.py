"""Spark users at home: the formats ``quarterdeck`` and ``quarterdeck-logs`` in a session of theirs, tables and findings."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from quarterdeck.backend.pipeline.audit_input import resolve_input
from quarterdeck.backend.pipeline.spark.requirements import PipelineMissing, needing_packages
from quarterdeck.backend.pipeline.staging import staging_folder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["findings", "register", "tables"]

FilePath = str | os.PathLike[str]


def register(
    spark: SparkSession, paths: FilePath | Iterable[FilePath] = (), *, prefix: str = "", **options: str
) -> tuple[str, ...]:
    """Make the formats known to the session. With `paths`, also make temporary views of `tables`; their names are returned.

    Args:
        spark: The session, also one of Spark Connect.
        paths: As those of `tables`; none make no views.
        prefix: Begins the names of all views.
        options: Options of the format.

    Raises:
        NoJournal: A path holds no journal.
        NoLogs: A path holds no log.
        PipelineMissing: A package is missing here, or in the Python that the session's workers run.
    """
    with _session_in_use(spark):
        made = _tables(spark, _several(paths), options) if _several(paths) else {}
        for name, table in made.items():
            table.createOrReplaceTempView(prefix + name)
    return tuple(prefix + name for name in made)


def tables(paths: FilePath | Iterable[FilePath], spark: SparkSession, **options: str) -> dict[str, DataFrame]:
    """Return the tables of journals, logs or a store by their names; the first is `events`, which has every record once.

    Args:
        paths: Journals, logs of members, or one store that ``quarterdeck pipeline tables`` made. Journals and stores may be at
            addresses such as ``s3a://bucket/journals``.
        spark: The session, also one of Spark Connect.
        options: Options of the format.

    Raises:
        NoJournal: A path holds no journal.
        NoLogs: A path holds no log.
        PipelineMissing: A package is missing here, or in the Python that the session's workers run.
    """
    with _session_in_use(spark):
        return _tables(spark, _several(paths), options)


def findings(
    paths: FilePath | Iterable[FilePath],
    spark: SparkSession,
    *,
    rules: Iterable[str] = (),
    bound_seconds: float | None = None,
) -> DataFrame:
    """Return the findings of an audit as a DataFrame, whose runs Spark's tasks judge when its rows are asked for.

    Args:
        paths: As those of `tables`.
        spark: The session, also one of Spark Connect.
        rules: The names of the rules to be judged; all, where none is named.
        bound_seconds: How long undisturbed members may take to agree; by default what the rules say.

    Raises:
        NoJournal: A path holds no journal.
        NoLogs: A path holds no log.
        PipelineMissing: A package is missing here, or in the Python that the session's workers run.
        ValueError: There is no rule of a name.
    """
    with _session_in_use(spark), staging_folder() as staging:
        from quarterdeck.backend.pipeline.audit import audit, judged_rules
        from quarterdeck.backend.pipeline.findings import findings_in
        from quarterdeck.backend.pipeline.judging.run_judge import AuditQuestion
        from quarterdeck.backend.pipeline.tables.store import findings_table

        places = [os.fspath(path) for path in _several(paths)]
        names, bound_us = tuple(rules), None if bound_seconds is None else round(bound_seconds * 1_000_000)
        found = resolve_input(places, staging, spark=spark)
        if found.kind == "logs":  # few, which several readings find
            result = audit(places, rules=names, spark=spark, bound_us=bound_us)
            return spark.createDataFrame(findings_table(result.findings))
        return findings_in(spark, found, AuditQuestion(judged_rules(names, found), bound_us))


def _several(paths: FilePath | Iterable[FilePath]) -> list[FilePath]:
    return [paths] if isinstance(paths, str | os.PathLike) else list(paths)


@contextmanager
def _session_in_use(spark: SparkSession) -> Iterator[None]:
    """Use a session of another owner, to which the formats are known."""
    with needing_packages():
        from quarterdeck.backend.pipeline import data_sources
        from quarterdeck.backend.pipeline.spark.session import using
    _check_workers(spark)
    with using(spark):
        spark.dataSource.register(data_sources.JournalSource)
        spark.dataSource.register(data_sources.LogDataSource)
        spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
        yield


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
