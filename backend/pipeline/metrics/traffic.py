"""What members sent: migrations by the second, plans against their lower bound, and messages as far as a journal shows them.

A journal holds no messages. `recorded` messages left a trace, each counted once; there may have been more, sent again. `reckoned`
ones are heartbeats, worked out from the lists, the times for which they were held, and the settings; without faults that is
what is sent. For migrations and plans see Avoid Data Loss on Migration.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable

from quarterdeck.backend.pipeline.metrics.run_tables import RunTables, counted, merged, metric, subtracted
from quarterdeck.backend.pipeline.schemas import schema
from quarterdeck.backend.pipeline.tables.run_events import Row

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
