"""How fast data moves, and how much of it had to: migrations by the second, and plans against their lower bound (Avoid Data Loss
on Migration)."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType

from quarterdeck.backend.pipeline.metrics.spans import concurrent_sums, merge_adjacent
from quarterdeck.backend.pipeline.metrics.table_source import TableSource
from quarterdeck.backend.pipeline.tables.columns import (
    AT,
    INCARNATION_UUID,
    MEMBER,
    NUMBER,
    RUN,
    TEXT,
    of_kind,
    schema,
    shaped,
)

MIGRATION_RATES = schema(
    RUN,
    ("committed", NUMBER, "migrations that were committed"),
    ("rolled_back", NUMBER, "migrations that were rolled back"),
    ("open", NUMBER, "migrations whose end the journal does not tell"),
    ("busy_us", NUMBER, "how long at least one was under way, microseconds"),
    ("most_at_once", NUMBER, "how many were under way at once"),
    ("committed_per_second", DoubleType(), "of the time in which any was under way"),
    ("bytes", NUMBER, "bytes that were sent"),
    ("bytes_per_second", DoubleType(), "of the time in which any was under way"),
)

PLANS = schema(
    RUN,
    INCARNATION_UUID,
    MEMBER,
    AT,
    ("planned", NUMBER, "migrations in the queue"),
    ("unavoidable", NUMBER, "those of them that have to lower the number of replicas for a while"),
    ("moves", NUMBER, "copies of replicas that the plan makes"),
    (
        "lower_bound",
        NUMBER,
        "places in rows that have to change; a member that moves up or down in a row needs no copy, so a plan may copy less",
    ),
    ("over", NUMBER, "how many more copies than that it makes; less than 0 where members moved within rows"),
    ("why", TEXT, "what the plan is for"),
)


def migration_rates(table_source: TableSource) -> DataFrame:
    """One row for each run with migrations (schema `MIGRATION_RATES`)."""
    table = table_source.table("migrations").join(table_source.ends(), "run")
    spans = table.where("started_at is not null").select(
        "run", F.col("started_at").alias("from_at"), F.coalesce("decided_at", "run_ended_at").alias("to_at")
    )
    counted = concurrent_sums(spans.withColumn("moving", F.lit(1)), ["run"], "moving")
    most = counted.groupBy("run").agg(F.max("moving").alias("most_at_once"))
    busy = merge_adjacent(counted, ["run"], F.expr("moving > 0"))
    busy = busy.groupBy("run").agg(F.sum(F.expr("to_at - from_at")).alias("busy_us"))
    totals = table.groupBy("run").agg(
        F.count_if(F.col("outcome") == "committed").alias("committed"),
        F.count_if(F.col("outcome") == "rolled-back").alias("rolled_back"),
        F.count_if(F.col("outcome") == "open").alias("open"),
        F.coalesce(F.sum("bytes"), F.lit(0)).alias("bytes"),
    )
    seconds = F.when(F.col("busy_us") > 0, F.col("busy_us") / 1e6)
    rates = (
        totals.join(busy, "run", "left")
        .join(most, "run", "left")
        .withColumns(
            {"committed_per_second": F.col("committed") / seconds, "bytes_per_second": F.col("bytes") / seconds}
        )
    )
    return shaped(rates, MIGRATION_RATES)


def plans(table_source: TableSource) -> DataFrame:
    """One row for each plan of a master that had anything to do (schema `PLANS`)."""
    event = F.col("event")
    made = table_source.events.where(of_kind("migrations-planned")).withColumns(
        {
            "planned": F.size(event["planned"]),
            "unavoidable": F.size(F.filter(event["planned"], lambda one: one["unavoidable"])),
            "moves": event["moves"],
            "lower_bound": event["lower_bound"],
            "over": event["moves"] - event["lower_bound"],
            "why": event["why"],
        }
    )
    return shaped(made.where("planned > 0"), PLANS)
