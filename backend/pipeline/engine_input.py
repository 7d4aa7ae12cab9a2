"""Journals under addresses that only the engine can read, such as `s3a://…` or `hdfs://…`: listed and read by Spark.

Hadoop's FileSystem is behind it, so whatever that is set up for can be read. Such a place holds finished files alone: Spark
passes over names that begin with `_`, as those of files do that are still being written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from quarterdeck.backend.journal.files import FINDINGS_FILE, RUN_PREFIX, SEALED_SUFFIX, NoJournal
from quarterdeck.backend.pipeline.audit_input import Kind
from quarterdeck.backend.pipeline.judging.group_judge import JournalFile
from quarterdeck.backend.pipeline.judging.spark_judge import contents
from quarterdeck.backend.pipeline.judging.whole_judge import Group


@dataclass(frozen=True)
class EngineInput:
    """The finished files of journals at `paths`, which are addresses."""

    paths: tuple[str, ...]
    files: tuple[JournalFile, ...]
    kind: Kind = "journal"

    @cached_property
    def size_bytes(self) -> int:
        """How many bytes there are to read."""
        return sum(file.size_bytes for file in self.files)

    @cached_property
    def read(self) -> tuple[str, ...]:
        """The files that Spark reads."""
        return tuple(file.read for file in self.files)

    @property
    def run_directories(self) -> Mapping[str, Path]:
        """Nothing here can be replayed by the console."""
        return {}

    def replayable_path(self, run: str) -> None:
        """Nothing here can be replayed by the console."""
        return

    def groups(self) -> list[Group]:
        """The files of each run. Those in no run's directory stand together: what they hold is seen when they are read."""
        groups: dict[str, list[JournalFile]] = {}
        for file in self.files:
            directory = PurePosixPath(file.read).parent.name
            groups.setdefault(directory if directory.startswith(RUN_PREFIX) else "", []).append(file)
        return [tuple(files) for files in groups.values()]


def resolve_engine_input(spark: SparkSession, paths: Sequence[str]) -> EngineInput:
    """The files of journals at these addresses. Raises `NoJournal` where there are none."""
    files: dict[str, JournalFile] = {}
    for path in paths:
        try:
            rows = contents(spark, [path]).select("path", "length").collect()
        except AnalysisException as problem:
            raise NoJournal(f"{path}: nothing is there that Spark can read ({problem.getCondition()})") from problem
        found = [JournalFile(row.path, row.path, row.length) for row in rows if _is_journal(row.path)]
        if not found:
            raise NoJournal(
                f"{path}: holds no journal; expected {RUN_PREFIX}…/*{SEALED_SUFFIX} or *{SEALED_SUFFIX} in it"
            )
        files.update((file.read, file) for file in sorted(found, key=lambda one: one.read))
    return EngineInput(tuple(paths), tuple(files.values()))


def _is_journal(path: str) -> bool:
    name = PurePosixPath(path).name
    return name.endswith(SEALED_SUFFIX) and name != FINDINGS_FILE
