"""Settings of Spark for the size of the input: small input is planned and run quite differently from large input."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import SparkSession

SMALL_BYTES = 16 << 20
"""Up to this size, one task reads everything."""

BYTES_A_TASK = 32 << 20

FEW_EVENTS = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.constraintPropagation.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Nothing has to be moved; good plans, and compiled ones, take longer to make than they save with a few thousand rows."""


FEW_FILES_A_BATCH = {"spark.sql.execution.arrow.maxBytesPerBatch": str(16 << 20)}
"""Where a row may be a whole file."""


def is_small(size_bytes: int) -> bool:
    """Return whether one task reads this much."""
    return size_bytes <= SMALL_BYTES


@contextmanager
def tuned(spark: SparkSession, size_bytes: int) -> Iterator[None]:
    """Tune the session for this much input within the block."""
    if is_small(size_bytes):
        wanted = FEW_EVENTS
    else:
        tasks = max(int(spark.conf.get("spark.sql.shuffle.partitions") or "2"), size_bytes // BYTES_A_TASK)
        wanted = {"spark.sql.shuffle.partitions": str(tasks)}
    with conf_set(spark, wanted):
        yield


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
