"""Tables of partition tables, migrations, the workload's writes and reads, and what was done from outside, made of events."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache
from operator import itemgetter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from quarterdeck.backend.pipeline.schemas import schema
from quarterdeck.backend.pipeline.tables.run_events import Row, RunEvents, followed, journal_table

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
    partitions bigint how many partitions there are
    changed bigint how many of them have changed
    cause string arranged, repaired, migration, recovered or published
    author string the incarnation that made the change
    """
)

MIGRATIONS = schema(
    """
    run
    migration_id string its name
    partition bigint the partition
    type string MOVE, COPY, SHIFT_UP, SHIFT_DOWN or a combined step, as planned
    source string address of the member that gives the replica away; null for a copy
    source_current bigint its replica index before
    source_new bigint its replica index after; -1: none
    destination string address of the member that gets the replica
    destination_current bigint its replica index before; -1: none
    destination_new bigint its replica index after
    owner string address of the member that sends the data
    available bigint replicas of the partition before
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
    partition bigint the key's partition
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
    partition bigint the key's partition
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

MIGRATION_FIELDS = f"migration_id partition {' '.join(PLANNED)} chunks bytes took committed reason"
CALLS = ("call-started", "call-finished")
ANSWER = "partition found untouched took problem"
CALL_FIELDS = f"call operation map key value {ANSWER}"


VERSION_FIELDS = "table_version digest partitions rows cause author"


@journal_table("table_versions", TABLE_VERSIONS, ["table-changed"], VERSION_FIELDS, "changes of partition tables")
def table_versions(events: RunEvents) -> pa.Table:
    """Make one row for each change of a member's partition table."""
    table = events.columns(events.mask("table-changed"), "run uuid member seq at utc", VERSION_FIELDS)
    changed = pc.list_value_length(table["rows"])
    return table.append_column("changed", changed).append_column("version", table["table_version"])


@journal_table("migrations", MIGRATIONS, MIGRATION_EVENT_KINDS, MIGRATION_FIELDS, "migrations, with their steps")
def migrations(events: RunEvents) -> list[Row]:
    """Make one row for each migration of which at least one step is recorded."""
    steps: dict[Any, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    of_migration = itemgetter("run", "migration_id")
    for row in events.rows(MIGRATION_EVENT_KINDS, "run member at", f"kind {MIGRATION_FIELDS}"):
        steps[of_migration(row)][row["kind"].removeprefix("migration-")].append(row)
    return [_migration(run, name, of_kind) for (run, name), of_kind in steps.items()]


def _migration(run: str, migration_id: str, of_kind: dict[str, list[Row]]) -> Row:
    def first(kind: str) -> Row:
        return min(of_kind.get(kind, ()), key=itemgetter("at"), default={})

    started, copied, decided = map(first, ("started", "copied", "decided"))  # later decisions repeat the first
    committed = decided.get("committed")
    return {
        **{"run": run, "migration_id": migration_id, "partition": next(iter(of_kind.values()))[0]["partition"]},
        **{name: started.get(name) for name in PLANNED},
        **{"master": started.get("member"), "started_at": started.get("at"), "copied_at": copied.get("at")},
        **{"committing_at": first("committing").get("at"), "decided_at": decided.get("at")},
        "finished_at": max((row["at"] for row in of_kind.get("finished", ())), default=None),
        **{"chunks": copied.get("chunks"), "bytes": copied.get("bytes"), "copy_us": copied.get("took")},
        "outcome": {None: "open", True: "committed", False: "rolled-back"}[committed],
        "reason": decided.get("reason") if committed is False else None,
        **{"decided_by": decided.get("member"), "rejections": len(of_kind.get("rejected", ()))},
    }


@journal_table("writes", WRITES, CALLS, CALL_FIELDS, "puts and removes that clients reported")
def writes(events: RunEvents) -> list[Row]:
    """Make one row for each put or remove that a client reported."""
    rows = []
    for call in _calls(events):
        if call["operation"] in ("put", "remove"):
            failed = "untouched" if call["untouched"] else "unknown"
            value = call["put"] if call["operation"] == "put" else None
            rows.append(call | {"value": value, "outcome": _outcome(call, "acknowledged", failed)})
    return rows


@journal_table("reads", READS, CALLS, CALL_FIELDS, "gets that clients reported")
def reads(events: RunEvents) -> list[Row]:
    """Make one row for each get that a client reported."""
    return [
        call | {"value": call["answer"] if call["found"] else None, "outcome": _outcome(call, "answered", "failed")}
        for call in _calls(events)
        if call["operation"] == "get"
    ]


def _outcome(call: Row, done: str, failed: str) -> str:
    if call["finished_at"] is None:
        return "open"
    return done if call["problem"] == "" else failed


@lru_cache(maxsize=1)  # two tables are made of the same calls
def _calls(events: RunEvents) -> list[Row]:
    """Return each call once: the request beside its answer."""
    calls: dict[Any, Row] = {}
    asked = events.rows(("call-started",), "run uuid member at", "call operation map key value")
    answered = events.rows(("call-finished",), "run uuid member at", f"call operation map key {ANSWER} value")
    nothing = dict.fromkeys(("put", "started_at", "finished_at", "answer", *ANSWER.split()))
    for row in asked:
        known = calls.setdefault((row["run"], row["uuid"], row["call"]), nothing | row)
        if known["started_at"] is None:
            known |= {"put": row["value"], "started_at": row["at"]}
    for row in answered:
        known = calls.setdefault((row["run"], row["uuid"], row["call"]), nothing | row)
        if known["finished_at"] is None:
            known |= {name: row[name] for name in ANSWER.split()} | {"answer": row["value"], "finished_at": row["at"]}
    return list(calls.values())


FAULTS = schema(
    """
    run
    fault string kill, pause or link
    member string label of the member that was killed or paused; null for a link
    source string label of the member from which the link leads
    target string label of the member to which the link leads
    from_at bigint microseconds on the run's clock
    to_at bigint when it was mended or changed; null while it lasted, and for a kill
    blocked string blackhole or reset; empty while the link only got worse
    delay bigint microseconds added to each message
    loss double probability that a message is dropped
    duplicate double probability that a message arrives twice
    dropped_kinds array<string> kinds of messages that are dropped always
    worse_kinds array<string> kinds of messages that are delayed, lost, doubled or held apart from others
    """
)

OF_MEMBERS = ("process-paused", "process-resumed", "process-killed")
LINK = "blocked delay loss duplicate dropped_kinds"
LINK_FIELDS = f"source target {LINK} delay_up_to of_kinds"


@journal_table(
    "faults", FAULTS, (*OF_MEMBERS, "link-changed"), LINK_FIELDS, "what was done to the cluster from outside"
)
def faults(events: RunEvents) -> list[Row]:
    """Make one row for each kill, pause and condition of a link."""
    return [*_of_members(events), *_of_links(events)]


def _of_members(events: RunEvents) -> Iterator[Row]:
    for row, following in _each_followed(events.rows(OF_MEMBERS, "run at seq", "kind target"), "target"):
        if row["kind"] != "process-resumed":
            fault = "kill" if row["kind"] == "process-killed" else "pause"
            to_at = following["at"] if following is not None and fault == "pause" else None
            yield {"run": row["run"], "fault": fault, "member": row["target"], "from_at": row["at"], "to_at": to_at}


def _of_links(events: RunEvents) -> Iterator[Row]:
    rows = events.rows(("link-changed",), "run at seq", LINK_FIELDS)
    for row, following in _each_followed(rows, "source", "target"):
        worse = [condition["kind"] for condition in row["of_kinds"] or ()]
        if worse or any(row[name] for name in (*LINK.split(), "delay_up_to")):
            to_at = None if following is None else following["at"]
            yield row | {"fault": "link", "from_at": row["at"], "to_at": to_at, "worse_kinds": worse}


def _each_followed(rows: list[Row], *what: str) -> Iterator[tuple[Row, Row | None]]:
    """Yield each row with the next one of the same run that is about the same."""
    by_what = defaultdict(list)
    of_one = itemgetter("run", *what)
    for row in sorted(rows, key=itemgetter("at", "seq")):
        by_what[of_one(row)].append(row)
    for in_order in by_what.values():
        yield from followed(in_order)


DATA_TABLES = (table_versions, migrations, writes, reads, faults)
