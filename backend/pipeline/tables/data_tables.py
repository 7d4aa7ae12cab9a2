"""Tables of partition tables, migrations, and the workload's writes and reads, made of events."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from quarterdeck.backend.pipeline.tables.columns import aggregates, of_kind, schema, shaped

TABLE_VERSIONS = schema(
    """
    run
    uuid
    member
    seq
    at
    utc
    version bigint the table's version: the sum of its partitions' versions
    digest string what the content is compared by
    partitions int how many partitions there are
    changed int how many of them have changed
    cause string arranged, repaired, migration, recovered or published
    author string the incarnation that made the change
    """
)

MIGRATIONS = schema(
    """
    run
    migration_id string its name
    partition int the partition
    type string MOVE, COPY, SHIFT_UP, SHIFT_DOWN or a combined step, as planned
    source string address of the member that gives the replica away; null for a copy
    source_current int its replica index before
    source_new int its replica index after; -1: none
    destination string address of the member that gets the replica
    destination_current int its replica index before; -1: none
    destination_new int its replica index after
    owner string address of the member that sends the data
    available int replicas of the partition before
    unavoidable boolean whether the plan had to lower the number of replicas
    master string label of the master that began it
    started_at bigint when the master began it; microseconds on the run's clock
    copied_at bigint when the owner knew that all data was there
    committing_at bigint when the destination was asked to commit
    decided_at bigint when it was decided
    finished_at bigint when the last participant had acted on it
    chunks bigint chunks that were sent
    bytes bigint bytes that were sent
    copy_us bigint how long the copying took, microseconds
    outcome string committed, rolled-back or open
    reason string why it was rolled back
    decided_by string label of the master that decided: another one than `master` after a change of masters
    rejections bigint participants that refused to take part
    """
)
"""Avoid Data Loss on Migration, 2.1."""

WRITES = schema(
    """
    run
    uuid
    member
    call bigint number of the call within the incarnation that was asked
    operation string put or remove
    map string name of the map
    key string the key
    partition int the key's partition
    value string what was put; null for a remove
    started_at bigint microseconds on the run's clock
    finished_at bigint when the client had its answer; null if it never got one
    took bigint microseconds
    outcome string acknowledged; untouched: refused and surely not done; unknown: it may have been done; open: no answer
    problem string what went wrong; empty when nothing did
    """
)

READS = schema(
    """
    run
    uuid
    member
    call bigint number of the call within the incarnation that was asked
    map string name of the map
    key string the key
    partition int the key's partition
    found boolean whether there was a value
    value string the value that was found
    started_at bigint microseconds on the run's clock
    finished_at bigint when the client had its answer; null if it never got one
    took bigint microseconds
    outcome string answered, failed or open
    problem string what went wrong; empty when nothing did
    """
)

MIGRATION_EVENT_KINDS = tuple(
    f"migration-{step}" for step in ("started", "accepted", "rejected", "copied", "committing", "decided", "finished")
)
PLANNED = (
    *("type", "source", "source_current", "source_new", "destination", "destination_current", "destination_new"),
    *("owner", "available", "unavoidable"),
)
"""The columns of a migration that its master announces as it begins."""


def table_versions(events: DataFrame) -> DataFrame:
    """Make one row for each change of a member's partition table."""
    rows = events.where(of_kind("table-changed")).selectExpr(
        *("run", "uuid", "member", "seq", "at", "utc", "event.table_version AS version", "event.digest"),
        *("event.partitions", "size(event.rows) AS changed", "event.cause", "event.author"),
    )
    return shaped(rows, TABLE_VERSIONS)


def migrations(events: DataFrame) -> DataFrame:
    """Make one row for each migration of which at least one step is recorded."""
    rows = (
        events.where(of_kind(*MIGRATION_EVENT_KINDS))
        .groupBy("run", F.col("event.migration_id").alias("migration_id"))
        .agg(
            *aggregates(
                partition="first(event.partition)",
                **{name: f"max(event.{name}) @ migration-started" for name in PLANNED},
                master="max(member) @ migration-started",
                started_at="min(at) @ migration-started",
                copied_at="min(at) @ migration-copied",
                committing_at="min(at) @ migration-committing",
                finished_at="max(at) @ migration-finished",
                chunks="max(event.chunks) @ migration-copied",
                bytes="max(event.bytes) @ migration-copied",
                copy_us="max(event.took) @ migration-copied",
                # The first decision counts: later ones repeat it.
                decision="min(struct(at, event.committed, event.reason, member)) @ migration-decided",
                rejections="count_if(event.kind = 'migration-rejected')",
            )
        )
        .selectExpr(
            "*",
            "decision.at AS decided_at",
            "CASE WHEN decision.committed THEN 'committed' WHEN NOT decision.committed THEN 'rolled-back'"
            " ELSE 'open' END AS outcome",
            "CASE WHEN NOT decision.committed THEN decision.reason END AS reason",
            "decision.member AS decided_by",
        )
    )
    return shaped(rows, MIGRATIONS)


def writes(events: DataFrame) -> DataFrame:
    """Make one row for each put or remove that a client reported."""
    calls = _calls(events).where("operation <> 'get'")
    outcome = (
        "CASE WHEN finished_at IS NULL THEN 'open' WHEN problem = '' THEN 'acknowledged'"
        " WHEN untouched THEN 'untouched' ELSE 'unknown' END"
    )
    value = "CASE WHEN operation = 'put' THEN put END"
    return shaped(calls.selectExpr("*", f"{outcome} AS outcome", f"{value} AS value"), WRITES)


def reads(events: DataFrame) -> DataFrame:
    """Make one row for each get that a client reported."""
    calls = _calls(events).where("operation = 'get'")
    outcome = "CASE WHEN finished_at IS NULL THEN 'open' WHEN problem = '' THEN 'answered' ELSE 'failed' END"
    return shaped(calls.selectExpr("*", f"{outcome} AS outcome", "CASE WHEN found THEN answer END AS value"), READS)


def _calls(events: DataFrame) -> DataFrame:
    """Return each call once: the request beside its answer."""
    return (
        events.where(of_kind("call-started", "call-finished"))
        .groupBy("run", "uuid", F.col("event.call").alias("call"))
        .agg(
            *aggregates(
                member="first(member)",
                operation="first(event.operation, true)",
                map="first(event.map, true)",
                key="first(event.key, true)",
                put="max(event.value) @ call-started",
                partition="max(event.partition) @ call-finished",
                answer="max(event.value) @ call-finished",
                found="max(event.found) @ call-finished",
                untouched="max(event.untouched) @ call-finished",
                took="max(event.took) @ call-finished",
                problem="max(event.problem) @ call-finished",
                started_at="min(at) @ call-started",
                finished_at="min(at) @ call-finished",
            )
        )
    )
