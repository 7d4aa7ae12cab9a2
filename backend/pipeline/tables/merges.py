"""One row for each member that left its cluster to join another one: the split-brain merges (Split-brain Recovery
Improvements)."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from quarterdeck.backend.pipeline.tables.columns import (
    INCARNATION_UUID,
    MEMBER,
    NUMBER,
    RUN,
    TEXT,
    field_when,
    of_kind,
    schema,
    shaped,
)

MERGES = schema(
    RUN,
    INCARNATION_UUID,
    MEMBER,
    ("next_uuid", TEXT, "the incarnation that goes on"),
    ("target", TEXT, "address of the master of the cluster that it joins"),
    ("from_lineage", TEXT, "lineage of the last list of the old incarnation"),
    ("from_version", NUMBER, "version of that list"),
    ("left_at", NUMBER, "when it left; microseconds on the run's clock"),
    ("joined_at", NUMBER, "when it installed its first list in the other cluster; null if it never did"),
    ("to_lineage", TEXT, "lineage of that list"),
    ("to_version", NUMBER, "version of that list"),
)


def merges(events: DataFrame) -> DataFrame:
    """Merging members; the old incarnation ends with the decision, the new one begins in the other cluster."""
    in_order = Window.partitionBy("run", "uuid").orderBy("seq").rowsBetween(Window.unboundedPreceding, 0)
    lineage, version = field_when("list-installed", "lineage"), field_when("list-installed", "version")
    left = (
        events.where(of_kind("list-installed", "member-merging"))
        .withColumn("from_lineage", F.last(lineage, ignorenulls=True).over(in_order))
        .withColumn("from_version", F.last(version, ignorenulls=True).over(in_order))
        .where(of_kind("member-merging"))
        .select(
            "run",
            "uuid",
            "member",
            F.col("event.next_uuid").alias("next_uuid"),
            F.col("event.target").alias("target"),
            "from_lineage",
            "from_version",
            F.col("at").alias("left_at"),
        )
    )
    first = F.struct("seq", "at", F.col("event.lineage").alias("lineage"), F.col("event.version").alias("version"))
    joined = (
        events.where(of_kind("list-installed"))
        .groupBy("run", F.col("uuid").alias("next_uuid"))
        .agg(F.min(first).alias("first"))
    )
    rows = left.join(joined, ["run", "next_uuid"], "left").withColumns(
        {
            "joined_at": F.col("first.at"),
            "to_lineage": F.col("first.lineage"),
            "to_version": F.col("first.version"),
        }
    )
    return shaped(rows, MERGES)
