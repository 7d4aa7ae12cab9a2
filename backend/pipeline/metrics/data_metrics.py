"""Whether partitions had an owner and enough replicas, how fast migrations moved data, and which messages were sent.

Availability is according to the masters' tables. Each side of a split counts by itself, with the table of its master. A holder
counts until its incarnation ends, even when it cannot be reached; a frozen owner answers no request. For migrations and plans see
Avoid Data Loss on Migration.

A journal holds no messages. `recorded` messages left a trace, each counted once; there may have been more, sent again. `reckoned`
ones are heartbeats, worked out from the lists, the times for which they were held, and the settings; without faults that is
what is sent.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from typing import NamedTuple

from quarterdeck.backend.pipeline.metrics.run_tables import (
    RunTables,
    Span,
    Stretch,
    concurrent_sums,
    counted,
    merged,
    metric,
    subtracted,
)
from quarterdeck.backend.pipeline.schemas import schema
from quarterdeck.backend.pipeline.tables.run_events import Row, followed

AVAILABILITY = schema(
    """
    run
    master_uuid string the incarnation of the master whose table this is
    master string its label
    partition bigint the partition
    observed_us bigint how long that master led with a table; all spans are in microseconds
    wanted bigint replicas that the partition should have: one more than backups are set, else the most it ever had
    without_owner_us bigint how long it had no owner that ran and was not frozen
    without_owner_times bigint how many times
    longest_without_owner_us bigint the longest of them
    fewer_replicas_us bigint how long it had fewer replicas than wanted, the owner included
    fewer_replicas_times bigint how many times
    """
)


class _HeldRow(NamedTuple):
    """A row of a master's table while that one led: the incarnations that hold replicas, the owner first."""

    holders: Sequence[str | None]
    from_at: int
    to_at: int


@metric("availability", AVAILABILITY, "how long partitions were without owner or short of replicas")
def availability(tables: RunTables) -> list[Row]:
    """Make one row for each partition and each master that led with a table."""
    held = _rows(tables)
    most = max((len(row.holders) - row.holders.count(None) for rows in held.values() for row in rows), default=0)
    made = []
    for (uuid, member, partition), rows in held.items():
        backups = tables.setting_count(uuid, "quarterdeck.backup.count")
        wanted = most if backups is None else backups + 1
        weighed = concurrent_sums(stretch for row in rows for stretch in _holding(tables, row))
        stretches = [stretch for stretch in weighed if stretch[2][0] > 0]
        ownerless = merged((from_at, to_at) for from_at, to_at, (_, owners, _) in stretches if owners == 0)
        fewer = merged((from_at, to_at) for from_at, to_at, (_, _, replicas) in stretches if replicas < wanted)
        made.append(
            {
                **{"master_uuid": uuid, "master": member, "partition": partition, "wanted": wanted},
                "observed_us": sum(stretch[1] - stretch[0] for stretch in stretches),
                **_summed(ownerless, "without_owner"),
                **_summed(fewer, "fewer_replicas"),
            }
        )
    return made


def _rows(tables: RunTables) -> dict[tuple[str, str, int], list[_HeldRow]]:
    """Return the rows of masters' own tables as long as these led, by uuid, label and partition."""
    leading = defaultdict(list)
    for leadership in tables.masters:
        leading[leadership.uuid].append(leadership)
    changes: dict[tuple[str, int], list[tuple[int, list[str | None]]]] = defaultdict(list)
    for event in sorted(tables.events.rows(("table-changed",), "uuid seq at", "holders rows"), key=itemgetter("seq")):
        # A row of `table-changed` has the partition, its version, and then the places of its holders.
        for partition, _, *places in event["rows"] if event["uuid"] in leading else ():
            uuids = [event["holders"][place]["uuid"] if place >= 0 else None for place in places]
            changes[event["uuid"], partition].append((event["at"], uuids))
    rows = defaultdict(list)
    for (uuid, partition), in_order in changes.items():
        for (at, uuids), following in followed(in_order):
            for leadership in leading[uuid]:
                from_at = max(at, leadership.from_at)
                to_at = leadership.to_at if following is None else min(following[0], leadership.to_at)
                if from_at < to_at:
                    rows[uuid, leadership.member, partition].append(_HeldRow(uuids, from_at, to_at))
    return rows


def _holding(tables: RunTables, row: _HeldRow) -> Iterator[Stretch]:
    """Yield the row's span, and for each holder the part of it in which that one ran; minus one owner while it was frozen.

    The weights are rows, owners and replicas.
    """
    yield row.from_at, row.to_at, (1, 0, 0)
    for index, holder in enumerate(row.holders):
        one = tables.running.get(holder) if holder is not None else None
        if one is not None and row.from_at < min(row.to_at, one.to_at):
            yield row.from_at, min(row.to_at, one.to_at), (0, int(index == 0), 1)
        for from_at, to_at in tables.frozen[holder] if holder is not None and index == 0 else ():
            if row.from_at < to_at and from_at < row.to_at:
                yield max(from_at, row.from_at), min(to_at, row.to_at), (0, -1, 0)


def _summed(spans: Sequence[Span], name: str) -> Row:
    lengths = [to_at - from_at for from_at, to_at in spans]
    longest = max(lengths, default=0)
    return {f"{name}_us": sum(lengths), f"{name}_times": len(lengths), f"longest_{name}_us": longest}


MIGRATION_RATES = schema(
    """
    run
    committed bigint migrations that were committed
    rolled_back bigint migrations that were rolled back
    open bigint migrations whose end the journal does not show
    busy_us bigint how long at least one was under way, microseconds
    most_at_once bigint how many were under way at once
    committed_per_second double of the time in which any was under way
    bytes bigint bytes that were sent
    bytes_per_second double of the time in which any was under way
    """
)

