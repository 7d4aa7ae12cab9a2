"""One row for each mastership claim: what it was about, how it was answered, and how it ended (Cluster Service Consistency
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
    TEXTS,
    field_when,
    of_kind,
    schema,
    shaped,
)

CLAIMS = schema(
    RUN,
    INCARNATION_UUID,
    MEMBER,
    ("claim", NUMBER, "the number of the claim within its incarnation, from 1"),
    ("started_at", NUMBER, "microseconds on the run's clock"),
    ("ended_at", NUMBER, "when it was finished or given up; null where the journal does not tell"),
    ("version", NUMBER, "version of the list that it was based on"),
    ("suspected", TEXTS, "addresses of the members whom the claimant suspected"),
    ("asked", TEXTS, "addresses of those who were asked"),
    ("accepted", NUMBER, "answers that accepted it"),
    ("refused", NUMBER, "answers that refused it"),
    ("retried", NUMBER, "answers that asked to try again"),
    ("outcome", TEXT, "finished, abandoned or open"),
    ("new_version", NUMBER, "version of the first list of the new mastership"),
    ("lineage", TEXT, "the lineage that it began"),
    ("left_out", TEXTS, "addresses of those who are not on that list"),
    ("reason", TEXT, "why it was given up"),
)


def claims(events: DataFrame) -> DataFrame:
    """Claims from their beginning; answers and ends belong to the latest beginning of the same incarnation."""
    kind = F.col("event.kind")
    in_order = Window.partitionBy("run", "uuid").orderBy("seq")
    numbered = events.where(of_kind("claim-started", "claim-answered", "claim-finished", "claim-abandoned")).withColumn(
        "claim", F.count(F.when(kind == "claim-started", 1)).over(in_order)
    )
    answer = field_when("claim-answered", "answer")
    rows = (
        numbered.where("claim > 0")
        .groupBy("run", "uuid", "claim")
        .agg(
            F.first("member").alias("member"),
            F.min(F.when(kind == "claim-started", F.col("at"))).alias("started_at"),
            F.min(F.when(of_kind("claim-finished", "claim-abandoned"), F.col("at"))).alias("ended_at"),
            F.max(field_when("claim-started", "version")).alias("version"),
            F.max(field_when("claim-started", "suspected")).alias("suspected"),
            F.max(field_when("claim-started", "asked")).alias("asked"),
            F.count_if(answer == "accepted").alias("accepted"),
            F.count_if(answer == "refused").alias("refused"),
            F.count_if(answer == "retry").alias("retried"),
            F.max(field_when("claim-finished", "version")).alias("new_version"),
            F.max(field_when("claim-finished", "lineage")).alias("lineage"),
            F.max(field_when("claim-finished", "left_out")).alias("left_out"),
            F.max(field_when("claim-abandoned", "reason")).alias("reason"),
        )
    )
    outcome = (
        F.when(F.col("new_version").isNotNull(), "finished")
        .when(F.col("ended_at").isNotNull(), "abandoned")
        .otherwise("open")
    )
    return shaped(rows.withColumn("outcome", outcome), CLAIMS)
