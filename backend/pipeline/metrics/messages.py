"""Message economy: what a journal lets one know of the messages that members sent. It holds none of them.

`recorded` are messages that left a trace, each counted once; there may have been more, sent again. `reckoned` are heartbeats,
worked out of the lists, the times for which they were held, and the settings; in peace that is what is sent.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType

from quarterdeck.backend.pipeline.metrics.spans import subtract
from quarterdeck.backend.pipeline.metrics.table_source import TableSource
from quarterdeck.backend.pipeline.metrics.view_spans import frozen, running, view_spans
from quarterdeck.backend.pipeline.tables.columns import (
    NUMBER,
    RUN,
    TEXT,
    of_kind,
    schema,
    setting,
    setting_count,
    setting_us,
    shaped,
)

MESSAGES = schema(
    RUN,
    ("kind", TEXT, "heartbeats, lists, join-requests, claims, claim-answers, explicit-suspicions, complaints, "
     "disconnection-reports, tables, migration-chunks"),
    ("known", TEXT, "recorded or reckoned"),
    ("messages", NUMBER, "how many"),
    ("per_member_second", DoubleType(), "how many for each second that a member ran"),
)  # fmt: skip


def messages(table_source: TableSource) -> DataFrame:
    """One row for each run and kind of message that there was (schema `MESSAGES`)."""
    ran = running(table_source).groupBy("run").agg((F.sum(F.expr("to_at - from_at")) / 1e6).alias("member_seconds"))
    counted = _recorded(table_source).unionByName(_heartbeats(table_source)).where("messages > 0").join(ran, "run")
    rate = F.when(F.col("member_seconds") > 0, F.col("messages") / F.col("member_seconds"))
    return shaped(counted.withColumn("per_member_second", rate), MESSAGES)


def _recorded(table_source: TableSource) -> DataFrame:
    event = F.col("event")
    from_another = F.when(~F.exists("event.members", _is_author), 1)
    traces: dict[str, tuple[Column, Column]] = {
        "lists": (of_kind("list-installed"), from_another),
        "join-requests": (of_kind("join-requested"), F.lit(1)),
        "claims": (of_kind("claim-started"), F.size(event["asked"])),
        "claim-answers": (of_kind("claim-answered"), F.lit(1)),
        "explicit-suspicions": (of_kind("explicit-suspicion-sent"), F.lit(1)),
        "complaints": (of_kind("complaint-sent"), F.lit(1)),
        "disconnection-reports": (of_kind("disconnection-reported"), F.lit(1)),
        "tables": (of_kind("table-changed"), F.when(event["author"] != F.col("uuid"), 1)),
        "migration-chunks": (of_kind("migration-copied"), event["chunks"]),
    }
    counts = (F.coalesce(F.sum(F.when(which, each)), F.lit(0)).alias(name) for name, (which, each) in traces.items())
    wide = table_source.events.groupBy("run").agg(*counts)
    long = wide.unpivot(["run"], list(traces), "kind", "messages")
    return long.withColumn("known", F.lit("recorded"))


def _is_author(member: Column) -> Column:
    """Whether this entry of a list is the incarnation that installed it, and its author."""
    return (member["uuid"] == F.col("uuid")) & (member["address"] == F.col("event.author"))


def _heartbeats(table_source: TableSource) -> DataFrame:
    """To all others on the list, or to as many as watch it on a ring, once in an interval."""
    awake = subtract(
        view_spans(table_source).where("from_at < to_at"),
        frozen(table_source),
        ["run", "uuid"],
        ["run", "uuid", "version", "lineage", "size", "leads"],
    )
    told = running(table_source).select(
        "run",
        "uuid",
        setting_us("settings", "hazelcast.heartbeat.interval.seconds").alias("interval_us"),
        setting("settings", "quarterdeck.heartbeat.topology").alias("topology"),
        setting_count("settings", "quarterdeck.heartbeat.ring.successors").alias("successors"),
    )
    others = F.col("size") - 1
    # On a ring a slave tells those who watch it and the master, a master everybody.
    on_ring = (F.col("topology") == "ring") & ~F.col("leads")
    receivers = F.when(on_ring, F.least(others, F.col("successors") + 1)).otherwise(others)
    rounds = F.expr("(to_at - from_at) / interval_us")
    spent = awake.join(told, ["run", "uuid"]).where("interval_us is not null")
    return (
        spent.groupBy("run")
        .agg(F.round(F.sum(receivers * rounds)).cast("long").alias("messages"))
        .select("run", F.lit("heartbeats").alias("kind"), "messages", F.lit("reckoned").alias("known"))
    )
