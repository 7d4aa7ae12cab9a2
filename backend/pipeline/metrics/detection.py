"""How long it takes until a member that died, stood still or was cut off is suspected, and off the list (Cluster Service
Consistency Improvements).

Each member judges for itself, so there is a row for every fault and every member that should notice it: whoever had the victim
on its list, or, for a link, the member to which it leads.

No detector can be quicker than `least_us`, and none on a quick network slower than `most_us`. The last heartbeat may have come
just before the fault or an interval earlier, and silence is looked for once in an interval: timeout - interval, and timeout +
interval. A process that dies breaks its connections, and each is tried again so many times.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from quarterdeck.backend.core.causes import SuspicionCause
from quarterdeck.backend.pipeline.metrics.table_source import TableSource
from quarterdeck.backend.pipeline.metrics.view_spans import running, view_spans
from quarterdeck.backend.pipeline.tables.columns import (
    BOOLEAN,
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
from quarterdeck.backend.pipeline.tables.suspicions import cause_of_suspicion, reporter_of_suspicion

HOW: dict[SuspicionCause, str] = {
    "no-heartbeat": "heartbeat",
    "no-connection": "connection",
    "no-confirmation": "confirmation",
    "disconnected": "disconnection",
    "new-incarnation": "new-life",
    "leads-another-cluster": "other-cluster",
    "asked": "explicit",
    "goodbye": "goodbye",
    "ordered": "ordered",
}
"""The cause of a suspicion, and the name of the evidence."""

DETECTION = schema(
    RUN,
    ("fault", TEXT, "kill, pause or link"),
    ("from_at", NUMBER, "when it began; microseconds on the run's clock"),
    ("to_at", NUMBER, "when it was over; null for a kill, and while it lasted"),
    ("victim", TEXT, "label of the member that nobody could hear"),
    ("victim_uuid", TEXT, "its incarnation"),
    ("observer", TEXT, "label of the member that should notice"),
    ("observer_uuid", TEXT, "its incarnation"),
    ("master", BOOLEAN, "whether that one was master: it suspects nobody, it removes at once"),
    ("how", TEXT, "heartbeat, connection, confirmation, report, disconnection, explicit, new-life, other-cluster, goodbye, "
     "ordered or other: the evidence"),
    ("detector", TEXT, "the observer's kind of failure detector, where known"),
    ("reason", TEXT, "what the observer said"),
    ("noticed_at", NUMBER, "when the observer suspected or removed it; null if it did not while the fault lasted"),
    ("noticed_us", NUMBER, "how long that took"),
    ("removed_at", NUMBER, "when the observer installed a list without it"),
    ("removed_us", NUMBER, "how long that took"),
    ("least_us", NUMBER, "what `noticed_us` has to be at least; null where the settings are not known"),
    ("most_us", NUMBER, "what it should be at most; null where nothing limits it"),
)  # fmt: skip

_TIMEOUT, _INTERVAL = "hazelcast.max.no.heartbeat.seconds", "hazelcast.heartbeat.interval.seconds"
_CONFIRM_TIMEOUT = "hazelcast.max.no.master.confirmation.seconds"
_CONFIRM_INTERVAL = "hazelcast.master.confirmation.interval.seconds"
_KEY = ("run", "fault", "from_at", "victim_uuid", "observer_uuid")


def detection(table_source: TableSource) -> DataFrame:
    """One row for each fault and each member that should notice it (schema `DETECTION`).

    Left out are those who had the victim suspected already, and those whose own incarnation ended before they could tell.
    """
    expected = table_source.memoized("expected", lambda: _expected(table_source))
    noticed = expected.join(_noticings(table_source), ["run", "observer_uuid", "victim_uuid"])
    before = noticed.where("told_at < from_at and from_at < coalesce(untold_at, until_at)").select(*_KEY).distinct()
    first = (
        noticed.where("told_at >= from_at and told_at <= until_at")
        .groupBy(*_KEY)
        .agg(F.min(F.struct(F.col("told_at").alias("at"), "reason", "cause", "reporter")).alias("noticed"))
    )
    rows = (
        expected.join(before, list(_KEY), "left_anti")
        .join(first, list(_KEY), "left")
        .join(_removals(table_source, expected), list(_KEY), "left")
        .where("noticed is not null or removed_at is not null or observer_to >= until_at")
    )
    how = _how()
    least, most = _bounds(how)
    return shaped(
        rows.withColumns(
            {
                "how": how,
                "detector": setting("settings", "hazelcast.heartbeat.failuredetector.type"),
                "reason": F.col("noticed.reason"),
                "noticed_at": F.col("noticed.at"),
                "noticed_us": F.col("noticed.at") - F.col("from_at"),
                "removed_us": F.col("removed_at") - F.col("from_at"),
                "least_us": least,
                "most_us": most,
            }
        ),
        DETECTION,
    )


def _expected(table_source: TableSource) -> DataFrame:
    """Who should notice which fault, and until when it can."""
    lives = running(table_source).where("joined_at is not null")
    victims = lives.select("run", F.col("member").alias("victim"), F.col("uuid").alias("victim_uuid"),
                           F.col("from_at").alias("victim_from"), F.col("to_at").alias("victim_to"))  # fmt: skip
    watching = view_spans(table_source).select(
        "run",
        F.col("uuid").alias("observer_uuid"),
        F.col("member").alias("observer"),
        F.col("leads").alias("master"),
        "listed",
        F.col("from_at").alias("held_from"),
        F.col("to_at").alias("held_to"),
    )
    faults = table_source.table("faults").join(table_source.ends(), "run")
    blind = faults.where("fault <> 'link' or blocked <> ''").select(
        *("run", "fault", "from_at", "to_at"),
        F.coalesce("member", "source").alias("victim"),
        F.col("target").alias("only"),
        F.coalesce("to_at", "run_ended_at").alias("until_at"),
    )
    of_lives = blind.join(victims, ["run", "victim"]).where("victim_from <= from_at and from_at <= victim_to")
    # An incarnation that is killed has its end at the very moment of the fault; the next one under its label begins later.
    of_lives = of_lives.where("fault = 'kill' and victim_to = from_at or fault <> 'kill' and from_at < victim_to")
    seen = (
        of_lives.join(watching, "run")
        .where("held_from <= from_at and from_at < held_to and observer_uuid <> victim_uuid")
        .where("array_contains(listed, victim_uuid) and observer = coalesce(only, observer)")
    )
    observers = lives.select(
        "run", F.col("uuid").alias("observer_uuid"), "settings", F.col("to_at").alias("observer_to")
    )
    return seen.join(observers, ["run", "observer_uuid"]).drop("listed", "held_from", "held_to", "only")


def _noticings(table_source: TableSource) -> DataFrame:
    """Suspicions, and removals by masters: run, observer_uuid, victim_uuid, told_at, untold_at, reason, cause, reporter."""
    suspected = table_source.table("suspicions").select(
        "run",
        F.col("uuid").alias("observer_uuid"),
        F.col("suspect_uuid").alias("victim_uuid"),
        F.col("raised_at").alias("told_at"),
        F.col("cleared_at").alias("untold_at"),
        F.col("raised_reason").alias("reason"),
        F.col("raised_cause").alias("cause"),
        "reporter",
    )
    removed = table_source.events.where(of_kind("member-removed")).select(
        "run",
        F.col("uuid").alias("observer_uuid"),
        F.col("event.removed_uuid").alias("victim_uuid"),
        F.col("at").alias("told_at"),
        F.lit(None).cast("long").alias("untold_at"),
        F.col("event.reason").alias("reason"),
        cause_of_suspicion().alias("cause"),
        reporter_of_suspicion().alias("reporter"),
    )
    return suspected.unionByName(removed)


def _removals(table_source: TableSource, expected: DataFrame) -> DataFrame:
    """When each observer first held a list without the victim, while the fault lasted."""
    lists = view_spans(table_source).select(
        "run", F.col("uuid").alias("observer_uuid"), "listed", F.col("from_at").alias("removed_at")
    )
    return (
        expected.select(*_KEY, "until_at")
        .join(lists, ["run", "observer_uuid"])
        .where("removed_at >= from_at and removed_at <= until_at and not array_contains(listed, victim_uuid)")
        .groupBy(*_KEY)
        .agg(F.min("removed_at").alias("removed_at"))
    )


def _how() -> Column:
    cases = (F.when(F.col("noticed.cause") == cause, F.lit(name)) for cause, name in HOW.items())
    reported = F.when(F.col("noticed.reporter").isNotNull(), F.lit("report"))
    return F.when(F.col("noticed").isNotNull(), F.coalesce(reported, *cases, F.lit("other")))


def _bounds(how: Column) -> tuple[Column, Column]:
    """The least and the most time after which this evidence comes up, microseconds."""
    timeout, interval = setting_us("settings", _TIMEOUT), setting_us("settings", _INTERVAL)
    tries = setting_count("settings", "hazelcast.connection.monitor.max.faults")
    connection = tries * setting_us("settings", "hazelcast.connection.monitor.interval")
    confirm = setting_us("settings", _CONFIRM_TIMEOUT), setting_us("settings", _CONFIRM_INTERVAL)
    deadline = setting("settings", "hazelcast.heartbeat.failuredetector.type") == "deadline"
    least = (
        (how == "heartbeat", timeout - interval),
        (how == "connection", connection),
        (how == "confirmation", confirm[0] - confirm[1]),
    )
    # On a ring the silent are asked first, which takes a round.
    rounds = F.when(setting("settings", "quarterdeck.heartbeat.topology") == "ring", 2).otherwise(1)
    most = (
        ((how == "heartbeat") & deadline, timeout + rounds * interval),
        (how == "confirmation", confirm[0] + confirm[1]),
    )
    return _first(least), _first(most)


def _first(cases: tuple[tuple[Column, Column], ...]) -> Column:
    return reduce(lambda rest, case: F.when(case[0], case[1]).otherwise(rest), cases, F.lit(None).cast("long"))
