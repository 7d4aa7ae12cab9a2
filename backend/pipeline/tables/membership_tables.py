"""Tables of incarnations, member lists, suspicions, mastership claims and split-brain merges, made of events."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from quarterdeck.backend.journal.reader import suspicion_said
from quarterdeck.backend.pipeline.schemas import CLUSTER_EVENT_KINDS, EVENT, schema
from quarterdeck.backend.pipeline.tables.run_events import Row, RunEvents, followed, journal_table

INCARNATIONS = schema(
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
    raised_utc timestamp the same by the wall clock
    raised_reason string why
    raised_cause string the same in one word, see the event
    reporter string address of the member whose evidence it is; null for the observer's own
    cleared_seq bigint number of the event that ended it; null, as are the next three, where it never ended
    cleared_at bigint microseconds on the run's clock
    cleared_utc timestamp the same by the wall clock
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


OF_INCARNATION = itemgetter("run", "uuid")
ENDS = {"member-stopped": "stopped", "member-merging": "merged", "join-failed": "join-failed"}


@journal_table(
    "incarnations",
    INCARNATIONS,
    (),
    "address lite merged_from settings members target reason",
    "the incarnations of members",
)
def incarnations(events: RunEvents) -> list[Row]:
    """Make one row for each incarnation of a member; events of operators and the network belong to none."""
    rows = _recorded_incarnations(events)
    followers = defaultdict(list)
    for row in rows:
        followers[row["run"], row["member"]].append(row)
    kills = defaultdict(list)
    for kill in events.rows(("process-killed",), "run at", "target"):
        kills[kill["run"], kill["target"]].append(kill["at"])
    for label, of_label in followers.items():
        of_label.sort(key=itemgetter("started_at", "uuid"))
        for row, following in followed(of_label):
            if row["end"] is None:
                # A kill ends the incarnation that had the label at that moment, unless that one has recorded its own end.
                until = None if following is None else following["started_at"]
                killed = [at for at in kills[label] if row["last_at"] <= at <= (at if until is None else until)]
                if killed:
                    row["ended_at"], row["end"] = min(killed), "killed"
                elif following is not None:
                    row["ended_at"], row["end"] = row["last_at"], "replaced"
    return rows


def _recorded_incarnations(events: RunEvents) -> list[Row]:
    table = events.columns(pc.invert(events.mask(*CLUSTER_EVENT_KINDS)), "run uuid member at")
    spans = table.group_by(["run", "uuid"], use_threads=False).aggregate(
        [("member", "first"), ("at", "min"), ("at", "max"), ("at", "count")]
    )
    born = _first_of(events.rows(("member-started",), "run uuid at", "address lite merged_from settings"))
    installed = _first_of(events.rows(("list-installed",), "run uuid at"))
    listed = _own_entries(events, installed.keys() - born.keys())
    ends = _first_of(events.rows(tuple(ENDS), "run uuid at", "kind reason"))
    rows = []
    for span in spans.to_pylist():
        one = OF_INCARNATION(span)
        start, end = born.get(one, {}), ends.get(one, {})
        entry = listed.get(one, {})
        rows.append(
            {
                **{"run": one[0], "uuid": one[1], "member": span["member_first"]},
                **{name: start.get(name, entry.get(name)) for name in ("address", "lite")},
                **{name: start.get(name) for name in ("merged_from", "settings")},
                **{"started_at": span["at_min"], "last_at": span["at_max"], "events": span["at_count"]},
                **{"joined_at": installed.get(one, {}).get("at"), "ended_at": end.get("at")},
                **{"end": ENDS.get(end.get("kind", "")), "end_reason": end.get("reason")},
            }
        )
    return rows


def _first_of(rows: Iterable[Row]) -> dict[Any, Row]:
    first: dict[Any, Row] = {}
    for row in rows:
        known = first.setdefault(OF_INCARNATION(row), row)
        if row["at"] < known["at"]:
            first[OF_INCARNATION(row)] = row
    return first


def _own_entries(events: RunEvents, wanted: set[tuple[str, str]]) -> dict[tuple[str, str], Row]:
    """Return how these incarnations stand on their own lists: their beginning is missing."""
    if not wanted:
        return {}
    uuids = pa.array(sorted({uuid for _, uuid in wanted}))
    entries: dict[tuple[str, str], Row] = {}
    for row in events.rows(("list-installed",), "run uuid", "members", among=uuids):
        own = next((entry for entry in row["members"] if entry["uuid"] == row["uuid"]), None)
        if own is not None:
            entries.setdefault(OF_INCARNATION(row), own)
    return entries


VIEW_FIELDS = "version lineage master members author cause reason"


@journal_table("views", VIEWS, ["list-installed"], VIEW_FIELDS, "the lists that members installed")
def views(events: RunEvents) -> pa.Table:
    """Make one row for each member list that a member installed."""
    table = events.columns(events.mask("list-installed"), "run member uuid seq at utc", VIEW_FIELDS)
    # Only lists from logs have a reason.
    has_reason = pc.fill_null(pc.not_equal(table["reason"], ""), False)
    cause = pc.if_else(has_reason, table["reason"], table["cause"])
    return table.set_column(table.column_names.index("cause"), "cause", cause)


SUSPICION_KINDS = ("suspicion-raised", "suspicion-cleared")
SUSPICION_FIELDS = "suspect suspect_uuid reason cause reporter"


@journal_table("suspicions", SUSPICIONS, SUSPICION_KINDS, SUSPICION_FIELDS, "who suspected whom, and for how long")
def suspicions(events: RunEvents) -> list[Row]:
    """Make one row for each suspicion from its raising to its clearing."""
    by_suspect = defaultdict(list)
    for row in events.rows(SUSPICION_KINDS, "run uuid member seq at utc form", f"kind {SUSPICION_FIELDS}"):
        by_suspect[row["run"], row["uuid"], row["suspect"], row["suspect_uuid"]].append(row)
    return [row for of_one in by_suspect.values() for row in _episodes(sorted(of_one, key=itemgetter("seq")))]


def _episodes(in_order: list[Row]) -> Iterator[Row]:
    for row, following in followed(in_order):
        if row["kind"] != "suspicion-raised":
            continue
        cleared = following if following is not None and following["kind"] == "suspicion-cleared" else {}
        cause, reporter = suspicion_said(row["reason"] or "", row["form"])
        yield {
            **{name: row[name] for name in ("run", "uuid", "member", "suspect", "suspect_uuid")},
            **{f"raised_{name}": row[name] for name in ("seq", "at", "utc", "reason")},
            "raised_cause": row["cause"] or cause,
            "reporter": row["reporter"] or reporter,
            **{f"cleared_{name}": cleared.get(name) for name in ("seq", "at", "utc", "reason")},
        }


CLAIM_KINDS = ("claim-started", "claim-answered", "claim-finished", "claim-abandoned")
CLAIM_FIELDS = "version suspected asked answer lineage left_out reason"


@journal_table("claims", CLAIMS, CLAIM_KINDS, CLAIM_FIELDS, "mastership claims")
def claims(events: RunEvents) -> list[Row]:
    """Make one row for each claim; answers and ends belong to the latest beginning of the same incarnation."""
    rows: list[Row] = []
    last: dict[Any, Row] = {}
    for event in sorted(
        events.rows(CLAIM_KINDS, "run uuid member seq at", f"kind {CLAIM_FIELDS}"), key=itemgetter("seq")
    ):
        one, kind = OF_INCARNATION(event), event["kind"]
        if kind == "claim-started":
            number = last[one]["claim"] + 1 if one in last else 1
            last[one] = {
                **{name: event[name] for name in ("run", "uuid", "member", "version", "suspected", "asked")},
                **{"claim": number, "started_at": event["at"], "outcome": "open"},
                **dict.fromkeys(("accepted", "refused", "retried"), 0),
            }
            rows.append(last[one])
        elif one not in last:
            continue
        elif kind == "claim-answered":
            answer = "retried" if event["answer"] == "retry" else str(event["answer"])
            last[one][answer] = last[one].get(answer, 0) + 1
        else:
            last[one].setdefault("ended_at", event["at"])
            if kind == "claim-finished":
                ended = {"new_version": event["version"], "lineage": event["lineage"], "left_out": event["left_out"]}
                last[one] |= {"outcome": "finished", **ended}
            else:
                last[one]["reason"] = event["reason"]
                if last[one]["outcome"] == "open":
                    last[one]["outcome"] = "abandoned"
    return rows


@journal_table(
    "merges",
    MERGES,
    ["list-installed", "member-merging"],
    "next_uuid target lineage version",
    "members that left their cluster for another one",
)
def merges(events: RunEvents) -> list[Row]:
    """Make one row for each member that left its cluster to join another one.

    The old incarnation ends with the decision, the new one begins in the other cluster.
    """
    left = events.rows(("member-merging",), "run uuid member seq at", "next_uuid target")
    if not left:
        return []
    uuids = pa.array(sorted({uuid for row in left for uuid in (row["uuid"], row["next_uuid"])}))
    lists = defaultdict(list)
    for row in events.rows(("list-installed",), "run uuid seq at", "lineage version", among=uuids):
        lists[OF_INCARNATION(row)].append(row)
    rows = []
    for row in left:
        before = [installed for installed in lists[OF_INCARNATION(row)] if installed["seq"] < row["seq"]]
        last = max(before, key=itemgetter("seq"), default={})
        first = min(lists[row["run"], row["next_uuid"]], key=itemgetter("seq"), default={})
        rows.append(
            {
                **{name: row[name] for name in ("run", "uuid", "member", "next_uuid", "target")},
                **{"left_at": row["at"], "joined_at": first.get("at")},
                **{"from_lineage": last.get("lineage"), "from_version": last.get("version")},
                **{"to_lineage": first.get("lineage"), "to_version": first.get("version")},
            }
        )
    return rows


MEMBERSHIP_TABLES = (incarnations, views, suspicions, claims, merges)
