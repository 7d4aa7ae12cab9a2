"""Rows of Python in and out of Spark's Arrow batches, on executors."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

MapInArrow = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""What `DataFrame.mapInArrow` calls with the batches of a task."""


def rows_of(batches: Iterable[pa.RecordBatch], *names: str) -> Iterator[tuple[Any, ...]]:
    """Yield these columns of all rows."""
    for batch in batches:
        yield from zip(*(batch.column(name).to_pylist() for name in names), strict=True)


def batches_of(rows: Iterable[tuple[Any, ...]], schema: StructType, size: int = 512) -> Iterator[pa.RecordBatch]:
    """Yield the rows in batches of `size`, so that a task never holds many."""
    exit_with_task()
    fields, rows = to_arrow_schema(schema), iter(rows)
    while some := list(islice(rows, size)):
        arrays = [pa.array(column, field.type) for column, field in zip(zip(*some, strict=True), fields, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=fields)


def exit_with_task() -> None:
    """End this worker silently when its task is cancelled, like a process in a pipe.

    Nothing reads from it then, and Spark would print a traceback. Outside of a task nothing changes: this code runs in programs
    of their own, too, which a connection that is closed must not end.
    """
    if TaskContext.get() is not None:
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
