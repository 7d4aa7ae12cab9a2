"""What members sent: migrations by the second, plans against their lower bound, and messages as far as a journal shows them.

A journal holds no messages. `recorded` messages left a trace, each counted once; there may have been more, sent again. `reckoned`
ones are heartbeats, worked out from the lists, the times for which they were held, and the settings; without faults that is
what is sent. For migrations and plans see Avoid Data Loss on Migration.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from quarterdeck.backend.pipeline.metrics.expressions import of_kind, setting, setting_count, setting_us, shaped
from quarterdeck.backend.pipeline.metrics.spans import concurrent_sums, merge_adjacent, subtract
from quarterdeck.backend.pipeline.metrics.table_source import TableSource
from quarterdeck.backend.pipeline.tables.columns import schema

MIGRATION_RATES = schema(
    """
    run
    committed bigint migrations that were committed
    rolled_back bigint migrations that were rolled back
    open bigint migrations whose end the journal does not show
    busy_us bigint how long at least one was under way, microseconds
    most_at_once bigint how many were under way at once
    committed_per_second double of the time in which any was under way
    bytes bigint bytes that were sent
    bytes_per_second double of the time in which any was under way
    """
)

PLANS = schema(
    """
    run
    uuid
    member
    at
    planned bigint migrations in the queue
    unavoidable bigint those of them that have to lower the number of replicas for a while
    moves bigint copies of replicas that the plan makes
    lower_bound bigint places in rows that have to change; a member that moves up or down in a row needs no copy, so a plan \
may copy less
    over bigint how many more copies than that it makes; less than 0 where members moved within rows
    why string what the plan is for
    """
)

MESSAGES = schema(
    """
    run
    kind string heartbeats, lists, join-requests, claims, claim-answers, explicit-suspicions, complaints, \
disconnection-reports, tables, migration-chunks
    known string recorded or reckoned
    messages bigint how many
    per_member_second double how many for each second that a member ran
    """
)

TRACES = {
    "lists": "event.kind = 'list-installed'"
    " AND NOT exists(event.members, entry -> entry.uuid = uuid AND entry.address = event.author)",
    "join-requests": "event.kind = 'join-requested'",
    "claims": "size(event.asked) @ claim-started",
    "claim-answers": "event.kind = 'claim-answered'",
    "explicit-suspicions": "event.kind = 'explicit-suspicion-sent'",
    "complaints": "event.kind = 'complaint-sent'",
    "disconnection-reports": "event.kind = 'disconnection-reported'",
    "tables": "event.kind = 'table-changed' AND event.author <> uuid",
    "migration-chunks": "event.chunks @ migration-copied",
}
"""By kind of message, the events that each show one, or how many messages an event of a kind shows."""


def migration_rates(source: TableSource) -> DataFrame:
    """Make one row for each run with migrations."""
    table = source.table("migrations").join(source.ends(), "run")
    spans = table.where("started_at IS NOT NULL").selectExpr(
        "run", "started_at AS from_at", "coalesce(decided_at, run_ended_at) AS to_at", "1 AS moving"
    )
    counted = concurrent_sums(spans, ["run"], "moving")
    most = counted.groupBy("run").agg(F.max("moving").alias("most_at_once"))
    busy = merge_adjacent(counted, ["run"], F.expr("moving > 0"))
    busy = busy.groupBy("run").agg(F.expr("sum(to_at - from_at) AS busy_us"))
    totals = table.groupBy("run").agg(
        F.expr("count_if(outcome = 'committed') AS committed"),
        F.expr("count_if(outcome = 'rolled-back') AS rolled_back"),
        F.expr("count_if(outcome = 'open') AS open"),
        F.expr("coalesce(sum(bytes), 0) AS bytes"),
    )
    seconds = F.when(F.col("busy_us") > 0, F.col("busy_us") / 1e6)
    rates = {"committed_per_second": F.col("committed") / seconds, "bytes_per_second": F.col("bytes") / seconds}
    return shaped(totals.join(busy, "run", "left").join(most, "run", "left").withColumns(rates), MIGRATION_RATES)


def plans(source: TableSource) -> DataFrame:
    """Make one row for each plan of a master with at least one migration."""
    made = source.events.where(of_kind("migrations-planned")).selectExpr(
        *("run", "uuid", "member", "at", "size(event.planned) AS planned"),
        "size(filter(event.planned, migration -> migration.unavoidable)) AS unavoidable",
        *("event.moves", "event.lower_bound", "event.moves - event.lower_bound AS over", "event.why"),
    )
    return shaped(made.where("planned > 0"), PLANS)


def messages(source: TableSource) -> DataFrame:
    """Make one row for each run and kind of message that occurred."""
    ran = source.running().groupBy("run").agg((F.expr("sum(to_at - from_at)") / 1e6).alias("member_seconds"))
    counted = _recorded(source).unionByName(_heartbeats(source)).where("messages > 0").join(ran, "run")
    rate = F.when(F.col("member_seconds") > 0, F.col("messages") / F.col("member_seconds"))
    return shaped(counted.withColumn("per_member_second", rate), MESSAGES)


def _recorded(source: TableSource) -> DataFrame:
    counts = []
    for name, trace in TRACES.items():
        number, _, kind = trace.partition(" @ ")
        counted = f"coalesce(sum({number}) FILTER (WHERE event.kind = '{kind}'), 0)" if kind else f"count_if({trace})"
        counts.append(F.expr(counted).alias(name))
    long = source.events.groupBy("run").agg(*counts).unpivot(["run"], list(TRACES), "kind", "messages")
    return long.withColumn("known", F.lit("recorded"))


def _heartbeats(source: TableSource) -> DataFrame:
    """Reckon one heartbeat per interval to all others on the list, or to as many as watch a member on a ring."""
    awake = subtract(
        source.view_spans().where("from_at < to_at"),
        source.frozen(),
        ["run", "uuid"],
        ["run", "uuid", "version", "lineage", "size", "leads"],
    )
    settings = source.running().select(
        "run",
        "uuid",
        setting_us("settings", "hazelcast.heartbeat.interval.seconds").alias("interval_us"),
        setting("settings", "quarterdeck.heartbeat.topology").alias("topology"),
        setting_count("settings", "quarterdeck.heartbeat.ring.successors").alias("successors"),
    )
    # On a ring a member sends to those who watch it and to the master; a master sends to all.
    receivers = "if(topology = 'ring' AND NOT leads, least(size - 1, successors + 1), size - 1)"
    total = F.expr(f"cast(round(sum({receivers} * ((to_at - from_at) / interval_us))) AS bigint) AS messages")
    spent = awake.join(settings, ["run", "uuid"]).where("interval_us IS NOT NULL").groupBy("run").agg(total)
    return spent.selectExpr("run", "'heartbeats' AS kind", "messages", "'reckoned' AS known")
