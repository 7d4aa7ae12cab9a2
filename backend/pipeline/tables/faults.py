"""One row for each thing that was done to a cluster from outside, from its beginning to its end."""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType

from quarterdeck.backend.pipeline.tables.columns import NUMBER, RUN, TEXT, TEXTS, of_kind, schema, shaped

FAULTS = schema(
    RUN,
    ("fault", TEXT, "kill, pause or link"),
    ("member", TEXT, "label of the member that was killed or paused; null for a link"),
    ("source", TEXT, "label of the member from which the link leads"),
    ("target", TEXT, "label of the member to which the link leads"),
    ("from_at", NUMBER, "microseconds on the run's clock"),
    ("to_at", NUMBER, "when it was mended or changed; null while it lasted, and for a kill"),
    ("blocked", TEXT, "blackhole or reset; empty while the link only got worse"),
    ("delay", NUMBER, "microseconds added to each message"),
    ("loss", DoubleType(), "probability that a message is dropped"),
    ("duplicate", DoubleType(), "probability that a message arrives twice"),
    ("dropped_kinds", TEXTS, "kinds of messages that are dropped always"),
    ("worse_kinds", TEXTS, "kinds of messages that are delayed, lost, doubled or held apart from others"),
)


def faults(events: DataFrame) -> DataFrame:
    """Kills, pauses and conditions of links."""
    event, kind = F.col("event"), F.col("event.kind")
    pauses = (
        events.where(of_kind("process-paused", "process-resumed", "process-killed"))
        .withColumn("to_at", F.lead("at").over(Window.partitionBy("run", "event.target").orderBy("at", "seq")))
        .where(kind != "process-resumed")
        .withColumn("fault", F.when(kind == "process-killed", "kill").otherwise("pause"))
    )
    of_members = pauses.select(
        "run",
        "fault",
        event["target"].alias("member"),
        F.lit(None).cast("string").alias("source"),
        F.lit(None).cast("string").alias("target"),
        F.col("at").alias("from_at"),
        F.when(F.col("fault") == "pause", F.col("to_at")).alias("to_at"),
        *(
            F.lit(None).alias(name)
            for name in ("blocked", "delay", "loss", "duplicate", "dropped_kinds", "worse_kinds")
        ),
    )
    worse_kinds = F.coalesce(event["of_kinds"]["kind"], F.array().cast("array<string>"))
    plain = (
        (event["blocked"] == "")
        & (event["delay"] == 0)
        & (event["loss"] == 0)
        & (event["duplicate"] == 0)
        & (F.size(event["dropped_kinds"]) == 0)
        & (F.coalesce(event["delay_up_to"], F.lit(0)) == 0)
        & (F.size(worse_kinds) == 0)
    )
    link = Window.partitionBy("run", "event.source", "event.target").orderBy("at", "seq")
    of_links = (
        events.where(of_kind("link-changed"))
        .withColumn("to_at", F.lead("at").over(link))
        .where(~plain)
        .select(
            "run",
            F.lit("link").alias("fault"),
            F.lit(None).cast("string").alias("member"),
            event["source"].alias("source"),
            event["target"].alias("target"),
            F.col("at").alias("from_at"),
            "to_at",
            *(event[name].alias(name) for name in ("blocked", "delay", "loss", "duplicate", "dropped_kinds")),
            worse_kinds.alias("worse_kinds"),
        )
    )
    return shaped(of_members, FAULTS).unionByName(shaped(of_links, FAULTS))
