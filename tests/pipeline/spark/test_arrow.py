"""Rows in and out of Arrow batches, in a program that is no worker of Spark's."""

from __future__ import annotations

import signal

from pyspark.sql.types import LongType, StructField, StructType

from quarterdeck.backend.pipeline.spark.arrow import batches_of

SCHEMA = StructType([StructField("number", LongType())])


def test_a_program_is_not_ended_by_a_closed_connection_after_it_made_batches() -> None:
    before = signal.getsignal(signal.SIGPIPE)
    batches = list(batches_of(((number,) for number in range(5)), SCHEMA, size=2))
    assert [len(batch) for batch in batches] == [2, 2, 1]
    assert [number for batch in batches for number in batch.column("number").to_pylist()] == list(range(5))
    assert signal.getsignal(signal.SIGPIPE) == before == signal.SIG_IGN
