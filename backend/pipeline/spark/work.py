"""Work in tasks of Spark's."""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from typing import TypeVar

from pyspark import TaskContext
from pyspark.sql import SparkSession

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")


def carry_out_by_rdd(
    spark: SparkSession, tasks: Sequence[Sequence[tuple[int, ItemT]]], work: Callable[[ItemT], ResultT]
) -> list[tuple[int, ResultT]]:
    """Do the work with the items of all tasks; return the result of each with its place, in any order.

    Nothing is planned, which would cost a second of Java's time, and workers need no pandas. Spark Connect has no RDDs.
    """

    def carry_out(task: Sequence[tuple[int, ItemT]]) -> list[tuple[int, ResultT]]:
        exit_with_task()
        return [(place, work(item)) for place, item in task]

    return spark.sparkContext.parallelize(tasks, max(1, len(tasks))).flatMap(carry_out).collect()


def exit_with_task() -> None:
    """End this worker silently when its task is cancelled, like a process in a pipe.

    Nothing reads from it then, and Spark would print a traceback. Outside of a task nothing changes: this code runs in programs
    of their own, too, which a connection that is closed must not end.
    """
    if TaskContext.get() is not None:
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
