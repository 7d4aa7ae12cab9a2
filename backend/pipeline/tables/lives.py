"""One row for each incarnation of a member: when it began, when it was first on a list, and how it ended."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from quarterdeck.backend.pipeline.schemas import EVENT
from quarterdeck.backend.pipeline.tables.columns import (
    BOOLEAN,
    CLUSTER_EVENT_KINDS,
    INCARNATION_UUID,
    MEMBER,
    NUMBER,
    RUN,
    TEXT,
    of_kind,
    schema,
    shaped,
)

LIVES = schema(
    RUN,
    INCARNATION_UUID,
    MEMBER,
    ("address", TEXT, "the address it was bound to, or else the one under which it stands on its own lists"),
    ("lite", BOOLEAN, "whether it never holds data"),
    ("merged_from", TEXT, "the incarnation before, when that one ended in a merge; empty otherwise"),
    (
        "settings",
        EVENT["settings"].dataType,
        "properties that were not the documented defaults as it began; null where nobody told them",
    ),
    (
        "started_at",
        NUMBER,
        "when it began, or its first record where the beginning is missing; microseconds on the run's clock",
    ),
    ("joined_at", NUMBER, "when it installed its first list"),
    ("ended_at", NUMBER, "when it ended; null while it went on to the end of the journal"),
    (
        "end",
        TEXT,
        "how it ended: stopped, merged, killed, join-failed; replaced where nothing tells but another life began under "
        "its label, `ended_at` being its last record then; null while it went on",
    ),
    ("end_reason", TEXT, "what was said of the end"),
    ("events", NUMBER, "how many of its events there are"),
)


def lives(events: DataFrame) -> DataFrame:
    """Incarnations of members; what operators and the network did belongs to none."""
    in_order = Window.partitionBy("run", "member").orderBy("started_at", "uuid")
    told = _told(events).withColumn("next_at", F.lead("started_at").over(in_order))
    kills = events.where(of_kind("process-killed")).select(
        F.col("run").alias("kill_run"), F.col("event.target").alias("target"), F.col("at").alias("killed_at")
    )
    # A kill ends the incarnation that had the label at that moment, unless that one has told its own end.
    hit = (
        told.where("ending is null")
        .join(kills, (F.col("run") == F.col("kill_run")) & (F.col("member") == F.col("target")))
        .where("killed_at >= last_at and killed_at <= coalesce(next_at, killed_at)")
        .groupBy("run", "uuid")
        .agg(F.min("killed_at").alias("killed_at"))
    )
    replaced = F.col("next_at").isNotNull()
    whole = told.join(hit, ["run", "uuid"], "left").withColumns(
        {
            "ended_at": F.coalesce("ending.at", "killed_at", F.when(replaced, F.col("last_at"))),
            "end": F.coalesce(
                "ending.how", F.when(F.col("killed_at").isNotNull(), "killed"), F.when(replaced, "replaced")
            ),
            "end_reason": F.col("ending.reason"),
        }
    )
    return shaped(whole, LIVES)


def _told(events: DataFrame) -> DataFrame:
    """What each incarnation tells of itself."""
    started, entry = (
        F.struct(*(f"event.{name}" for name in ("address", "lite", "merged_from", "settings"))),
        _own_entry(),
    )
    born, listed = F.when(of_kind("member-started"), started), F.when(of_kind("list-installed"), entry)
    grouped = (
        events.where(~of_kind(*CLUSTER_EVENT_KINDS))
        .groupBy("run", "uuid")
        .agg(
            F.first("member").alias("member"),
            F.first(born, ignorenulls=True).alias("born"),
            F.first(listed, ignorenulls=True).alias("listed"),
            F.min("at").alias("started_at"),
            F.max("at").alias("last_at"),
            F.min(F.when(of_kind("list-installed"), F.col("at"))).alias("joined_at"),
            F.min(_ending()).alias("ending"),
            F.count("*").alias("events"),
        )
    )
    return grouped.withColumns(
        {
            "address": F.coalesce("born.address", "listed.address"),
            "lite": F.coalesce("born.lite", "listed.lite"),
            "merged_from": F.col("born.merged_from"),
            "settings": F.col("born.settings"),
        }
    )


def _ending() -> Column:
    """When and how an incarnation says that it ends; null for all other events."""
    how = (
        F.when(of_kind("member-stopped"), "stopped")
        .when(of_kind("member-merging"), "merged")
        .when(of_kind("join-failed"), "join-failed")
    )
    return F.when(how.isNotNull(), F.struct(F.col("at"), how.alias("how"), F.col("event.reason").alias("reason")))


def _own_entry() -> Column:
    """A list's entry of the incarnation that installed it."""
    return F.get(F.filter("event.members", lambda member: member["uuid"] == F.col("uuid")), 0)
