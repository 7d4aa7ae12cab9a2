"""What an audit reads, as events on Spark: for the tables that it writes and for its report. The verdict does not need them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from quarterdeck.backend.hazelcast.logs.split_parser import LogOptions
from quarterdeck.backend.pipeline.audit_input import AuditInput
from quarterdeck.backend.pipeline.engine_input import EngineInput
from quarterdeck.backend.pipeline.logs.log_tables import read_product_logs
from quarterdeck.backend.pipeline.schemas import RECORD
from quarterdeck.backend.pipeline.spark.tuning import is_small, persisted, tuned
from quarterdeck.backend.pipeline.tables import bronze
from quarterdeck.backend.pipeline.tables.store import read_table

THROUGHPUT_CONF = {"spark.driver.memory": "4g"}
"""Of a session of our own: several sorts at a time need room, however much is on disk."""


@dataclass
class InputLines:
    """An input, and its events: the columns of a record, each event once."""

    source: AuditInput | EngineInput
    events: DataFrame


@contextmanager
def reading(
    spark: SparkSession, source: AuditInput | EngineInput, log_options: LogOptions | None = None
) -> Iterator[InputLines]:
    """The lines of `source`, which Spark keeps and is tuned for as long as the block lasts.

    Raises `OSError` for what cannot be read.
    """
    with tuned(spark, source.size_bytes):
        if source.kind == "store":
            yield InputLines(source, read_table(spark, source.paths[0], "events").select(*RECORD.names))
            return
        logs = None
        if source.kind == "logs":
            logs = read_product_logs(spark, source.read, log_options, are_addresses=not isinstance(source, AuditInput))
            events = logs.records
        else:
            lines = bronze.read_lines(spark, [str(file) for file in source.read])
            events = bronze.bronze(bronze.ranked(lines.coalesce(1) if is_small(source.size_bytes) else lines)).events
        kept = persisted(events, source.size_bytes)
        try:
            yield InputLines(source, kept)
        finally:
            kept.unpersist()
            if logs is not None:
                logs.release()
