"""How long it takes until a member that died, froze or was cut off is suspected, and off the list.

See Cluster Service Consistency Improvements. Each member judges for itself, so there is a row for every fault and every member
that should notice it: each that had the victim on its list, or, for a link, the member to which it leads.

`least_us` is a lower bound for every detector, and `most_us` an upper bound on a fast network. The last heartbeat may have come
just before the fault or an interval earlier, and silence is checked once in an interval: timeout - interval, and timeout +
interval. A process that dies breaks its connections, and each is tried again so many times.
"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from quarterdeck.backend.core.causes import SuspicionCause
from quarterdeck.backend.journal.old_form import REPORTS, SUSPICION
from quarterdeck.backend.pipeline.metrics.expressions import of_kind, setting, setting_count, setting_us, shaped
from quarterdeck.backend.pipeline.metrics.table_source import TableSource
from quarterdeck.backend.pipeline.tables.columns import schema

EVIDENCE: dict[SuspicionCause, str] = {
    "no-heartbeat": "heartbeat",
    "no-connection": "connection",
    "refused": "connection",
    "no-confirmation": "confirmation",
    "disconnected": "disconnection",
    "new-incarnation": "new-life",
    "leads-another-cluster": "other-cluster",
    "asked": "explicit",
    "goodbye": "goodbye",
    "ordered": "ordered",
}
"""The evidence by the cause of a suspicion."""

DETECTION = schema(
    """
    run
    fault string kill, pause or link
    from_at bigint when it began; microseconds on the run's clock
    to_at bigint when it was over; null for a kill, and while it lasted
    victim string label of the member that no other could hear
    victim_uuid string its incarnation
    observer string label of the member that should notice
    observer_uuid string its incarnation
    master boolean whether that one was master: it suspects no member, it removes at once
    how string heartbeat, connection, confirmation, report, disconnection, explicit, new-life, other-cluster, goodbye, \
