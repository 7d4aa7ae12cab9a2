"""Judges groups of files on Spark: each in one task, which reads its files itself."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from io import BytesIO
from itertools import groupby
from operator import itemgetter

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructField, StructType

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.hazelcast.logs.observations.story import LogStory
from quarterdeck.backend.pipeline.judging.group_judge import GroupVerdict, JournalFile, judge_group, lines_of_content
from quarterdeck.backend.pipeline.judging.lines import decode_record
from quarterdeck.backend.pipeline.judging.log_judge import LogVerdict, judge_logs
from quarterdeck.backend.pipeline.judging.run_judge import AuditQuestion
from quarterdeck.backend.pipeline.judging.whole_judge import Group
from quarterdeck.backend.pipeline.spark.error_output import exit_with_task
from quarterdeck.backend.pipeline.spark.hadoop_path import literal

BYTES_A_TASK = 16 << 20
"""Half a second of work: a task costs some hundredths of one, and great ones at the end leave cores idle."""

ROWS_A_BATCH = "spark.sql.execution.arrow.maxRecordsPerBatch"

VERDICTS = StructType([StructField("place", LongType()), StructField("json", StringType())])
_ARROW = pa.schema([("place", pa.int64()), ("json", pa.string())])
_Placed = tuple[int, Group]


def judge_on_spark(
    spark: SparkSession, groups: Sequence[Group], question: AuditQuestion
) -> Iterator[tuple[int, GroupVerdict]]:
    """What is said of each of `groups`, with its place. All executors have to find the files under the same paths."""
    tasks = tasks_of(groups)
    judged = spark.range(0, len(tasks), 1, len(tasks)).mapInArrow(_judging(tasks, question), VERDICTS)
    for row in judged.collect():
        yield row.place, msgspec.json.decode(row.json, type=GroupVerdict)


def judge_contents_on_spark(
    spark: SparkSession, groups: Sequence[Group], question: AuditQuestion
) -> Iterator[tuple[int, GroupVerdict]]:
    """What is said of each of `groups`, whose files are addresses that Spark reads. The files of a group come to one task."""
    placed = [(file.read, place) for place, group in enumerate(groups) for file in group]
    places = spark.createDataFrame(placed, "path string, place long")
    count = min(len(groups), 1 + sum(file.size_bytes for group in groups for file in group) // BYTES_A_TASK)
    read = contents(spark, [path for path, _ in placed]).select("path", "content")
    together = read.join(F.broadcast(places), "path").repartition(count, "place").sortWithinPartitions("place", "path")
    few = spark.conf.get(ROWS_A_BATCH, None)
    spark.conf.set(ROWS_A_BATCH, "1")  # each row is a whole file
    try:
        rows = together.mapInArrow(_judging_contents(question), VERDICTS).collect()
    finally:
        spark.conf.set(ROWS_A_BATCH, few or "10000")
    for row in rows:
        yield row.place, msgspec.json.decode(row.json, type=GroupVerdict)


def judge_logs_on_spark(told: DataFrame, question: AuditQuestion) -> list[LogVerdict]:
    """What is to be said of each run in `told`, which holds what logs tell as `ProductLogs.told` does."""
    judged = told.mapInArrow(_judging_logs(question), VERDICTS)
    verdicts = [msgspec.json.decode(row.json, type=LogVerdict) for row in judged.collect()]
    return sorted(verdicts, key=lambda one: one.story.run)


def contents(spark: SparkSession, paths: Sequence[str]) -> DataFrame:
    """The files at these addresses and below, each in a row: path, length, content."""
    escaped = [literal(path) for path in paths]
    return spark.read.format("binaryFile").option("recursiveFileLookup", "true").load(escaped)


def tasks_of(groups: Sequence[Group]) -> list[list[_Placed]]:
    """The groups, the greatest first, each given to the task that has least to do."""
    sizes = [sum(file.size_bytes for file in group) for group in groups]
    count = min(len(groups), 1 + sum(sizes) // BYTES_A_TASK)
    tasks: list[list[_Placed]] = [[] for _ in range(count)]
    loads = [(0, task) for task in range(count)]
    for place in sorted(range(len(groups)), key=lambda one: (-sizes[one], one)):
        load, task = heapq.heappop(loads)
        tasks[task].append((place, groups[place]))
        heapq.heappush(loads, (load + sizes[place], task))
    return tasks


_MapInArrow = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def _judging(tasks: Sequence[Sequence[_Placed]], question: AuditQuestion) -> _MapInArrow:
    def judge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        exit_with_task()
        for batch in batches:
            for task in batch.column("id").to_pylist():
                for place, group in tasks[task]:
                    yield _row(place, judge_group(group, question))

    return judge


def _judging_contents(question: AuditQuestion) -> _MapInArrow:
    def judge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        exit_with_task()
        rows = (
            row
            for batch in batches
            for row in zip(*(batch.column(name).to_pylist() for name in ("place", "path", "content")), strict=True)
        )
        for place, of_group in groupby(rows, key=itemgetter(0)):
            whole = {path: content for _, path, content in of_group}
            yield _row(place, _judge_contents(whole, question))

    return judge


def _judge_contents(whole: Mapping[str, bytes], question: AuditQuestion) -> GroupVerdict:
    def read(file: JournalFile) -> Iterable[bytes]:
        return lines_of_content(file, BytesIO(whole[file.read]))

    return judge_group([JournalFile(path, path) for path in whole], question, read)


def _judging_logs(question: AuditQuestion) -> _MapInArrow:
    def judge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        exit_with_task()
        for place, verdict in enumerate(judge_logs(_told(batches), question)):
            yield _row(place, verdict)

    return judge


def _told(batches: Iterator[pa.RecordBatch]) -> Iterator[Record | LogStory]:
    for batch in batches:
        for what, told in zip(batch.column("what").to_pylist(), batch.column("json").to_pylist(), strict=True):
            yield decode_record(told) if what == Record.__name__ else msgspec.json.decode(told, type=LogStory)


def _row(place: int, verdict: GroupVerdict | LogVerdict) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {"place": [place], "json": [msgspec.json.encode(verdict).decode()]}, schema=_ARROW
    )
