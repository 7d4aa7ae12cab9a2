"""One row for each life of a member: when it began, when it was first on a list, and how it ended."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from backend.pipeline.tables.columns import LIFE, MEMBER, NUMBER, RUN, TEXT, YES_NO, field_when, of_kind, schema, shaped

LIVES = schema(
    RUN,
    LIFE,
    MEMBER,
    ("address", TEXT, "the address it was bound to; null where the journal does not have its beginning"),
    ("lite", YES_NO, "whether it never holds data"),
    ("merged_from", TEXT, "the life before, when that one ended in a merge"),
    (
        "started_at",
        NUMBER,
        "when it began, or its first record where the beginning is missing; microseconds on the run's clock",
    ),
    ("joined_at", NUMBER, "when it installed its first list"),
    ("ended_at", NUMBER, "when it ended; null while it went on to the end of the journal"),
    ("end", TEXT, "how it ended: stopped, merged, killed, join-failed; null while it went on"),
    ("end_reason", TEXT, "what was said of the end"),
    ("events", NUMBER, "how many of its events there are"),
)


def lives(events: DataFrame) -> DataFrame:
    """Lives of members; what operators and the network did belongs to none."""
    own = events.where(~of_kind("process-killed", "process-paused", "process-resumed", "link-changed"))
    kind = F.col("event.kind")
    ended = F.when(
        of_kind("member-stopped", "member-merging", "join-failed"),
        F.struct(
            F.col("at"),
            F.when(kind == "member-stopped", "stopped")
            .when(kind == "member-merging", "merged")
            .otherwise("join-failed"),
            F.col("event.reason"),
        ),
    )
    grouped = own.groupBy("run", "uuid").agg(
        F.first("member").alias("member"),
        F.max(field_when("member-started", "address")).alias("address"),
        F.max(field_when("member-started", "lite")).alias("lite"),
        F.max(field_when("member-started", "merged_from")).alias("merged_from"),
        F.min("at").alias("started_at"),
        F.max("at").alias("last_at"),
        F.min(F.when(kind == "list-installed", F.col("at"))).alias("joined_at"),
        F.min(ended).alias("ending"),
        F.count("*").alias("events"),
    )
    kills = events.where(of_kind("process-killed")).select(
        F.col("run").alias("kill_run"), F.col("event.target").alias("target"), F.col("at").alias("killed_at")
    )
    # A kill ends the life of that label that had begun and had no end of its own before it.
    hit = (
        grouped.where("ending is null")
        .join(kills, (F.col("run") == F.col("kill_run")) & (F.col("member") == F.col("target")))
        .where("killed_at >= last_at")
        .groupBy("run", "uuid")
        .agg(F.min("killed_at").alias("killed_at"))
    )
    whole = grouped.join(hit, ["run", "uuid"], "left").withColumns(
        {
            "ended_at": F.coalesce(F.col("ending.at"), F.col("killed_at")),
            "end": F.coalesce(F.col("ending.col2"), F.when(F.col("killed_at").isNotNull(), "killed")),
            "end_reason": F.col("ending.reason"),
        }
    )
    return shaped(whole, LIVES)
