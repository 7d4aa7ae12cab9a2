"""Writes and reads of the workload: one row for each operation on a map that somebody watched."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from quarterdeck.backend.pipeline.tables.columns import (
    BOOLEAN,
    INCARNATION_UUID,
    INDEX,
    MEMBER,
    NUMBER,
    RUN,
    TEXT,
    field_when,
    of_kind,
    schema,
    shaped,
)

WRITES = schema(
    RUN,
    INCARNATION_UUID,
    MEMBER,
    ("call", NUMBER, "number of the call within the incarnation that was asked"),
    ("operation", TEXT, "put or remove"),
    ("map", TEXT, "name of the map"),
    ("key", TEXT, "the key"),
    ("partition", INDEX, "the key's partition"),
    ("value", TEXT, "what was put; null for a remove"),
    ("started_at", NUMBER, "microseconds on the run's clock"),
    ("finished_at", NUMBER, "when the client had its answer; null if it never got one"),
    ("took", NUMBER, "microseconds"),
    (
        "outcome",
        TEXT,
        "acknowledged; untouched: refused and surely not done; unknown: it may have been done; open: no answer",
    ),
    ("problem", TEXT, "what went wrong; empty when nothing did"),
)

READS = schema(
    RUN,
    INCARNATION_UUID,
    MEMBER,
    ("call", NUMBER, "number of the call within the incarnation that was asked"),
    ("map", TEXT, "name of the map"),
    ("key", TEXT, "the key"),
    ("partition", INDEX, "the key's partition"),
    ("found", BOOLEAN, "whether there was a value"),
    ("value", TEXT, "the value that was found"),
    ("started_at", NUMBER, "microseconds on the run's clock"),
    ("finished_at", NUMBER, "when the client had its answer; null if it never got one"),
    ("took", NUMBER, "microseconds"),
    ("outcome", TEXT, "answered, failed or open"),
    ("problem", TEXT, "what went wrong; empty when nothing did"),
)


def writes(events: DataFrame) -> DataFrame:
    """Puts and removes."""
    calls = _calls(events).where("operation <> 'get'")
    outcome = (
        F.when(F.col("finished_at").isNull(), "open")
        .when(F.col("problem") == "", "acknowledged")
        .when(F.col("untouched"), "untouched")
        .otherwise("unknown")
    )
    put = F.when(F.col("operation") == "put", F.col("put"))
    return shaped(calls.withColumns({"outcome": outcome, "value": put}), WRITES)


def reads(events: DataFrame) -> DataFrame:
    """Gets."""
    calls = _calls(events).where("operation = 'get'")
    outcome = F.when(F.col("finished_at").isNull(), "open").when(F.col("problem") == "", "answered").otherwise("failed")
    found = F.when(F.col("found"), F.col("answer"))
    return shaped(calls.withColumns({"outcome": outcome, "value": found}), READS)


def _calls(events: DataFrame) -> DataFrame:
    """Each call once: what was asked beside what was answered."""
    either = F.coalesce(field_when("call-started", "operation"), field_when("call-finished", "operation"))
    return (
        events.where(of_kind("call-started", "call-finished"))
        .groupBy("run", "uuid", F.col("event.call").alias("call"))
        .agg(
            F.first("member").alias("member"),
            F.first(either, ignorenulls=True).alias("operation"),
            F.first("event.map", ignorenulls=True).alias("map"),
            F.first("event.key", ignorenulls=True).alias("key"),
            F.max(field_when("call-started", "value")).alias("put"),
            F.max(field_when("call-finished", "partition")).alias("partition"),
            F.max(field_when("call-finished", "value")).alias("answer"),
            F.max(field_when("call-finished", "found")).alias("found"),
            F.max(field_when("call-finished", "untouched")).alias("untouched"),
            F.max(field_when("call-finished", "took")).alias("took"),
            F.max(field_when("call-finished", "problem")).alias("problem"),
            F.min(F.when(of_kind("call-started"), F.col("at"))).alias("started_at"),
            F.min(F.when(of_kind("call-finished"), F.col("at"))).alias("finished_at"),
        )
    )
