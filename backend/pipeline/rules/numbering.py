"""Whether the journal itself is whole."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from backend.pipeline.rules.registry import LIFE, rule, witnesses_of


@rule("journal gap", "warning", "events")
def missing_events(events: DataFrame) -> DataFrame:
    """A life numbers its events from 1 without gaps; where one is missing, other rules may have missed something."""
    life = Window.partitionBy(*LIFE).orderBy("seq")
    gaps = events.withColumn("before_seq", F.lag("seq").over(life)).withColumn(
        "missing", F.col("seq") - F.coalesce("before_seq", F.lit(0)) - 1
    )
    return gaps.where("missing <> 0").select(
        *("run", "member", "uuid", "seq", "at"),
        F.format_string("%d events of %s are missing before its event %d", "missing", "member", "seq").alias("detail"),
        witnesses_of("uuid.before_seq", "uuid.seq"),
    )
