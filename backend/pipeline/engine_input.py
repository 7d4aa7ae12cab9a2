"""Journals, tables and members' logs at addresses that only the engine can read, such as `s3a://…`: listed and read by Spark.

Hadoop's FileSystem is behind it, so whatever that is set up for can be read. Such a place holds finished files alone: Spark
passes over names that begin with `_`, as those of files do that are still being written.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path, PurePosixPath

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from quarterdeck.backend.hazelcast.logs.reader import may_be_log
from quarterdeck.backend.journal.files import FINDINGS_FILE, RUN_PREFIX, SEALED_SUFFIX, NoJournal, as_record
from quarterdeck.backend.pipeline.audit_input import SHRUNK, Kind, Source, Stamp
from quarterdeck.backend.pipeline.judging.group_judge import PARQUET, JournalFile
from quarterdeck.backend.pipeline.judging.spark_judge import contents
from quarterdeck.backend.pipeline.judging.whole_judge import Group
from quarterdeck.backend.pipeline.spark.hadoop_path import literal

LINES_LOOKED_AT = 10
"""Of a file that may hold records or may not."""


class EngineFile(JournalFile, frozen=True):
    """A finished file at an address."""

    changed_us: int = 0

    @property
    def place(self) -> str:
        """Where the file is, as tables name it: files of this machine by their path."""
        return re.sub("^file:/+", "/", self.read)

    @property
    def stamp(self) -> Stamp:
        """Another one means that the file is to be read again."""
        return self.size_bytes, self.changed_us

    @property
    def is_open(self) -> bool:
        """No such file is seen before it is finished."""
        return False


@dataclass(frozen=True)
class EngineInput:
    """The finished files of journals, the tables, or the logs at `paths`, which are addresses."""

    paths: tuple[str, ...]
    files: tuple[EngineFile, ...]
    kind: Kind = "journal"

    @cached_property
    def size_bytes(self) -> int:
        """How many bytes there are to read, as text."""
        return sum(file.size_bytes for file in self.files) * (SHRUNK if self.kind == "store" else 1)

    @cached_property
    def read(self) -> tuple[str, ...]:
        """The files that Spark reads."""
        return tuple(file.read for file in self.files)

    @property
    def run_directories(self) -> Mapping[str, Path]:
        """Nothing here can be replayed by the console."""
        return {}

    def without(self, known: Mapping[str, Stamp]) -> EngineInput:
        """The same but for the files that are `known`, by place, as they are now."""
        return replace(self, files=tuple(file for file in self.files if known.get(file.place) != file.stamp))

    def replayable_path(self, run: str) -> None:
        """Nothing here can be replayed by the console."""
        return

    def groups(self) -> list[Group]:
        """The files of each run. Those in no run's directory stand together: what they hold is seen when they are read."""
        groups: dict[str, list[EngineFile]] = {}
        for file in self.files:
            directory = PurePosixPath(file.read).parent.name
            groups.setdefault(directory if directory.startswith(RUN_PREFIX) else "", []).append(file)
        return [tuple(files) for files in groups.values()]


def resolve_engine_input(spark: SparkSession, paths: Sequence[str], source: Source = "journal") -> EngineInput:
    """The files of journals at these addresses, or those of a store at a single one; or of logs, where `source` allows that.

    Raises `NoJournal` where there are none.
    """
    files: dict[str, EngineFile] = {}
    logs: dict[str, EngineFile] = {}
    for path in paths:
        try:
            rows = (
                contents(spark, [path])
                .select("path", "length", F.unix_micros("modificationTime").alias("us"))
                .collect()
            )
        except AnalysisException as problem:
            raise NoJournal(f"{path}: nothing is there that Spark can read ({problem.getCondition()})") from problem
        found = sorted((EngineFile(row.path, row.path, row.length, row.us) for row in rows), key=lambda one: one.read)
        stored = tuple(file for file in found if _is_event_table(file.read))
        if stored and len(paths) == 1 and source != "logs":
            return EngineInput(tuple(paths), stored, "store")
        of_logs = [file for file in found if may_be_log(PurePosixPath(file.read)) and source != "journal"]
        journals = [file for file in found if _is_journal(file.read) and source != "logs"]
        if of_logs and not any(_holds_records(spark, file.read) for file in journals):
            journals = []  # JSON lines of somebody else, beside logs
        if not journals and not of_logs:
            raise NoJournal(
                f"{path}: holds no journal; expected {RUN_PREFIX}…/*{SEALED_SUFFIX} or *{SEALED_SUFFIX} in it"
                + ("" if source == "journal" else ", or logs of members")
            )
        files.update((file.read, file) for file in journals)
        logs.update((file.read, file) for file in of_logs)
    if not files:
        return EngineInput(tuple(paths), tuple(logs.values()), "logs")
    return EngineInput(tuple(paths), tuple(files.values()))


def _holds_records(spark: SparkSession, path: str) -> bool:
    if PurePosixPath(path).parent.name.startswith(RUN_PREFIX):
        return True
    return any(as_record(row.value.encode()) for row in spark.read.text(literal(path)).head(LINES_LOOKED_AT))


def _is_journal(path: str) -> bool:
    name = PurePosixPath(path).name
    return name.endswith(SEALED_SUFFIX) and name != FINDINGS_FILE


def _is_event_table(path: str) -> bool:
    *_, table, run, name = ("", "", *PurePosixPath(path).parts)
    return (table, run[: len(RUN_PREFIX)], name[-len(PARQUET) :]) == ("events", RUN_PREFIX, PARQUET)
