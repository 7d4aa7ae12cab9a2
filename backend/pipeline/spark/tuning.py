"""Settings of a session for a part of the work."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import SparkSession

FEW_FILES_A_BATCH = {"spark.sql.execution.arrow.maxBytesPerBatch": str(16 << 20)}
"""Where a row may be a whole file."""


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
