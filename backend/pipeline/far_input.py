"""Finds journals, tables and members' logs at addresses that only Spark can read, such as `s3a://…`.

Hadoop's FileSystem lists them, so every address that it is configured for can be read. Such a place holds finished files alone:
Spark ignores names that begin with `_`, as those of files do that are still being written.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from quarterdeck.backend.hazelcast.logs.reader import may_be_log
from quarterdeck.backend.journal.files import FINDINGS_FILE, RUN_PREFIX, SEALED_SUFFIX, NoJournal, as_record
from quarterdeck.backend.pipeline.audit_input import AuditInput, InputFile, Source
from quarterdeck.backend.pipeline.judging.group_judge import PARQUET
from quarterdeck.backend.pipeline.judging.spark_tasks import contents
from quarterdeck.backend.pipeline.spark.hadoop_path import literal

LINES_SAMPLED = 10
"""How many lines of a file are read to see whether it holds records."""


def resolve_far_input(spark: SparkSession, paths: Sequence[str], source: Source = "journal") -> AuditInput:
    """Find the files of journals at these addresses, of a store at a single one, or of logs where `source` allows that.

    Raises `NoJournal` where there are none.
    """
    journals: dict[str, InputFile] = {}
    logs: dict[str, InputFile] = {}
    for path in paths:
        found = _files_at(spark, path)
        stored = tuple(file for file in found if _is_event_table(file.read))
        if stored and len(paths) == 1 and source != "logs":
            return AuditInput("store", tuple(paths), stored, is_far=True)
        logs_here = [file for file in found if may_be_log(PurePosixPath(file.read)) and source != "journal"]
        sealed = (file for file in found if file.read.endswith(SEALED_SUFFIX) and source != "logs")
        journals_here = [file for file in sealed if PurePosixPath(file.read).name != FINDINGS_FILE]
        if logs_here and not any(_holds_records(spark, file.read) for file in journals_here):
            journals_here = []  # JSON lines of another program, beside logs
        if not journals_here and not logs_here:
            raise NoJournal(
                f"{path}: holds no journal; expected {RUN_PREFIX}…/*{SEALED_SUFFIX} or *{SEALED_SUFFIX} in it"
                + ("" if source == "journal" else ", or logs of members")
            )
        journals |= {file.read: file for file in journals_here}
        logs |= {file.read: file for file in logs_here}
    return AuditInput("journal" if journals else "logs", tuple(paths), tuple((journals or logs).values()), is_far=True)


def _files_at(spark: SparkSession, path: str) -> list[InputFile]:
    changed = F.unix_micros("modificationTime").alias("changed")
    try:
        rows = contents(spark, [path]).select("path", "length", changed).collect()
    except AnalysisException as problem:
        raise NoJournal(f"{path}: nothing is there that Spark can read ({problem.getCondition()})") from problem
    return sorted((InputFile(row.path, row.path, row.length, row.changed) for row in rows), key=lambda file: file.read)


def _holds_records(spark: SparkSession, path: str) -> bool:
    if PurePosixPath(path).parent.name.startswith(RUN_PREFIX):
        return True
    return any(as_record(row.value.encode()) for row in spark.read.text(literal(path)).head(LINES_SAMPLED))


def _is_event_table(path: str) -> bool:
    *_, table, run, name = ("", "", *PurePosixPath(path).parts)  # in earlier forms each run had a directory
    return name.endswith(PARQUET) and "events" in (run, table if run.startswith(RUN_PREFIX) else "")
