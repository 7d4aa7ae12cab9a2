"""Judges groups of files on Spark: each in one task, which reads its files itself."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from quarterdeck.backend.pipeline.audit_input import Group, InputFile
from quarterdeck.backend.pipeline.judging.group_judge import GroupVerdict, judge_group, lines_of_content
from quarterdeck.backend.pipeline.judging.lines import decode_record
from quarterdeck.backend.pipeline.judging.run_judge import AuditQuestion
from quarterdeck.backend.pipeline.judging.whole_judge import LogVerdict, judge_logs
from quarterdeck.backend.pipeline.spark.arrow import MapInArrow, batches_of, rows_of
from quarterdeck.backend.pipeline.spark.hadoop_path import literal
from quarterdeck.backend.pipeline.spark.tuning import conf_set

BYTES_A_TASK = 16 << 20
"""Half a second of work: a task costs some hundredths of one, and long ones at the end leave cores idle."""

A_FILE_A_BATCH = {"spark.sql.execution.arrow.maxRecordsPerBatch": "1"}
VERDICTS = StructType([StructField("place", LongType()), StructField("json", StringType())])


def judge_on_spark(
    spark: SparkSession, groups: Sequence[Group], question: AuditQuestion
) -> Iterator[tuple[int, GroupVerdict]]:
    """Judge each of `groups`; yield its place and verdict. All executors must find the files under the same paths."""
    tasks = tasks_of(groups)

    def judge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        placed = (placed for (task,) in rows_of(batches, "id") for placed in tasks[task])
        return _verdict_batches((place, judge_group(group, question)) for place, group in placed)

    for row in spark.range(0, len(tasks), 1, len(tasks)).mapInArrow(judge, VERDICTS).collect():
        yield row.place, msgspec.json.decode(row.json, type=GroupVerdict)


def judge_contents_on_spark(
    spark: SparkSession, groups: Sequence[Group], question: AuditQuestion
) -> Iterator[tuple[int, GroupVerdict]]:
    """Judge each of `groups`, whose files are addresses that Spark reads, those of a group in one task."""
    placed = [(file.read, place) for place, group in enumerate(groups) for file in group]
    places = spark.createDataFrame(placed, "path string, place long")
    count = min(len(groups), 1 + sum(file.size_bytes for group in groups for file in group) // BYTES_A_TASK)
    read = contents(spark, [path for path, _ in placed]).select("path", "content")
    joined = read.join(F.broadcast(places), "path").repartition(count, "place").sortWithinPartitions("place", "path")
    with conf_set(spark, A_FILE_A_BATCH):
        rows = joined.mapInArrow(_judging_contents(question), VERDICTS).collect()
    for row in rows:
        yield row.place, msgspec.json.decode(row.json, type=GroupVerdict)


def judge_logs_on_spark(stories: DataFrame, question: AuditQuestion) -> list[LogVerdict]:
    """Judge each run in `stories`, which are like `ProductLogs.stories`."""

    def judge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return _verdict_batches(enumerate(judge_logs(_log_parts(batches), question)))

    rows = stories.mapInArrow(judge, VERDICTS).collect()
    verdicts = [msgspec.json.decode(row.json, type=LogVerdict) for row in rows]
    return sorted(verdicts, key=lambda log: log.story.run)


def contents(spark: SparkSession, paths: Sequence[str]) -> DataFrame:
    """Read the files at these addresses and below, each in a row: path, length, content."""
    escaped = [literal(path) for path in paths]
    return spark.read.format("binaryFile").option("recursiveFileLookup", "true").load(escaped)


def tasks_of(groups: Sequence[Group]) -> list[list[tuple[int, Group]]]:
    """Give each group, the largest first, to the task that has the least to do."""
    sizes = [sum(file.size_bytes for file in group) for group in groups]
    count = min(len(groups), 1 + sum(sizes) // BYTES_A_TASK)
    tasks: list[list[tuple[int, Group]]] = [[] for _ in range(count)]
    loads = [(0, task) for task in range(count)]
    for place in sorted(range(len(groups)), key=lambda place: (-sizes[place], place)):
        load, task = heapq.heappop(loads)
        tasks[task].append((place, groups[place]))
        heapq.heappush(loads, (load + sizes[place], task))
    return tasks


def _judging_contents(question: AuditQuestion) -> MapInArrow:
    def judge_one(content_of: Mapping[str, bytes]) -> GroupVerdict:
        files = [InputFile(path, path) for path in content_of]
        return judge_group(files, question, lambda file: lines_of_content(file, BytesIO(content_of[file.read])))

    def judge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        by_place = groupby(rows_of(batches, "place", "path", "content"), key=itemgetter(0))
        return _verdict_batches(
            (place, judge_one({path: content for _, path, content in of_group})) for place, of_group in by_place
        )

    return judge


def _log_parts(batches: Iterator[pa.RecordBatch]) -> Iterator[Record | LogStory]:
    for what, encoded in rows_of(batches, "what", "json"):
        yield decode_record(encoded) if what == Record.__name__ else msgspec.json.decode(encoded, type=LogStory)


def _verdict_batches(verdicts: Iterable[tuple[int, GroupVerdict | LogVerdict]]) -> Iterator[pa.RecordBatch]:
    rows = ((place, msgspec.json.encode(verdict).decode()) for place, verdict in verdicts)
    return batches_of(rows, VERDICTS, size=1)
