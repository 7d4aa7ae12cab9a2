"""Rows of Python in and out of Arrow batches, and tasks that are rows."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import BinaryType, LongType, StructField, StructType

from quarterdeck.backend.pipeline.spark.work import exit_with_task

MapInArrow = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""What `DataFrame.mapInArrow` calls with the batches of a task."""


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


ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")
RESULTS = StructType([StructField("place", LongType()), StructField("result", BinaryType())])


def carry_out_in_rows(
    spark: SparkSession, tasks: Sequence[Sequence[tuple[int, ItemT]]], work: Callable[[ItemT], ResultT]
) -> list[tuple[int, ResultT]]:
    """Do the same as `carry_out_by_rdd`, also through Spark Connect."""

    def carry_out(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        results = ((place, pickle.dumps(work(item))) for task in tasks_in(batches) for place, item in task)
        return batches_of(results, RESULTS, size=1)  # each in a batch: one may be large

    rows = in_tasks(spark, tasks, carry_out, RESULTS).collect()
    return [(row.place, pickle.loads(row.result)) for row in rows]


def in_tasks(spark: SparkSession, tasks: Sequence[Any], work: MapInArrow, schema: StructType) -> DataFrame:
    """Return the rows that come of each of `tasks`, which `work` is given as `tasks_in` reads them."""
    with conf_set(spark, {"spark.sql.leafNodeDefaultParallelism": str(max(1, len(tasks)))}):
        rows = spark.createDataFrame(pa.table({"task": [pickle.dumps(task) for task in tasks]}))
    return rows.mapInArrow(work, schema)


def tasks_in(batches: Iterator[pa.RecordBatch]) -> Iterator[Any]:
    """Yield the tasks in these rows."""
    return (pickle.loads(task.as_py()) for batch in batches for task in batch.column("task"))
