"""Tables of incarnations, member lists, suspicions, mastership claims and split-brain merges, made of events."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from quarterdeck.backend.journal.old_form import REPORTS, SUSPICION
from quarterdeck.backend.pipeline.schemas import ENVELOPE, EVENT
from quarterdeck.backend.pipeline.tables.columns import CLUSTER_EVENT_KINDS, aggregates, of_kind, schema, shaped

LIVES = schema(
    """
    run
    uuid
    member
    address string the address it was bound to, or else the one under which it stands on its own lists
    lite boolean whether it never holds data
    merged_from string the incarnation before, when that one ended in a merge; empty otherwise
    settings settings properties that were not the documented defaults as it began; null where unknown
    started_at bigint when it began, or its first record where the beginning is missing; microseconds on the run's clock
    joined_at bigint when it installed its first list
    ended_at bigint when it ended; null while it went on to the end of the journal
    end string how it ended: stopped, merged, killed, join-failed; replaced where only another incarnation that began under \
its label shows the end, `ended_at` being its last record then; null while it went on
    end_reason string the reason that it gave for the end
    events bigint how many of its events there are
    """,
    settings=EVENT["settings"].dataType,
)

VIEWS = schema(
    """
    run
    member
    uuid
    seq
    at
    utc
    version bigint version of the list
    lineage string the mastership from which it descends; versions are comparable within one
    master string address of the master that it names
    members members the members, the oldest first
    author string address of the member that sent it; the master itself makes its own
    cause string what changed it
    """,
    members=EVENT["members"].dataType,
)

SUSPICIONS = schema(
    """
    run
    uuid
    member
    suspect string address of the member that is suspected
    suspect_uuid string the incarnation that is suspected
    raised_seq bigint number of the event within the incarnation that suspects
    raised_at bigint microseconds on the run's clock
    raised_utc bigint microseconds since 1970, UTC
    raised_reason string why
    raised_cause string the same in one word, see the event
    reporter string address of the member whose evidence it is; null for the observer's own
    cleared_seq bigint number of the event that ended it; null, as are the next three, where it never ended
    cleared_at bigint microseconds on the run's clock
    cleared_utc bigint microseconds since 1970, UTC
    cleared_reason string why it ended
    """
)
"""A master suspects no member: it takes the member off its list at once. See the event `member-removed`."""

CLAIMS = schema(
    """
    run
    uuid
    member
    claim bigint the number of the claim within its incarnation, from 1
    started_at bigint microseconds on the run's clock
    ended_at bigint when it was finished or given up; null where the journal does not show it
    version bigint version of the list that it was based on
    suspected array<string> addresses of the members whom the claimant suspected
    asked array<string> addresses of those who were asked
    accepted bigint answers that accepted it
    refused bigint answers that refused it
    retried bigint answers that asked to try again
    outcome string finished, abandoned or open
    new_version bigint version of the first list of the new mastership
    lineage string the lineage that it began
    left_out array<string> addresses of those who are not on that list
    reason string why it was given up
    """
)
"""Cluster Service Consistency Improvements."""

MERGES = schema(
    """
    run
    uuid
    member
    next_uuid string the incarnation that goes on
    target string address of the master of the cluster that it joins
    from_lineage string lineage of the last list of the old incarnation
    from_version bigint version of that list
    left_at bigint when it left; microseconds on the run's clock
    joined_at bigint when it installed its first list in the other cluster; null if it never did
    to_lineage string lineage of that list
    to_version bigint version of that list
    """
)
"""Split-brain Recovery Improvements."""


def incarnations(events: DataFrame) -> DataFrame:
    """Make one row for each incarnation of a member; events of operators and the network belong to none."""
    in_order = Window.partitionBy("run", "member").orderBy("started_at", "uuid")
    recorded = _recorded_incarnations(events).withColumn("next_at", F.lead("started_at").over(in_order))
    kills = events.where(of_kind("process-killed")).selectExpr(
        "run AS kill_run", "event.target AS target", "at AS killed_at"
    )
    # A kill ends the incarnation that had the label at that moment, unless that one has recorded its own end.
    killed = (
        recorded.where("ending IS NULL")
        .join(kills, F.expr("run = kill_run AND member = target"))
        .where("killed_at >= last_at AND killed_at <= coalesce(next_at, killed_at)")
        .groupBy("run", "uuid")
        .agg(F.min("killed_at").alias("killed_at"))
    )
    whole = recorded.join(killed, ["run", "uuid"], "left").selectExpr(
        "*",
        "coalesce(ending.at, killed_at, if(next_at IS NOT NULL, last_at, NULL)) AS ended_at",
        "CASE WHEN ending IS NOT NULL THEN ending.how WHEN killed_at IS NOT NULL THEN 'killed'"
        " WHEN next_at IS NOT NULL THEN 'replaced' END AS end",
        "ending.reason AS end_reason",
    )
    return shaped(whole, LIVES)


def _recorded_incarnations(events: DataFrame) -> DataFrame:
    """Return what the records of each incarnation say of it."""
    endings = "map('member-stopped', 'stopped', 'member-merging', 'merged', 'join-failed', 'join-failed')"
    grouped = (
        events.where(~of_kind(*CLUSTER_EVENT_KINDS))
        .groupBy("run", "uuid")
        .agg(
            *aggregates(
                member="first(member)",
                born="first(struct(event.address, event.lite, event.merged_from, event.settings)) @ member-started",
                listed="first(get(filter(event.members, member -> member.uuid = uuid), 0), true) @ list-installed",
                started_at="min(at)",
                last_at="max(at)",
                joined_at="min(at) @ list-installed",
                ending=f"min(CASE WHEN map_contains_key({endings}, event.kind) THEN"
                f" struct(at, {endings}[event.kind] AS how, event.reason AS reason) END)",
                events="count(*)",
            )
        )
    )
    return grouped.selectExpr(
        "*",
        "coalesce(born.address, listed.address) AS address",
        "coalesce(born.lite, listed.lite) AS lite",
        "born.merged_from AS merged_from",
        "born.settings AS settings",
    )


def views(events: DataFrame) -> DataFrame:
    """Make one row for each member list that a member installed."""
    columns = {
        "cause": "coalesce(nullif(event.reason, ''), event.cause) AS cause"
    }  # only lists from logs have a reason
    return events.where(of_kind("list-installed")).selectExpr(
        *(columns.get(name, name if name in ENVELOPE else f"event.{name} AS {name}") for name in VIEWS.names)
    )


def suspicions(events: DataFrame) -> DataFrame:
    """Make one row for each suspicion from its raising to its clearing."""
    of_one_suspect = Window.partitionBy("run", "uuid", "event.suspect", "event.suspect_uuid").orderBy("seq")
    what = F.struct(F.col("event.kind").alias("kind"), "seq", "at", "utc", F.col("event.reason").alias("reason"))
    raised = (
        events.where(of_kind("suspicion-raised", "suspicion-cleared"))
        .withColumn("next", F.lead(what).over(of_one_suspect))
        .where(of_kind("suspicion-raised"))
        .withColumn("cleared", F.expr("if(next.kind = 'suspicion-cleared', next, NULL)"))
    )
    table = raised.select(
        *("run", "uuid", "member", "event.suspect", "event.suspect_uuid"),
        *(F.col(name).alias(f"raised_{name}") for name in ("seq", "at", "utc")),
        F.col("event.reason").alias("raised_reason"),
        cause_of_suspicion().alias("raised_cause"),
        reporter_of_suspicion().alias("reporter"),
        *(F.col(f"cleared.{name}").alias(f"cleared_{name}") for name in ("seq", "at", "utc", "reason")),
    )
    return table.select(SUSPICIONS.names)


def cause_of_suspicion() -> Column:
    """Return the cause of a suspicion or a removal; records of form 1 have it only in their sentence."""
    sentence = F.element_at(F.split("event.reason", REPORTS), -1)
    described = (F.when(sentence.like(pattern.replace("*", "%")), F.lit(cause)) for pattern, cause in SUSPICION)
    return F.coalesce("event.cause", *described, F.lit("unknown"))


def reporter_of_suspicion() -> Column:
    """Return the address of the member whose evidence it is; null where the observer found it itself."""
    reporter = F.split("event.reason", REPORTS)[0]
    is_reported = F.col("form").isNull() & F.col("event.reason").contains(REPORTS)
    return F.coalesce("event.reporter", F.when(is_reported, reporter))


def claims(events: DataFrame) -> DataFrame:
    """Make one row for each claim; answers and ends belong to the latest beginning of the same incarnation."""
    in_order = Window.partitionBy("run", "uuid").orderBy("seq")
    started = F.count(F.when(of_kind("claim-started"), 1)).over(in_order)
    rows = (
        events.where(of_kind("claim-started", "claim-answered", "claim-finished", "claim-abandoned"))
        .withColumn("claim", started)
        .where("claim > 0")
        .groupBy("run", "uuid", "claim")
        .agg(
            *aggregates(
                member="first(member)",
                started_at="min(at) @ claim-started",
                ended_at="min(if(event.kind IN ('claim-finished', 'claim-abandoned'), at, NULL))",
                version="max(event.version) @ claim-started",
                suspected="max(event.suspected) @ claim-started",
                asked="max(event.asked) @ claim-started",
                accepted="count_if(event.answer = 'accepted') @ claim-answered",
                refused="count_if(event.answer = 'refused') @ claim-answered",
                retried="count_if(event.answer = 'retry') @ claim-answered",
                new_version="max(event.version) @ claim-finished",
                lineage="max(event.lineage) @ claim-finished",
                left_out="max(event.left_out) @ claim-finished",
                reason="max(event.reason) @ claim-abandoned",
            )
        )
    )
    outcome = (
        "CASE WHEN new_version IS NOT NULL THEN 'finished' WHEN ended_at IS NOT NULL THEN 'abandoned' ELSE 'open' END"
    )
    return shaped(rows.withColumn("outcome", F.expr(outcome)), CLAIMS)


def merges(events: DataFrame) -> DataFrame:
    """Make one row for each member that left its cluster to join another one.

    The old incarnation ends with the decision, the new one begins in the other cluster.
    """
    in_order = Window.partitionBy("run", "uuid").orderBy("seq").rowsBetween(Window.unboundedPreceding, 0)
    installed = F.when(of_kind("list-installed"), F.struct("event.lineage", "event.version"))
    left = (
        events.where(of_kind("list-installed", "member-merging"))
        .withColumn("last", F.last(installed, ignorenulls=True).over(in_order))
        .where(of_kind("member-merging"))
        .selectExpr(
            *("run", "uuid", "member", "event.next_uuid", "event.target", "at AS left_at"),
            *("last.lineage AS from_lineage", "last.version AS from_version"),
        )
    )
    first = F.struct("seq", "at", "event.lineage", "event.version")
    joined = (
        events.where(of_kind("list-installed"))
        .groupBy("run", F.col("uuid").alias("next_uuid"))
        .agg(F.min(first).alias("first"))
    )
    rows = left.join(joined, ["run", "next_uuid"], "left").selectExpr(
        "*", "first.at AS joined_at", "first.lineage AS to_lineage", "first.version AS to_version"
    )
    return shaped(rows, MERGES)
