"""Suspicion episodes: from the moment a member begins to suspect another to the moment it stops."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructField, StructType

SUSPICIONS = StructType(
    [
        StructField("run", StringType()),
        StructField("uuid", StringType()),
        StructField("member", StringType()),
        StructField("suspect", StringType()),
        StructField("suspect_uuid", StringType()),
        StructField("raised_seq", LongType()),
        StructField("raised_at", LongType()),
        StructField("raised_utc", LongType()),
        StructField("raised_reason", StringType()),
        StructField("cleared_seq", LongType()),
        StructField("cleared_at", LongType()),
        StructField("cleared_utc", LongType()),
        StructField("cleared_reason", StringType()),
    ]
)
"""One row for each time that a member began to suspect another; the cleared columns are null where it never stopped."""


def suspicions(events: DataFrame) -> DataFrame:
    """One row for each suspicion from its raising to its clearing (schema `SUSPICIONS`)."""
    of_one_suspect = Window.partitionBy("run", "uuid", "event.suspect", "event.suspect_uuid").orderBy("seq")
    what = F.struct(F.col("event.kind").alias("kind"), "seq", "at", "utc", F.col("event.reason").alias("reason"))
    raised = (
        events.where(F.col("event.kind").isin("suspicion-raised", "suspicion-cleared"))
        .withColumn("next", F.lead(what).over(of_one_suspect))
        .where(F.col("event.kind") == "suspicion-raised")
    )
    cleared = F.when(F.col("next.kind") == "suspicion-cleared", F.col("next"))
    table = raised.select(
        "run",
        "uuid",
        "member",
        F.col("event.suspect").alias("suspect"),
        F.col("event.suspect_uuid").alias("suspect_uuid"),
        F.col("seq").alias("raised_seq"),
        F.col("at").alias("raised_at"),
        F.col("utc").alias("raised_utc"),
        F.col("event.reason").alias("raised_reason"),
        *(cleared[name].alias(f"cleared_{name}") for name in ("seq", "at", "utc", "reason")),
    )
    return table.select(SUSPICIONS.names)
