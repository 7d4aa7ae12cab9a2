"""Rows of Python in and out of Arrow batches, and tasks that are rows."""

from __future__ import annotations

import pickle
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, TypeVar

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import BinaryType, LongType, StructField, StructType


def batches_of(rows: Iterable[tuple[Any, ...]], schema: StructType, size: int = 512) -> Iterator[pa.RecordBatch]:
    """Yield the rows in batches of `size`, so that a task never holds many."""
    exit_with_task()
    fields, rows = to_arrow_schema(schema), iter(rows)
    while some := list(islice(rows, size)):
        arrays = [pa.array(column, field.type) for column, field in zip(zip(*some, strict=True), fields, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=fields)


@contextmanager
def conf_set(spark: SparkSession, wanted: Mapping[str, str]) -> Iterator[None]:
    """Set these options of the session within the block."""
    before = {name: spark.conf.get(name, None) for name in wanted}
    for name, value in wanted.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in before.items():
            if old is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, old)


TaskT = TypeVar("TaskT")
ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")
RESULTS = StructType([StructField("place", LongType()), StructField("result", BinaryType())])

PLAIN_PLAN = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""A query of one step that Python takes gains nothing by compiling its plan, which takes a second of Java's time."""


def carry_out_in_rows(
    spark: SparkSession, tasks: Sequence[Sequence[tuple[int, ItemT]]], work: Callable[[ItemT], ResultT], name: str = ""
) -> list[tuple[int, ResultT]]:
    """Do the work with the items of all tasks; return the result of each with its place, in any order.

    `name` is what Spark's UI calls the job.
    """

    def carry_out(tasks_here: Iterator[Sequence[tuple[int, ItemT]]]) -> Iterator[pa.RecordBatch]:
        results = ((place, pickle.dumps(work(item))) for task in tasks_here for place, item in task)
        return batches_of(results, RESULTS, size=1)  # each in a batch: one may be large

    with conf_set(spark, PLAIN_PLAN), job_named(spark, name):
        rows = in_tasks(spark, tasks, carry_out, RESULTS).collect()
    return [(row.place, pickle.loads(row.result)) for row in rows]


@contextmanager
def job_named(spark: SparkSession, name: str) -> Iterator[None]:
    """Let Spark's UI show the jobs of the block under this name. A client of Spark Connect cannot name them."""
    context = getattr(spark, "_sc", None)
    if context is None:
        yield
        return
    before = context.getLocalProperty("spark.job.description")
    context.setJobDescription(name)
    try:
        yield
    finally:
        context.setJobDescription(before)


def in_tasks(
    spark: SparkSession,
    tasks: Sequence[TaskT],
    work: Callable[[Iterator[TaskT]], Iterator[pa.RecordBatch]],
    schema: StructType,
) -> DataFrame:
    """Return the rows that `work` makes of the tasks, each of which is one of Spark's."""

    def of_places(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        exit_with_task()
        return work(tasks[place] for batch in batches for place in batch.column("id").to_pylist())

    count = len(tasks)
    return spark.range(0, count, 1, max(1, count)).mapInArrow(of_places, schema)


def exit_with_task() -> None:
    """End this worker silently when its task is cancelled, like a process in a pipe.

    Nothing reads from it then, and Spark would print a traceback. Outside of a task nothing changes: this code runs in programs
    of their own, too, which a connection that is closed must not end.
    """
    if TaskContext.get() is not None:
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
