"""What a witness from outside tells of a member, as lines of plain English."""

from __future__ import annotations

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.witnessed.events import (
    ASPECTS,
    ConnectionChanged,
    MemberWitnessed,
    OwnersTold,
    ReplicaMigrated,
    Source,
    WitnessEvent,
)
from quarterdeck.backend.picture.text.formatting import NameOf, counted, duration_text

SOURCES: dict[Source, str] = {"logs": "its logs", "client-protocol": "what it tells its clients"}

CONNECTIONS = {
    "connected": "answers",
    "merging": "is merging, and not ready yet",
    "silent": "says nothing, though the connection stands",
    "refused": "turns us away",
    "gone": "cannot be reached",
}


def describe_witnessed(event: WitnessEvent, name_of: NameOf) -> str:
    """Describe what happened, without when and to whom."""
    match event:
        case MemberWitnessed(by, tells):
            sources = " and ".join(SOURCES[one] for one in by)
            untold = ", ".join(sorted(ASPECTS.difference(tells)))
            return f"is known from {sources}" + (f"; not told: {untold}" if untold else "")
        case OwnersTold(holders, owners, digest, state_stamp):
            stamp = f", state stamp {state_stamp}" if state_stamp is not None else ""
            whose = f"{counted(len(owners), 'partition')} owned by {counted(len(holders), 'member')}"
            return f"tells a table {digest} of {whose}{stamp}"
        case ReplicaMigrated(partition, index, source, destination, succeeded, took, planned, done):
            path = f"from {_name(source, name_of)} to {_name(destination, name_of)}"
            verb = "has moved" if succeeded else "could not be moved"
            return (
                f"p{partition}, replica {index}, {verb} {path} within {duration_text(took)} ({done} of {planned} done)"
            )
        case ConnectionChanged(state, reason):
            return CONNECTIONS[state] + (f": {reason}" if reason else "")


def _name(address: Address | None, name_of: NameOf) -> str:
    return name_of(address) if address is not None else "nobody"
