"""One row for each migration, with its steps and their times (Avoid Data Loss on Migration, 2.1)."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from quarterdeck.backend.pipeline.tables.columns import (
    BOOLEAN,
    INDEX,
    NUMBER,
    RUN,
    TEXT,
    field_when,
    of_kind,
    schema,
    shaped,
)

KINDS = (
    "migration-started",
    "migration-accepted",
    "migration-rejected",
    "migration-copied",
    "migration-committing",
    "migration-decided",
    "migration-finished",
)

MIGRATIONS = schema(
    RUN,
    ("migration_id", TEXT, "its name"),
    ("partition", INDEX, "the partition"),
    ("type", TEXT, "MOVE, COPY, SHIFT_UP, SHIFT_DOWN or a combined step, as planned"),
    ("source", TEXT, "address of the member that gives the replica away; null for a copy"),
    ("source_current", INDEX, "its replica index before"),
    ("source_new", INDEX, "its replica index after; -1: none"),
    ("destination", TEXT, "address of the member that gets the replica"),
    ("destination_current", INDEX, "its replica index before; -1: none"),
    ("destination_new", INDEX, "its replica index after"),
    ("owner", TEXT, "address of the member that sends the data"),
    ("available", INDEX, "replicas of the partition before"),
    ("unavoidable", BOOLEAN, "whether the plan had to lower the number of replicas"),
    ("master", TEXT, "label of the master that began it"),
    ("started_at", NUMBER, "when the master began it; microseconds on the run's clock"),
    ("copied_at", NUMBER, "when the owner knew that all data was there"),
    ("committing_at", NUMBER, "when the destination was asked to commit"),
    ("decided_at", NUMBER, "when it was decided"),
    ("finished_at", NUMBER, "when the last participant had acted on it"),
    ("chunks", NUMBER, "chunks that were sent"),
    ("bytes", NUMBER, "bytes that were sent"),
    ("copy_us", NUMBER, "how long the copying took, microseconds"),
    ("outcome", TEXT, "committed, rolled-back or open"),
    ("reason", TEXT, "why it was rolled back"),
    ("decided_by", TEXT, "label of the master that decided: another one than `master` after a change of masters"),
    ("rejections", NUMBER, "participants that would not take part"),
)


def migrations(events: DataFrame) -> DataFrame:
    """Migrations that a master began, or of which at least some step is told."""
    started = {
        name: F.max(field_when("migration-started", name)).alias(name)
        for name in ("type", "source", "source_current", "source_new", "destination", "destination_current",
                     "destination_new", "owner", "available", "unavoidable")
    }  # fmt: skip

    def first_at(kind: str) -> Column:
        return F.min(F.when(of_kind(kind), F.col("at")))

    # The first decision is the one: others repeat it.
    decision = F.when(
        of_kind("migration-decided"),
        F.struct("at", F.col("event.committed").alias("committed"), F.col("event.reason").alias("reason"), "member"),
    )
    rows = (
        events.where(of_kind(*KINDS))
        .groupBy("run", F.col("event.migration_id").alias("migration_id"))
        .agg(
            F.first("event.partition").alias("partition"),
            *started.values(),
            F.max(F.when(of_kind("migration-started"), F.col("member"))).alias("master"),
            first_at("migration-started").alias("started_at"),
            first_at("migration-copied").alias("copied_at"),
            first_at("migration-committing").alias("committing_at"),
            F.max(F.when(of_kind("migration-finished"), F.col("at"))).alias("finished_at"),
            F.max(field_when("migration-copied", "chunks")).alias("chunks"),
            F.max(field_when("migration-copied", "bytes")).alias("bytes"),
            F.max(field_when("migration-copied", "took")).alias("copy_us"),
            F.min(decision).alias("decision"),
            F.count_if(of_kind("migration-rejected")).alias("rejections"),
        )
    )
    committed = F.col("decision.committed")
    rows = rows.withColumns(
        {
            "decided_at": F.col("decision.at"),
            "outcome": F.when(committed, "committed").when(~committed, "rolled-back").otherwise("open"),
            "reason": F.when(~committed, F.col("decision.reason")),
            "decided_by": F.col("decision.member"),
        }
    )
    return shaped(rows, MIGRATIONS)
