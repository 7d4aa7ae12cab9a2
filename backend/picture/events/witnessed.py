"""Members that keep no journal, as a witness knows them: the rows of these events."""

from __future__ import annotations

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.witnessed import events
from quarterdeck.backend.core.witnessed.events import ASPECTS, ConnectionState, Source
from quarterdeck.backend.picture.events.event_row import EventRow, LandmarkMark
from quarterdeck.backend.picture.text.formatting import NameOf, counted, duration_text

SOURCES: dict[Source, str] = {"logs": "its logs", "client-protocol": "what it tells its clients"}

CONNECTIONS: dict[ConnectionState, str] = {
    "connected": "answers",
    "merging": "is not ready yet",
    "silent": "says nothing",
    "refused": "turns us away",
    "gone": "cannot be reached",
}


def connection_text(event: events.ConnectionChanged) -> str:
    """Return how a member is reached, to stand after its name."""
    return CONNECTIONS[event.state] + (f": {event.reason}" if event.reason else "")


def _witnessed(event: events.MemberWitnessed, name_of: NameOf) -> str:
    sources = " and ".join(SOURCES[source] for source in event.sources)
    unknown = ", ".join(sorted(ASPECTS.difference(event.tells)))
    return f"is known from {sources}" + (f"; not told: {unknown}" if unknown else "")


def _owners(event: events.OwnersTold, name_of: NameOf) -> str:
    stamp = f", state stamp {event.state_stamp}" if event.state_stamp is not None else ""
    whose = f"{counted(len(event.owners), 'partition')} owned by {counted(len(event.holders), 'member')}"
    return f"tells a table {event.digest} of {whose}{stamp}"


def _migrated(event: events.ReplicaMigrated, name_of: NameOf) -> str:
    path = f"from {_name(event.source, name_of)} to {_name(event.destination, name_of)}"
    verb = "has moved" if event.succeeded else "could not be moved"
    progress = f"{event.done_count} of {event.planned_count} done"
    return f"p{event.partition}, replica {event.index}, {verb} {path} within {duration_text(event.took)} ({progress})"


def _name(address: Address | None, name_of: NameOf) -> str:
    return name_of(address) if address is not None else "nobody"


def _gone(event: events.ConnectionChanged, member: str) -> LandmarkMark | None:
    return (
        LandmarkMark("observed", "E", "warning", f"{member}: {event.reason}")
        if event.state in ("gone", "silent")
        else None
    )


WITNESSED = (
    EventRow(kind=events.MemberWitnessed, words=_witnessed, external=True),
    EventRow(kind=events.OwnersTold, words=_owners, part="background", external=True),
    EventRow(kind=events.ReplicaMigrated, words=_migrated, part="frequent", external=True),
    EventRow(
        kind=events.ConnectionChanged,
        words=lambda event, name_of: connection_text(event),
        landmark=_gone,
        external=True,
    ),
)