PLANS = schema(
    """
    run
    uuid
    member
    at
    planned bigint migrations in the queue
    unavoidable bigint those of them that have to lower the number of replicas for a while
    moves bigint copies of replicas that the plan makes
    lower_bound bigint places in rows that have to change; a member that moves up or down in a row needs no copy, so a plan \
may copy less
    over bigint how many more copies than that it makes; less than 0 where members moved within rows
    why string what the plan is for
    """
)

MESSAGES = schema(
    """
    run
    kind string heartbeats, lists, join-requests, claims, claim-answers, explicit-suspicions, complaints, \
disconnection-reports, tables, migration-chunks
    known string recorded or reckoned
    messages bigint how many
    per_member_second double how many for each second that a member ran
    """
)


def _is_from_another(row: Row) -> bool:
    """Return whether the list was sent: its author is another incarnation than the one that installed it."""
    return not any(member["uuid"] == row["uuid"] and member["address"] == row["author"] for member in row["members"])


TRACES: dict[str, tuple[str, str, Callable[[Row], int]]] = {
    "lists": ("list-installed", "members author", _is_from_another),
    "join-requests": ("join-requested", "kind", lambda _: 1),
    "claims": ("claim-started", "asked", lambda row: len(row["asked"])),
    "claim-answers": ("claim-answered", "kind", lambda _: 1),
    "explicit-suspicions": ("explicit-suspicion-sent", "kind", lambda _: 1),
    "complaints": ("complaint-sent", "kind", lambda _: 1),
    "disconnection-reports": ("disconnection-reported", "kind", lambda _: 1),
    "tables": ("table-changed", "author", lambda row: row["author"] != row["uuid"]),
    "migration-chunks": ("migration-copied", "chunks", lambda row: row["chunks"] or 0),
}
"""By kind of message, the kind of events that show some, the fields that say how many, and how many an event shows."""


@metric("migration_rates", MIGRATION_RATES, "how fast data moved")
def migration_rates(tables: RunTables) -> list[Row]:
    """Make one row for a run with migrations."""
    rows = tables.table("migrations")
    if not rows:
        return []
    ends_at = tables.span[1]
    spans = [
        (row["started_at"], ends_at if row["decided_at"] is None else row["decided_at"])
        for row in rows
        if row["started_at"] is not None
    ]
    stretches = list(counted(spans))
    busy = merged((from_at, to_at) for from_at, to_at, moving in stretches if moving > 0)
    busy_us = sum(to_at - from_at for from_at, to_at in busy) if busy else None
    outcomes = Counter(row["outcome"] for row in rows)
    sent = sum(row["bytes"] or 0 for row in rows)
    return [
        {
            **{"committed": outcomes["committed"], "rolled_back": outcomes["rolled-back"], "open": outcomes["open"]},
            **{"busy_us": busy_us, "most_at_once": max((stretch[2] for stretch in stretches), default=None)},
            "committed_per_second": outcomes["committed"] / (busy_us / 1e6) if busy_us else None,
            **{"bytes": sent, "bytes_per_second": sent / (busy_us / 1e6) if busy_us else None},
        }
    ]


@metric("plans", PLANS, "plans of migrations against their lower bound")
def plans(tables: RunTables) -> list[Row]:
    """Make one row for each plan of a master with at least one migration."""
    made = tables.events.rows(("migrations-planned",), "uuid member at", "planned moves lower_bound why")
    return [
        row
        | {
            "planned": len(row["planned"]),
            "unavoidable": sum(bool(migration["unavoidable"]) for migration in row["planned"]),
            "over": row["moves"] - row["lower_bound"],
        }
        for row in made
        if row["planned"]
    ]


@metric("messages", MESSAGES, "what can be known of the messages that were sent")
def messages(tables: RunTables) -> list[Row]:
    """Make one row for each kind of message that occurred."""
    ran_us = sum(incarnation.to_at - incarnation.from_at for incarnation in tables.running.values())
    sent = {("recorded", kind): _recorded(tables, *trace) for kind, trace in TRACES.items()}
    sent["reckoned", "heartbeats"] = _heartbeats(tables)
    return [
        {
            **{"kind": kind, "known": known, "messages": many},
            "per_member_second": many / (ran_us / 1e6) if ran_us > 0 else None,
        }
        for (known, kind), many in sent.items()
        if many > 0 and tables.running
    ]


def _recorded(tables: RunTables, kind: str, fields: str, many: Callable[[Row], int]) -> int:
    return sum(map(many, tables.events.rows((kind,), "uuid", fields)))


def _heartbeats(tables: RunTables) -> int:
    """Reckon one heartbeat per interval to all others on the list, or to as many as watch a member on a ring."""
    held = defaultdict(list)
    for view in (view for view in tables.views if view.from_at < view.to_at):
        held[view.uuid, view.version, view.lineage, len(view.listed), view.leads].append((view.from_at, view.to_at))
    rounds = 0.0
    for (uuid, _, _, size, leads), spans in held.items():
        interval_us = tables.setting_us(uuid, "hazelcast.heartbeat.interval.seconds")
        if interval_us is None:
            continue
        receivers = size - 1
        # On a ring a member sends to those who watch it and to the master; a master sends to all.
        if tables.setting(uuid, "quarterdeck.heartbeat.topology") == "ring" and not leads:
            successors = tables.setting_count(uuid, "quarterdeck.heartbeat.ring.successors") or 0
            receivers = min(receivers, successors + 1)
        awake = subtracted(spans, tables.frozen[uuid])
        rounds += sum(receivers * ((to_at - from_at) / interval_us) for from_at, to_at in awake)
    return round(rounds)
