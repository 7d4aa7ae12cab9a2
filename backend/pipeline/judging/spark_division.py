"""Judges a great run on Spark as many tasks: by file, then by incarnation, then by shares of the keys that its rules name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from io import BytesIO
from itertools import islice
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from quarterdeck.backend.pipeline.judging import division
from quarterdeck.backend.pipeline.judging.division import PartSummary, ReadRow, SharedRow
from quarterdeck.backend.pipeline.judging.group_judge import (
    GroupVerdict,
    JournalFile,
    lines_of_content,
    lines_of_file,
)
from quarterdeck.backend.pipeline.judging.run_judge import AuditQuestion
from quarterdeck.backend.pipeline.judging.spark_judge import (
    BYTES_A_TASK,
    contents,
    judge_contents_on_spark,
    judge_on_spark,
    tasks_of,
)
from quarterdeck.backend.pipeline.judging.whole_judge import Group
from quarterdeck.backend.pipeline.spark.error_output import exit_with_task
from quarterdeck.backend.pipeline.spark.tuning import FEW_FILES_A_BATCH, conf_set

ROWS_AT_ONCE = 4_096
MOST_TASKS = 256
"""Of one step: an incarnation, or a share, is in one task, and there are seldom more of them."""

MOST_SHARES = 64
"""Each has to know what all incarnations and tables are like, which is not divided."""


class _Columns(NamedTuple):
    """The columns of rows, for Arrow and for Spark."""

    arrow: pa.Schema
    spark: str


_NUMBER, _TEXT, _BYTES = (pa.int64(), "long"), (pa.string(), "string"), (pa.binary(), "binary")


def _columns(names: Sequence[str]) -> _Columns:
    special = {"run": _TEXT, "uuid": _TEXT, "place": _TEXT, "raw": _BYTES, "told": _BYTES}
    types = [(name, *special.get(name, _NUMBER)) for name in names]
    return _Columns(
        pa.schema([(name, arrow) for name, arrow, _ in types]), ", ".join(f"{name} {spark}" for name, _, spark in types)
    )


_READ, _SHARED, _TOLD = (_columns(names) for names in (ReadRow._fields, SharedRow._fields, ("told",)))


def judge_groups_on_spark(
    spark: SparkSession, question: AuditQuestion, undivided_bytes: int, groups: Sequence[Group], *, are_addresses: bool
) -> Iterator[tuple[int, GroupVerdict]]:
    """What is said of each of `groups`, with its place: of one with more bytes by several tasks, one after the other.

    `are_addresses`: Spark reads the files, not the tasks.
    """
    sizes = [sum(file.size_bytes for file in group) for group in groups]
    small = [place for place, size in enumerate(sizes) if size <= undivided_bytes]
    if small:
        judge = judge_contents_on_spark if are_addresses else judge_on_spark
        for place, verdict in judge(spark, [groups[place] for place in small], question):
            yield small[place], verdict
    for place, size in enumerate(sizes):
        if size > undivided_bytes:
            count = min(MOST_SHARES, 1 + size // max(1, undivided_bytes))
            yield place, _judge_divided(spark, groups[place], question, count, are_addresses=are_addresses)


def _judge_divided(
    spark: SparkSession, group: Group, question: AuditQuestion, count: int, *, are_addresses: bool
) -> GroupVerdict:
    tasks = min(MOST_TASKS, 1 + sum(file.size_bytes for file in group) // BYTES_A_TASK)
    with conf_set(spark, FEW_FILES_A_BATCH):
        if are_addresses:
            paths = [file.read for file in group]
            read = contents(spark, paths).select("path", "content").mapInArrow(_reading_contents, _READ.spark)
        else:
            files = [[file for _, alone in task for file in alone] for task in tasks_of([(file,) for file in group])]
            read = spark.range(0, len(files), 1, len(files)).mapInArrow(_reading(files), _READ.spark)
        lives = _together(read, tasks, ReadRow._fields[:2], ReadRow._fields[:7])
        shared = lives.mapInArrow(_judging_lives(question, count), _SHARED.spark)
        shares = _together(shared, 2 * count, SharedRow._fields[:2], SharedRow._fields[:6])
        told = shares.mapInArrow(_judging_shares(question, count), _TOLD.spark).collect()
    return division.together(msgspec.json.decode(bytes(row.told), type=PartSummary) for row in told)


def _together(rows: DataFrame, tasks: int, keys: Sequence[str], order: Sequence[str]) -> DataFrame:
    return rows.repartition(tasks, *keys).sortWithinPartitions(*order)


_Batches = Iterator[pa.RecordBatch]
_MapInArrow = Callable[[_Batches], _Batches]


def _reading(files: Sequence[Sequence[JournalFile]]) -> _MapInArrow:
    def read(batches: _Batches) -> _Batches:
        exit_with_task()
        for batch in batches:
            for task in batch.column("id").to_pylist():
                yield from _batches(division.read_rows(files[task], lines_of_file), _READ)

    return read


def _reading_contents(batches: _Batches) -> _Batches:
    exit_with_task()
    for path, content in _rows(batches):
        yield from _batches(_read_content(JournalFile(path, path), content), _READ)


def _read_content(file: JournalFile, content: bytes) -> Iterator[ReadRow]:
    return division.read_rows([file], lambda one: lines_of_content(one, BytesIO(content)))


def _judging_lives(question: AuditQuestion, count: int) -> _MapInArrow:
    def judge(batches: _Batches) -> _Batches:
        exit_with_task()
        yield from _batches(division.judge_lives(map(ReadRow._make, _rows(batches)), question, count), _SHARED)

    return judge


def _judging_shares(question: AuditQuestion, count: int) -> _MapInArrow:
    def judge(batches: _Batches) -> _Batches:
        exit_with_task()
        told = division.judge_shares(map(SharedRow._make, _rows(batches)), question, count)
        yield from _batches(((msgspec.json.encode(one),) for one in told), _TOLD)

    return judge


def _rows(batches: _Batches) -> Iterator[tuple[Any, ...]]:
    for batch in batches:
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _batches(rows: Iterable[tuple[Any, ...]], columns: _Columns) -> _Batches:
    rows = iter(rows)
    while some := list(islice(rows, ROWS_AT_ONCE)):
        values = (list(column) for column in zip(*some, strict=True))
        arrays = [pa.array(column, type=field.type) for column, field in zip(values, columns.arrow, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=columns.arrow)
