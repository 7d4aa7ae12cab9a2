"""Work in tasks of Spark's."""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from typing import TypeVar

from pyspark import TaskContext
from pyspark.sql import SparkSession

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")


def carry_out_on_spark(
    spark: SparkSession, tasks: Sequence[Sequence[tuple[int, ItemT]]], work: Callable[[ItemT], ResultT]
) -> list[tuple[int, ResultT]]:
    """Do the work with the items of all tasks; return the result of each with its place, in any order."""

    def carry_out(task: Sequence[tuple[int, ItemT]]) -> list[tuple[int, ResultT]]:
        exit_with_task()
        return [(place, work(item)) for place, item in task]

    has_rdds = isinstance(spark, SparkSession)  # that of Spark Connect is another class
    if has_rdds:  # without plans, which cost a second of Java's time, and without pandas in workers
        return spark.sparkContext.parallelize(tasks, max(1, len(tasks))).flatMap(carry_out).collect()
    from quarterdeck.backend.pipeline.spark.arrow import carry_out_in_rows

    return carry_out_in_rows(spark, tasks, carry_out)


def exit_with_task() -> None:
    """End this worker silently when its task is cancelled, like a process in a pipe.

    Nothing reads from it then, and Spark would print a traceback. Outside of a task nothing changes: this code runs in programs
    of their own, too, which a connection that is closed must not end.
    """
    if TaskContext.get() is not None:
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
