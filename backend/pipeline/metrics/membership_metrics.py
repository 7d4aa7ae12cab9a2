"""How long it takes until members notice a fault, and until all hold one list of just themselves; split brains.

Each member judges for itself (Cluster Service Consistency Improvements), so `detection` has a row for every fault and every
member that should notice it: each that had the victim on its list, or, for a link, the member to which it leads. `least_us` is a
lower bound for every detector, and `most_us` an upper bound on a fast network. The last heartbeat may have come just before the
fault or an interval earlier, and silence is checked once in an interval: timeout - interval, and timeout + interval. A process
that dies breaks its connections, and each is tried again so many times.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

from pyspark.sql.types import ArrayType, StructType

from quarterdeck.backend.core.causes import SuspicionCause
from quarterdeck.backend.journal.reader import suspicion_said
from quarterdeck.backend.pipeline.metrics.run_tables import (
    HeldView,
    Incarnation,
    RunTables,
    Span,
    counted,
    merged,
    metric,
    subtracted,
)
from quarterdeck.backend.pipeline.schemas import schema
from quarterdeck.backend.pipeline.tables.run_events import Row, followed

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


class _Duty(NamedTuple):
    """What a member should notice: a fault, whose victim was on its list, until it is over."""

    fault: Row
    victim: Incarnation
    view: HeldView
    observer: Incarnation
    until_at: int


class _Noticing(NamedTuple):
    at: int
    reason: str | None
    cause: str | None
    reporter: str | None
    cleared_at: int | None = None


@metric("detection", DETECTION, "how long faults went unnoticed, and by whom")
def detection(tables: RunTables) -> list[Row]:
    """Make one row for each fault and each member that should notice it.

    Left out are members that suspected the victim already, and those whose own incarnation ended before they could notice.
    """
    noticings = _noticings(tables)
    views = defaultdict(list)
    for view in tables.views:
        views[view.uuid].append(view)
    rows = []
    for duty in _duties(tables):
        from_at, uuid, until_at = duty.fault["from_at"], duty.victim.uuid, duty.until_at
        known = noticings[duty.observer.uuid, uuid]
        if any(
            noticing.at < from_at < (until_at if noticing.cleared_at is None else noticing.cleared_at)
            for noticing in known
        ):
            continue
        noticed = min(
            (noticing for noticing in known if from_at <= noticing.at <= until_at), key=_nones_first, default=None
        )
        lists = (view for view in views[duty.observer.uuid] if from_at <= view.from_at <= until_at)
        removed_at = min((view.from_at for view in lists if uuid not in view.listed), default=None)
        if noticed is not None or removed_at is not None or duty.observer.to_at >= until_at:
            rows.append(_row(tables, duty, noticed, removed_at))
    return rows


def _nones_first(noticing: _Noticing) -> Any:
    return [(value is not None, value) for value in noticing[:4]]


def _row(tables: RunTables, duty: _Duty, noticed: _Noticing | None, removed_at: int | None) -> Row:
    how = None
    if noticed is not None:
        how = "report" if noticed.reporter is not None else EVIDENCE.get(noticed.cause, "other")  # type: ignore[call-overload]
    from_at = duty.fault["from_at"]
    least_us, most_us = _bounds(tables, duty.observer.uuid, how)
    return {
        **{"fault": duty.fault["fault"], "from_at": from_at, "to_at": duty.fault["to_at"]},
        **{"victim": duty.victim.member, "victim_uuid": duty.victim.uuid},
        **{"observer": duty.view.member, "observer_uuid": duty.observer.uuid, "master": duty.view.leads, "how": how},
        "detector": tables.setting(duty.observer.uuid, "hazelcast.heartbeat.failuredetector.type"),
        "reason": None if noticed is None else noticed.reason,
        "noticed_at": None if noticed is None else noticed.at,
        "noticed_us": None if noticed is None else noticed.at - from_at,
        "removed_at": removed_at,
        "removed_us": None if removed_at is None else removed_at - from_at,
        **{"least_us": least_us, "most_us": most_us},
    }


def _duties(tables: RunTables) -> Iterator[_Duty]:
    """Yield which incarnation should notice which fault, and until when it can."""
    joined = {uuid: incarnation for uuid, incarnation in tables.running.items() if incarnation.joined_at is not None}
    for fault in tables.table("faults"):
        if fault["fault"] == "link" and not fault["blocked"]:
            continue
        until_at = tables.span[1] if fault["to_at"] is None else fault["to_at"]
        only = fault["target"]  # the end of a link, which alone cannot hear the other one
        for victim in joined.values():
            if not _is_struck(victim, fault):
                continue
            for view in tables.views:
                held = view.from_at <= fault["from_at"] < view.to_at and victim.uuid in view.listed
                if held and view.uuid in joined and view.uuid != victim.uuid and view.member == (only or view.member):
                    yield _Duty(fault, victim, view, joined[view.uuid], until_at)


def _is_struck(one: Incarnation, fault: Row) -> bool:
    """Return whether no other could hear this incarnation.

    One that is killed ends at the very moment of the fault; the next one under its label begins later.
    """
    from_at: int = fault["from_at"]
    if one.member != (fault["member"] or fault["source"]) or one.from_at > from_at:
        return False
    return one.to_at == from_at if fault["fault"] == "kill" else from_at < one.to_at


def _noticings(tables: RunTables) -> dict[tuple[str, str], list[_Noticing]]:
    """Return suspicions, and removals by masters, by the incarnations that noticed and were noticed."""
    noticings = defaultdict(list)
    for row in tables.table("suspicions"):
        said = (row["raised_at"], row["raised_reason"], row["raised_cause"], row["reporter"], row["cleared_at"])
        noticings[row["uuid"], row["suspect_uuid"]].append(_Noticing(*said))
    for row in tables.events.rows(("member-removed",), "uuid at form", "removed_uuid reason cause reporter"):
        # Records of form 1 have the cause and the reporter only in their sentence.
        cause, reporter = suspicion_said(row["reason"] or "", row["form"])
        said = (row["at"], row["reason"], row["cause"] or cause, row["reporter"] or reporter, None)
        noticings[row["uuid"], row["removed_uuid"]].append(_Noticing(*said))
    return noticings


def _bounds(tables: RunTables, observer: str, how: str | None) -> tuple[int | None, int | None]:
    """Return the least and the most time after which this evidence shows to the observer, in microseconds."""
    if tables.setting(observer, "hazelcast.heartbeat.failuredetector.type") is None:
        return None, None

    def us(name: str) -> int:
        return tables.setting_us(observer, name) or 0

    match how:
        case "heartbeat":
            timeout_us = us("hazelcast.max.no.heartbeat.seconds")
            interval_us = us("hazelcast.heartbeat.interval.seconds")
            # On a ring the silent are asked first, which takes a round.
            rounds = 2 if tables.setting(observer, "quarterdeck.heartbeat.topology") == "ring" else 1
            is_deadline = tables.setting(observer, "hazelcast.heartbeat.failuredetector.type") == "deadline"
            return timeout_us - interval_us, timeout_us + rounds * interval_us if is_deadline else None
        case "connection":
            tries = tables.setting_count(observer, "hazelcast.connection.monitor.max.faults") or 0
            return tries * us("hazelcast.connection.monitor.interval"), None
        case "confirmation":
            timeout_us = us("hazelcast.max.no.master.confirmation.seconds")
            interval_us = us("hazelcast.master.confirmation.interval.seconds")
            return timeout_us - interval_us, timeout_us + interval_us
    return None, None


# One view, and splits

BURST_US = 5_000
"""Events within so short a time are one disturbance: the links of a cut, for instance."""

ONE_VIEW = schema(
    """
    run
    at bigint when the last of it happened; microseconds on the run's clock
    what array<string> what happened: started, stopped, killed, lost, paused, resumed, mended
    agreed_at bigint when all running members held one list of just themselves; null if something came before
    took_us bigint how long that took
    overtaken boolean whether the next disturbance came first; where not, the journal ended
    lineage string lineage of the list that they agreed on
    version bigint its version
    """
)


class _Agreement(NamedTuple):
    """A span in which all members that run and are not paused hold one list of just themselves."""

    from_at: int
    to_at: int
    lineage: str
    version: int


class _Burst(NamedTuple):
    """Disturbances close together. Where only links broke, `what` is empty."""

    first_at: int
    at: int
    what: list[str]


@metric("one_view", ONE_VIEW, "how long members took to agree on one list")
def one_view(tables: RunTables) -> list[Row]:
    """Make one row for each disturbance. Links that break are none, but end the wait after the one before."""
    agreements = list(_agreements(tables))
    rows = []
    for burst, following in followed(list(_bursts(tables))):
        if not burst.what:
            continue
        met = min(
            (
                (max(agreement.from_at, burst.at), agreement.lineage, agreement.version)
                for agreement in agreements
                if agreement.to_at > burst.at and (following is None or agreement.from_at < following.first_at)
            ),
            default=None,
        )
        agreed_at, lineage, version = met or (None, None, None)
        rows.append(
            {
                **{"at": burst.at, "what": burst.what, "agreed_at": agreed_at, "lineage": lineage, "version": version},
                "took_us": None if agreed_at is None else agreed_at - burst.at,
                "overtaken": met is None and following is not None,
            }
        )
    return rows


def _agreements(tables: RunTables) -> Iterator[_Agreement]:
    """Yield the agreements.

    A member that holds a list is on it; so if as many hold a list as are on it, and as run, then all that run hold it.
    """
    held: dict[tuple[str, int, int], dict[str, list[Span]]] = defaultdict(lambda: defaultdict(list))
    for view in (view for view in tables.views if view.from_at < view.to_at):
        held[view.lineage, view.version, len(view.listed)][view.uuid].append((view.from_at, view.to_at))
    running = [incarnation for incarnation in tables.running.values() if incarnation.from_at < incarnation.to_at]
    awake = [
        span
        for incarnation in running
        for span in subtracted([(incarnation.from_at, incarnation.to_at)], tables.frozen[incarnation.uuid])
    ]
    alive = list(counted(awake))
    for (lineage, version, size), of_members in held.items():
        holding = [span for uuid, spans in of_members.items() for span in subtracted(spans, tables.frozen[uuid])]
        for from_at, to_at, holders in counted(holding):
            for alive_from, alive_to, many in alive if holders == size else ():
                if many == size and from_at < alive_to and alive_from < to_at:
                    yield _Agreement(max(from_at, alive_from), min(to_at, alive_to), lineage, version)


def _bursts(tables: RunTables) -> Iterator[_Burst]:
    happened = sorted(_disturbances(tables))
    first = 0
    for place in range(1, len(happened) + 1):
        if place == len(happened) or happened[place][0] - happened[place - 1][0] > BURST_US:
            burst = happened[first:place]
            yield _Burst(burst[0][0], burst[-1][0], sorted({what for _, what in burst if what}))
            first = place


def _disturbances(tables: RunTables) -> Iterator[tuple[int, str]]:
    """Yield what happened to members, and when; empty for a link that broke."""
    for row in tables.table("incarnations"):
        if not row["merged_from"]:
            yield row["started_at"], "started"
        if row["end"] in ("stopped", "killed", "replaced"):
            yield row["ended_at"], "lost" if row["end"] == "replaced" else row["end"]
    for fault in tables.table("faults"):
        if fault["fault"] != "kill":
            yield fault["from_at"], "paused" if fault["fault"] == "pause" else ""
    yield from tables.fault_ends


SIDE = schema(
    """
    master string label of its master
    lineage string lineage of its lists
    members array<string> labels of those who followed it longest, the master included
    """
)

SPLITS = schema(
    """
    run
    from_at bigint when there were two masters; microseconds on the run's clock
    to_at bigint when there was only one again; null while it lasted
    lasted_us bigint how long, up to the end of the journal where it lasted
    healed_at bigint when the last link was mended or frozen member resumed before it ended; null where none was
    merge_us bigint from then, or from the beginning, to the end
    sides sides the sides, in the order in which they began
    """,
    sides=ArrayType(StructType(SIDE.fields)),
)


@metric("splits", SPLITS, "split brains, with their sides, and how long the merge took")
def splits(tables: RunTables) -> list[Row]:
    """Make one row for each split brain. A frozen master leads no member."""
    leading = counted((leadership.from_at, leadership.to_at) for leadership in tables.masters)
    rows = []
    for from_at, to_at in merged((begins, ends) for begins, ends, masters in leading if masters > 1):
        ended_at = to_at if to_at < tables.span[1] else None
        healed_at = max((at for at, _ in tables.fault_ends if from_at < at <= to_at), default=None)
        rows.append(
            {
                **{"from_at": from_at, "to_at": ended_at, "lasted_us": to_at - from_at, "healed_at": healed_at},
                "merge_us": None if ended_at is None else ended_at - (from_at if healed_at is None else healed_at),
                "sides": _sides(tables, from_at, to_at),
            }
        )
    return rows


def _sides(tables: RunTables, begins: int, ends: int) -> list[Row]:
    """Return the sides of a split: who led in it, and those who followed that master longer than any other."""
    leaders: dict[str, tuple[int, str]] = {}
    for leadership in sorted(tables.masters, key=lambda leadership: (leadership.from_at, leadership.member)):
        if leadership.from_at < ends and leadership.to_at > begins:
            leaders.setdefault(leadership.lineage, (leadership.from_at, leadership.member))
    followed: dict[str, Counter[str]] = defaultdict(Counter)
    for view in tables.views:
        if view.from_at < view.to_at and view.from_at < ends and view.to_at > begins:
            followed[view.member][view.lineage] += min(view.to_at, ends) - max(view.from_at, begins)
    followers = defaultdict(list)
    for member, lineages in sorted(followed.items()):
        followers[min(lineages, key=lambda lineage: (-lineages[lineage], lineage))].append(member)
    return [
        {"master": master, "lineage": lineage, "members": followers[lineage]}
        for (_, master), lineage in sorted((leader, lineage) for lineage, leader in leaders.items())
        if lineage in followers
    ]
