"""Works on groups of files on Spark: each in one task, which reads its files itself where it can."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from io import BytesIO
from itertools import groupby
from operator import itemgetter
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, LongType, StructField, StructType

from quarterdeck.backend.pipeline.audit_input import Group, InputFile
from quarterdeck.backend.pipeline.judging.far_files import far_reader
from quarterdeck.backend.pipeline.judging.group_judge import ReadLines, lines_of_content, lines_of_file
from quarterdeck.backend.pipeline.judging.tasks import BYTES_A_TASK, ResultT, Work, tasks_of
from quarterdeck.backend.pipeline.spark.arrow import batches_of, rows_of
from quarterdeck.backend.pipeline.spark.hadoop_path import literal
from quarterdeck.backend.pipeline.spark.tuning import conf_set

ItemT = TypeVar("ItemT")
A_FILE_A_BATCH = {"spark.sql.execution.arrow.maxRecordsPerBatch": "1"}
RESULTS = StructType([StructField("place", LongType()), StructField("result", BinaryType())])


def carry_out_on_spark(
    spark: SparkSession, groups: Sequence[Group], work: Work[ResultT], *, are_far: bool
) -> Iterator[tuple[int, ResultT]]:
    """Work on each of `groups`; yield its place and result. All executors must find the files under the same paths.

    `are_far`: the files are at addresses. Tasks read them where they can, and Hadoop the rest.
    """
    read = reader_of(spark, groups, are_far=are_far)
    return results_of(_of_contents(spark, groups, work) if read is None else _of_files(spark, groups, work, read))


def reader_of(spark: SparkSession, groups: Sequence[Group], *, are_far: bool) -> ReadLines | None:
    """Return what reads the files of `groups` in a task; None where only Hadoop can."""
    if not are_far:
        return lines_of_file
    far = far_reader(spark, [file for group in groups for file in group])
    return None if far is None else far.lines


def _of_files(spark: SparkSession, groups: Sequence[Group], work: Work[Any], read: ReadLines) -> Iterable[Any]:
    def carry_out(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return result_batches((place, work(group, read)) for task in tasks_in(batches) for place, group in task)

    tasks = tasks_of(groups)
    with a_row_a_task(spark, len(tasks)):
        return rows_of_tasks(spark, tasks).mapInArrow(carry_out, RESULTS).collect()


def _of_contents(spark: SparkSession, groups: Sequence[Group], work: Work[Any]) -> Iterable[Any]:
    def carry_out(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        by_place = groupby(rows_of(batches, "place", "path", "content"), key=itemgetter(0))
        return result_batches(
            (place, on_contents({path: content for _, path, content in rows})) for place, rows in by_place
        )

    def on_contents(content_of: Mapping[str, bytes]) -> Any:
        files = tuple(InputFile(path, path) for path in content_of)
        return work(files, lambda file: lines_of_content(file, BytesIO(content_of[file.read])))

    placed = [(file.read, place) for place, group in enumerate(groups) for file in group]
    places = spark.createDataFrame(placed, "path string, place long")
    count = min(len(groups), 1 + sum(file.size_bytes for group in groups for file in group) // BYTES_A_TASK)
    read = contents(spark, [path for path, _ in placed]).select("path", "content")
    joined = read.join(F.broadcast(places), "path").repartition(count, "place").sortWithinPartitions("place", "path")
    with conf_set(spark, A_FILE_A_BATCH):
        return joined.mapInArrow(carry_out, RESULTS).collect()


def each_on_spark(spark: SparkSession, items: Sequence[ItemT], work: Callable[[ItemT], ResultT]) -> list[ResultT]:
    """Return what `work` makes of each of `items`, each in a task of its own."""

    def carry_out(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return result_batches((place, work(item)) for place, item in tasks_in(batches))

    with a_row_a_task(spark, len(items)):
        rows = rows_of_tasks(spark, list(enumerate(items))).mapInArrow(carry_out, RESULTS).collect()
    return [result for _, result in sorted(results_of(rows), key=itemgetter(0))]


def a_row_a_task(spark: SparkSession, count: int) -> Any:
    """Let Spark make a task of each of so many rows of this process within the block."""
    return conf_set(spark, {"spark.sql.leafNodeDefaultParallelism": str(max(1, count))})


def rows_of_tasks(spark: SparkSession, tasks: Sequence[Any]) -> DataFrame:
    """Return the tasks as rows: a task of Spark is sent its own groups only."""
    return spark.createDataFrame(pa.table({"task": [pickle.dumps(task) for task in tasks]}))


def tasks_in(batches: Iterator[pa.RecordBatch]) -> Iterator[Any]:
    """Yield the tasks in these rows."""
    return (pickle.loads(task) for (task,) in rows_of(batches, "task"))


def contents(spark: SparkSession, paths: Sequence[str]) -> DataFrame:
    """Read the files at these addresses and below, each in a row: path, length, content."""
    escaped = [literal(path) for path in paths]
    return spark.read.format("binaryFile").option("recursiveFileLookup", "true").load(escaped)


def result_batches(results: Iterable[tuple[int, Any]]) -> Iterator[pa.RecordBatch]:
    """Yield the rows `RESULTS` of these results, each in a batch: one may be large."""
    return batches_of(((place, pickle.dumps(result)) for place, result in results), RESULTS, size=1)


def results_of(rows: Iterable[Any]) -> Iterator[tuple[int, Any]]:
    """Yield what stands in rows of `RESULTS`."""
    return ((row.place, pickle.loads(row.result)) for row in rows)