ordered or other: the evidence
    detector string the observer's kind of failure detector, where known
    reason string what the observer recorded as the reason
    noticed_at bigint when the observer suspected or removed it; null if it did not while the fault lasted
    noticed_us bigint how long that took
    removed_at bigint when the observer installed a list without it
    removed_us bigint how long that took
    least_us bigint what `noticed_us` has to be at least; null where the settings are not known
    most_us bigint what it should be at most; null where nothing limits it
    """
)

_KEY = ("run", "fault", "from_at", "victim_uuid", "observer_uuid")


def detection(source: TableSource) -> DataFrame:
    """Make one row for each fault and each member that should notice it.

    Left out are members that suspected the victim already, and those whose own incarnation ended before they could notice.
    """
    expected = source.memoized("expected", lambda: _expected(source))
    noticed = expected.join(_noticings(source), ["run", "observer_uuid", "victim_uuid"])
    before = noticed.where("since < from_at AND from_at < coalesce(until, until_at)").select(*_KEY).distinct()
    first = (
        noticed.where("since >= from_at AND since <= until_at")
        .groupBy(*_KEY)
        .agg(F.expr("min(struct(since AS at, reason, cause, reporter)) AS noticed"))
    )
    rows = (
        expected.join(before, list(_KEY), "left_anti")
        .join(first, list(_KEY), "left")
        .join(_removals(source, expected), list(_KEY), "left")
        .where("noticed IS NOT NULL OR removed_at IS NOT NULL OR observer_to >= until_at")
    )
    cases = (F.when(F.col("noticed.cause") == cause, F.lit(name)) for cause, name in EVIDENCE.items())
    reported = F.when(F.col("noticed.reporter").isNotNull(), F.lit("report"))
    how = F.when(F.col("noticed").isNotNull(), F.coalesce(reported, *cases, F.lit("other")))
    least, most = _bounds(how)
    return shaped(
        rows.withColumns(
            {
                "how": how,
                "detector": setting("settings", "hazelcast.heartbeat.failuredetector.type"),
                "reason": F.col("noticed.reason"),
                "noticed_at": F.col("noticed.at"),
                "noticed_us": F.expr("noticed.at - from_at"),
                "removed_us": F.expr("removed_at - from_at"),
                "least_us": least,
                "most_us": most,
            }
        ),
        DETECTION,
    )


def _expected(source: TableSource) -> DataFrame:
    """Return which incarnation should notice which fault, and until when it can."""
    joined = source.running().where("joined_at IS NOT NULL")
    victims = joined.selectExpr(
        "run", "member AS victim", "uuid AS victim_uuid", "from_at AS victim_from", "to_at AS victim_to"
    )
    watching = source.view_spans().selectExpr(
        *("run", "uuid AS observer_uuid", "member AS observer", "leads AS master", "listed"),
        *("from_at AS held_from", "to_at AS held_to"),
    )
    blind = (
        source.table("faults")
        .join(source.ends(), "run")
        .where("fault <> 'link' OR blocked <> ''")
        .selectExpr(
            *("run", "fault", "from_at", "to_at", "coalesce(member, source) AS victim", "target AS only"),
            "coalesce(to_at, run_ended_at) AS until_at",
        )
    )
    # An incarnation that is killed ends at the very moment of the fault; the next one under its label begins later.
    struck = (
        blind.join(victims, ["run", "victim"])
        .where("victim_from <= from_at AND from_at <= victim_to")
        .where("fault = 'kill' AND victim_to = from_at OR fault <> 'kill' AND from_at < victim_to")
    )
    seen = (
        struck.join(watching, "run")
        .where("held_from <= from_at AND from_at < held_to AND observer_uuid <> victim_uuid")
        .where("array_contains(listed, victim_uuid) AND observer = coalesce(only, observer)")
    )
    observers = joined.selectExpr("run", "uuid AS observer_uuid", "settings", "to_at AS observer_to")
    return seen.join(observers, ["run", "observer_uuid"]).drop("listed", "held_from", "held_to", "only")


def _noticings(source: TableSource) -> DataFrame:
    """Return suspicions, and removals by masters: run, observer_uuid, victim_uuid, since, until, reason, cause, reporter."""
    suspected = source.table("suspicions").selectExpr(
        *("run", "uuid AS observer_uuid", "suspect_uuid AS victim_uuid", "raised_at AS since", "cleared_at AS until"),
        *("raised_reason AS reason", "raised_cause AS cause", "reporter"),
    )
    removed = source.events.where(of_kind("member-removed")).select(
        "run",
        F.col("uuid").alias("observer_uuid"),
        F.col("event.removed_uuid").alias("victim_uuid"),
        F.col("at").alias("since"),
        F.lit(None).cast("long").alias("until"),
        "event.reason",
        _cause_of_removal().alias("cause"),
        _reporter_of_removal().alias("reporter"),
    )
    return suspected.unionByName(removed)


def _cause_of_removal() -> Column:
    """Return the cause of a removal; records of form 1 have it only in their sentence."""
    sentence = F.element_at(F.split("event.reason", REPORTS), -1)
    described = (F.when(sentence.like(pattern.replace("*", "%")), F.lit(cause)) for pattern, cause in SUSPICION)
    return F.coalesce("event.cause", *described, F.lit("unknown"))


def _reporter_of_removal() -> Column:
    """Return the address of the member whose evidence it is; null where the observer found it itself."""
    reporter = F.split("event.reason", REPORTS)[0]
    is_reported = F.col("form").isNull() & F.col("event.reason").contains(REPORTS)
    return F.coalesce("event.reporter", F.when(is_reported, reporter))


def _removals(source: TableSource, expected: DataFrame) -> DataFrame:
    """Return when each observer first held a list without the victim, while the fault lasted."""
    lists = source.view_spans().selectExpr("run", "uuid AS observer_uuid", "listed", "from_at AS removed_at")
    return (
        expected.select(*_KEY, "until_at")
        .join(lists, ["run", "observer_uuid"])
        .where("removed_at >= from_at AND removed_at <= until_at AND NOT array_contains(listed, victim_uuid)")
        .groupBy(*_KEY)
        .agg(F.min("removed_at").alias("removed_at"))
    )


def _bounds(how: Column) -> tuple[Column, Column]:
    """Return the least and the most time after which this evidence shows, in microseconds."""
    timeout = setting_us("settings", "hazelcast.max.no.heartbeat.seconds")
    interval = setting_us("settings", "hazelcast.heartbeat.interval.seconds")
    tries = setting_count("settings", "hazelcast.connection.monitor.max.faults")
    connection = tries * setting_us("settings", "hazelcast.connection.monitor.interval")
    confirm_timeout = setting_us("settings", "hazelcast.max.no.master.confirmation.seconds")
    confirm_interval = setting_us("settings", "hazelcast.master.confirmation.interval.seconds")
    deadline = setting("settings", "hazelcast.heartbeat.failuredetector.type") == "deadline"
    # On a ring the silent are asked first, which takes a round.
    rounds = F.when(setting("settings", "quarterdeck.heartbeat.topology") == "ring", 2).otherwise(1)
    least = (
        (how == "heartbeat", timeout - interval),
        (how == "connection", connection),
        (how == "confirmation", confirm_timeout - confirm_interval),
    )
    most = (
        ((how == "heartbeat") & deadline, timeout + rounds * interval),
        (how == "confirmation", confirm_timeout + confirm_interval),
    )
    return _first(least), _first(most)


def _first(cases: tuple[tuple[Column, Column], ...]) -> Column:
    return reduce(lambda rest, case: F.when(case[0], case[1]).otherwise(rest), cases, F.lit(None).cast("long"))
