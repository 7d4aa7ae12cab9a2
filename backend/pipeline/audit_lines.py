"""What an audit reads, as events on Spark: for the tables that it writes and for its report. The verdict does not need them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

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
    """An input, and its records as a table."""

    source: AuditInput | EngineInput
    records: DataFrame

    def events(self) -> DataFrame:
        """The columns of a record, each event once."""
        return self.records


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
        if isinstance(source, AuditInput) and source.kind == "logs":
            logs = read_product_logs(spark, source.read, log_options)
            lines = logs.lines.select(
                "raw",
                F.lit("").alias("file"),
                F.from_json("raw", RECORD).alias("record"),
                F.lit(None).cast("string").alias("reason"),
            )
        else:
            logs = None
            lines = bronze.read_lines(spark, [str(file) for file in source.read])
        ranked = persisted(
            bronze.ranked(lines.coalesce(1) if is_small(source.size_bytes) else lines), source.size_bytes
        )
        try:
            record = [F.col(f"record.{name}").alias(name) for name in RECORD.names]
            yield InputLines(source, ranked.where("place = 1").select(record))
        finally:
            ranked.unpersist()
            if logs is not None:
                logs.release()
