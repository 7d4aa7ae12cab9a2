"""Members that keep no journal, as a witness knows them: the rows of these events."""

from __future__ import annotations

from logging import DEBUG, WARNING

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.witnessed import events
from quarterdeck.backend.core.witnessed.events import ASPECTS, ConnectionState, Source
from quarterdeck.backend.picture.events.event_row import EventRow, LandmarkMark
from quarterdeck.backend.picture.text.formatting import NameOf, bytes_text, counted, duration_text, names_text

SOURCES: dict[Source, str] = {"logs": "its logs", "client-protocol": "what it reports to its clients"}

CONNECTIONS: dict[ConnectionState, str] = {
    "connected": "answers",
    "merging": "is not ready yet",
    "silent": "says nothing",
    "refused": "turns us away",
    "gone": "cannot be reached",
    "forgotten": "is not looked for any more",
}


def connection_text(event: events.ConnectionChanged) -> str:
    """Return how a member is reached, to stand after its name."""
    return CONNECTIONS[event.state] + (f": {event.reason}" if event.reason else "")


def _witnessed(event: events.MemberWitnessed, name_of: NameOf) -> str:
    sources = " and ".join(SOURCES[source] for source in event.sources)
    unknown = ", ".join(sorted(ASPECTS.difference(event.tells)))
    return f"is known from {sources}" + (f"; not reported: {unknown}" if unknown else "")


def _owners(event: events.OwnersTold, name_of: NameOf) -> str:
    stamp = f", state stamp {event.state_stamp}" if event.state_stamp is not None else ""
    whose = f"{counted(len(event.owners), 'partition')} owned by {counted(len(event.holders), 'member')}"
    return f"reports a table {event.digest} of {whose}{stamp}"


def _migrated(event: events.ReplicaMigrated, name_of: NameOf) -> str:
    path = f"from {_name(event.source, name_of)} to {_name(event.destination, name_of)}"
    verb = "has moved" if event.succeeded else "could not be moved"
    progress = f"{event.done_count} of {event.planned_count} done"
    return f"p{event.partition}, replica {event.index}, {verb} {path} within {duration_text(event.took)} ({progress})"


def stands_still(measured: events.MemberMeasured) -> bool:
    """Whether the member did little else than collect garbage: that it was silent is then no sign of a cut network."""
    return measured.collecting is not None and 2 * measured.collecting >= measured.span > 0


def process_text(measured: events.MemberMeasured) -> str:
    """Return the known facts of a member's process; empty without any."""
    parts = []
    if measured.heap_used is not None:
        of_max = f" of {bytes_text(measured.heap_max)}" if measured.heap_max else ""
        parts.append(f"heap {bytes_text(measured.heap_used)}{of_max}")
    if measured.collecting is not None and measured.span:
        still = "stood still: " if stands_still(measured) else ""
        spent, span = duration_text(measured.collecting), duration_text(measured.span)
        parts.append(f"{still}collected garbage for {spent} of {span}")
    if measured.cpu_percent is not None:
        parts.append(f"CPU {measured.cpu_percent} %")
    if measured.open_files is not None:
        parts.append(f"{measured.open_files} of {measured.max_files or 'an unknown number of'} files open")
    return ", ".join(parts)


def work_text(measured: events.MemberMeasured) -> str:
    """Return the known facts of a member's work for others; empty without any."""
    counts = (
        (measured.queued_operations, "operation queued", "operations queued"),
        (measured.pending_invocations, "invocation pending", "invocations pending"),
        (measured.replica_syncs, "replica to synchronize", "replicas to synchronize"),
        (measured.clients, "client", "clients"),
    )
    return ", ".join(counted(count, what, several) for count, what, several in counts if count is not None)


def migrating_text(measured: events.MemberMeasured) -> str:
    """Return how far the migrations are that a master leads; empty when that is not known."""
    if measured.queued_migrations is None:
        return ""
    # The product counts its tasks there: migrations, and those that plan and check them, which come without any migration, too.
    waiting = f"{counted(measured.queued_migrations, 'task')} in the migration queue"
    if not measured.planned_migrations or measured.completed_migrations is None:
        return waiting
    return f"{waiting}, {measured.completed_migrations} of {measured.planned_migrations} of the round done"


def _failed(event: events.MigrationFailed, name_of: NameOf) -> str:
    what = f"a migration of p{event.partition}" if event.partition is not None else "a migration"
    return f"says that {what} failed: {event.migration}"


def _measured(event: events.MemberMeasured, name_of: NameOf) -> str:
    age = event.heartbeat_age
    heartbeats = f"heartbeats sent {duration_text(age)} before" if age is not None else ""
    links = f"strained links to {names_text((link.address for link in event.strained_links or ()), name_of)}"
    parts = (
        migrating_text(event), process_text(event), work_text(event), heartbeats, links if event.strained_links else "",
    )  # fmt: skip
    return "measures: " + "; ".join(filter(None, parts))


def _name(address: Address | None, name_of: NameOf) -> str:
    return name_of(address) if address is not None else "no member"


def _gone(event: events.ConnectionChanged, member: str) -> LandmarkMark | None:
    ends = event.state in ("gone", "silent")
    return LandmarkMark("observed", "E", "warning", f"{member}: {event.reason}") if ends else None


def _slow(event: events.InvocationsSlow, name_of: NameOf) -> str:
    others = f", and {event.count - 1} more" if event.count > 1 else ""
    return f"waits {duration_text(event.waited)} for {event.operation} at {_name(event.target, name_of)}{others}"


WITNESSED = (
    EventRow(events.MemberWitnessed, _witnessed, external=True),
    EventRow(events.OwnersTold, _owners, part="background", external=True),
    EventRow(events.ReplicaMigrated, _migrated, part="frequent", external=True),
    EventRow(events.ConnectionChanged, lambda event, _: connection_text(event), landmark=_gone, external=True),
    EventRow(
        events.MemberMeasured, _measured, lambda event: "warning" if stands_still(event) else "faint", DEBUG, mark=None,
        part="measurement", external=True,
    ),
    EventRow(events.JoinerRefused, "refuses {joiner:name}: {reason}", "bad", WARNING, external=True),
    EventRow(events.InvocationsSlow, _slow, "warning", external=True),
    EventRow(events.LeaveRequested, "is asked by {address:name} to let it leave", external=True),
    EventRow(
        events.MigrationsRemaining, lambda event, _: f"has {counted(event.count, 'migration')} left to do",
        part="frequent", external=True,
    ),
    EventRow(events.MigrationFailed, _failed, "warning", part="frequent", external=True),
)  # fmt: skip
