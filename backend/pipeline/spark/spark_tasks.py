"""Does work on items in tasks of Spark's, which are sent their own items only."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import BinaryType, LongType, StructField, StructType

from quarterdeck.backend.pipeline.spark.arrow import MapInArrow, batches_of, rows_of
from quarterdeck.backend.pipeline.spark.tuning import conf_set

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")
RESULTS = StructType([StructField("place", LongType()), StructField("result", BinaryType())])


def carry_out_on_spark(
    spark: SparkSession, tasks: Sequence[Sequence[tuple[int, ItemT]]], work: Callable[[ItemT], ResultT]
) -> list[tuple[int, ResultT]]:
    """Do the work with the items of all tasks; return the result of each with its place, in any order."""

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
    return (pickle.loads(task) for (task,) in rows_of(batches, "task"))
