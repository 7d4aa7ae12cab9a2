"""Journals and tables at addresses that only the engine can read, such as `s3a://…` or `hdfs://…`: listed and read by Spark.

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

from quarterdeck.backend.journal.files import FINDINGS_FILE, RUN_PREFIX, SEALED_SUFFIX, NoJournal
from quarterdeck.backend.pipeline.audit_input import SHRUNK, Kind, Stamp
from quarterdeck.backend.pipeline.judging.group_judge import PARQUET, JournalFile
from quarterdeck.backend.pipeline.judging.spark_judge import contents
from quarterdeck.backend.pipeline.judging.whole_judge import Group


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
    """The finished files of journals, or the tables, at `paths`, which are addresses."""

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


def resolve_engine_input(spark: SparkSession, paths: Sequence[str]) -> EngineInput:
    """The files of journals at these addresses, or those of a store at a single one. Raises `NoJournal` where there are none."""
    files: dict[str, EngineFile] = {}
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
        if stored and len(paths) == 1:
            return EngineInput(tuple(paths), stored, "store")
        journals = [file for file in found if _is_journal(file.read)]
        if not journals:
            raise NoJournal(
                f"{path}: holds no journal; expected {RUN_PREFIX}…/*{SEALED_SUFFIX} or *{SEALED_SUFFIX} in it"
                " (logs of members are read from paths of this machine)"
            )
        files.update((file.read, file) for file in journals)
    return EngineInput(tuple(paths), tuple(files.values()))


def _is_journal(path: str) -> bool:
    name = PurePosixPath(path).name
    return name.endswith(SEALED_SUFFIX) and name != FINDINGS_FILE


def _is_event_table(path: str) -> bool:
    *_, table, run, name = ("", "", *PurePosixPath(path).parts)
    return (table, run[: len(RUN_PREFIX)], name[-len(PARQUET) :]) == ("events", RUN_PREFIX, PARQUET)
