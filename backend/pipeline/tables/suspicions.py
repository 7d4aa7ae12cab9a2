"""Suspicion episodes: from the moment a member begins to suspect another to the moment it stops."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from quarterdeck.backend.journal.old_form import REPORTS, SUSPICION
from quarterdeck.backend.pipeline.tables.columns import INCARNATION_UUID, MEMBER, NUMBER, RUN, TEXT, of_kind, schema

SUSPICIONS = schema(
    RUN,
    INCARNATION_UUID,
    MEMBER,
    ("suspect", TEXT, "address of the member that is suspected"),
    ("suspect_uuid", TEXT, "the incarnation that is suspected"),
    ("raised_seq", NUMBER, "number of the event within the incarnation that suspects"),
    ("raised_at", NUMBER, "microseconds on the run's clock"),
    ("raised_utc", NUMBER, "microseconds since 1970, UTC"),
    ("raised_reason", TEXT, "why"),
    ("raised_cause", TEXT, "the same in one word, see the event"),
    ("reporter", TEXT, "address of the member whose evidence it is; null for the observer's own"),
    ("cleared_seq", NUMBER, "number of the event that ended it; null, as are the next three, where it never ended"),
    ("cleared_at", NUMBER, "microseconds on the run's clock"),
    ("cleared_utc", NUMBER, "microseconds since 1970, UTC"),
    ("cleared_reason", TEXT, "why it ended"),
)
"""A master suspects nobody: it takes the member off its list at once. See the event `member-removed`."""


def suspicions(events: DataFrame) -> DataFrame:
    """One row for each suspicion from its raising to its clearing (schema `SUSPICIONS`)."""
    of_one_suspect = Window.partitionBy("run", "uuid", "event.suspect", "event.suspect_uuid").orderBy("seq")
    what = F.struct(F.col("event.kind").alias("kind"), "seq", "at", "utc", F.col("event.reason").alias("reason"))
    raised = (
        events.where(of_kind("suspicion-raised", "suspicion-cleared"))
        .withColumn("next", F.lead(what).over(of_one_suspect))
        .where(of_kind("suspicion-raised"))
    )
    cleared = F.when(F.col("next.kind") == "suspicion-cleared", F.col("next"))
    table = raised.select(
        "run",
        "uuid",
        "member",
        F.col("event.suspect").alias("suspect"),
        F.col("event.suspect_uuid").alias("suspect_uuid"),
        F.col("seq").alias("raised_seq"),
        F.col("at").alias("raised_at"),
        F.col("utc").alias("raised_utc"),
        F.col("event.reason").alias("raised_reason"),
        cause_of_suspicion().alias("raised_cause"),
        reporter_of_suspicion().alias("reporter"),
        *(cleared[name].alias(f"cleared_{name}") for name in ("seq", "at", "utc", "reason")),
    )
    return table.select(SUSPICIONS.names)


def cause_of_suspicion() -> Column:
    """The cause of a suspicion or a removal; in records of form 1 its sentence tells it."""
    sentence = F.element_at(F.split("event.reason", REPORTS), -1)
    told = (F.when(sentence.like(pattern.replace("*", "%")), F.lit(cause)) for pattern, cause in SUSPICION)
    return F.coalesce("event.cause", *told, F.lit("unknown"))


def reporter_of_suspicion() -> Column:
    """Address of the member that found out what is held against the suspect; null when it was the observer itself."""
    told = F.when(F.col("form").isNull() & F.col("event.reason").contains(REPORTS), F.split("event.reason", REPORTS)[0])
    return F.coalesce("event.reporter", told)
