"""Judges a large run on Spark in many tasks: by file, then by incarnation, then by shares of the keys that its rules name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from io import BytesIO
from typing import get_type_hints

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BinaryType, DataType, LongType, StringType, StructField, StructType

from quarterdeck.backend.pipeline.audit_input import Group, InputFile
from quarterdeck.backend.pipeline.judging import division
from quarterdeck.backend.pipeline.judging.division import PartSummary, ReadRow, SharedRow
from quarterdeck.backend.pipeline.judging.group_judge import (
    GroupVerdict,
    ReadLines,
    judge_group,
    lines_of_content,
)
from quarterdeck.backend.pipeline.judging.run_judge import AuditQuestion
from quarterdeck.backend.pipeline.judging.spark_tasks import (
    a_row_a_task,
    carry_out_on_spark,
    contents,
    reader_of,
    rows_of_tasks,
    tasks_in,
)
from quarterdeck.backend.pipeline.judging.tasks import BYTES_A_TASK, tasks_of
from quarterdeck.backend.pipeline.spark.arrow import batches_of, rows_of
from quarterdeck.backend.pipeline.spark.tuning import FEW_FILES_A_BATCH, conf_set

ROWS_AT_ONCE = 4_096
MOST_TASKS = 256
"""Of one step: an incarnation, or a share, is in one task, and there are seldom more of them."""

MOST_SHARES = 64
"""Each share has to know all incarnations and tables, which is not divided."""

_TYPES: dict[type, DataType] = {int: LongType(), str: StringType(), bytes: BinaryType()}


def _columns_of(row: type) -> StructType:
    return StructType([StructField(name, _TYPES[kind]) for name, kind in get_type_hints(row).items()])


_READ, _SHARED = _columns_of(ReadRow), _columns_of(SharedRow)
_SUMMARY = StructType([StructField("summary", BinaryType())])


def judge_groups_on_spark(
    spark: SparkSession, question: AuditQuestion, undivided_bytes: int, groups: Sequence[Group], *, are_far: bool
) -> Iterator[tuple[int, GroupVerdict]]:
    """Judge each of `groups`, one with more than `undivided_bytes` in several tasks; yield its place and verdict.

    `are_far`: the files are at addresses.
    """
    sizes = [sum(file.size_bytes for file in group) for group in groups]
    small = [place for place, size in enumerate(sizes) if size <= undivided_bytes]
    if small:
        undivided = [groups[place] for place in small]
        for place, verdict in carry_out_on_spark(spark, undivided, partial(_judge, question), are_far=are_far):
            yield small[place], verdict
    for place, size in enumerate(sizes):
        if size > undivided_bytes:
            count = min(MOST_SHARES, 1 + size // max(1, undivided_bytes))
            yield place, _judge_divided(spark, groups[place], question, count, are_far=are_far)


def _judge(question: AuditQuestion, group: Group, read: ReadLines) -> GroupVerdict:
    return judge_group(group, question, read)


def _judge_divided(
    spark: SparkSession, group: Group, question: AuditQuestion, count: int, *, are_far: bool
) -> GroupVerdict:
    def judge_incarnations(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = map(ReadRow._make, rows_of(batches, *ReadRow._fields))
        return batches_of(division.judge_incarnations(rows, question, count), _SHARED, ROWS_AT_ONCE)

    def judge_shares(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = map(SharedRow._make, rows_of(batches, *SharedRow._fields))
        summaries = division.judge_shares(rows, question, count)
        return batches_of(((msgspec.json.encode(summary),) for summary in summaries), _SUMMARY, ROWS_AT_ONCE)

    tasks = min(MOST_TASKS, 1 + sum(file.size_bytes for file in group) // BYTES_A_TASK)
    divided = tasks_of([(file,) for file in group])
    reader = reader_of(spark, [group], are_far=are_far)
    with conf_set(spark, FEW_FILES_A_BATCH), a_row_a_task(spark, len(divided)):
        if reader is None:
            paths = [file.read for file in group]
            read = contents(spark, paths).select("path", "content").mapInArrow(_reading_contents, _READ)
        else:
            read = rows_of_tasks(spark, divided).mapInArrow(partial(_reading, reader), _READ)
        incarnations = _repartitioned(read, tasks, ReadRow._fields[:2], ReadRow._fields[:7])
        shared = incarnations.mapInArrow(judge_incarnations, _SHARED)
        shares = _repartitioned(shared, 2 * count, SharedRow._fields[:2], SharedRow._fields[:6])
        rows = shares.mapInArrow(judge_shares, _SUMMARY).collect()
    return division.together(msgspec.json.decode(bytes(row.summary), type=PartSummary) for row in rows)


def _repartitioned(rows: DataFrame, tasks: int, keys: Sequence[str], order: Sequence[str]) -> DataFrame:
    return rows.repartition(tasks, *keys).sortWithinPartitions(*order)


def _reading(reader: ReadLines, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    files = [file for task in tasks_in(batches) for _, alone in task for file in alone]
    return batches_of(division.read_rows(files, reader), _READ, ROWS_AT_ONCE)


def _reading_contents(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    def read_content(path: str, content: bytes) -> Iterator[ReadRow]:
        return division.read_rows([InputFile(path, path)], lambda file: lines_of_content(file, BytesIO(content)))

    rows = (row for file in rows_of(batches, "path", "content") for row in read_content(*file))
    return batches_of(rows, _READ, ROWS_AT_ONCE)
