"""Heartbeats, suspicions and partial disconnections: the rows of their events."""

from __future__ import annotations

from logging import DEBUG, WARNING

from quarterdeck.backend.core.address import bracketed
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.picture.events.event_row import EventRow, Follows
from quarterdeck.backend.picture.text.formatting import NameOf, duration_text, names_text


def _late(event: events.HeartbeatLate, name_of: NameOf) -> str:
    name, silence = name_of(event.address), duration_text(event.silence)
    if not event.over:
        left = f", suspects it in {duration_text(max(event.timeout - event.silence, 0))}" if event.timeout else ""
        return f"has not heard {name} for {silence}{left}"
    return f"hears {name} again after {silence}" if event.silence else f"waits for the heartbeats of {name} anew"


def _explicit_received(event: events.ExplicitSuspicionReceived, name_of: NameOf) -> str:
    asked = f"is asked by {name_of(event.sender)} to suspect it and {'does' if event.heeded else 'does not'}"
    return f"{asked}: {event.reason}" if event.reason else asked


def _reported(event: events.DisconnectionReported, name_of: NameOf) -> str:
    if not event.suspects:
        return f"hears that {name_of(event.reporter)} reaches every member again"
    return f"hears from {name_of(event.reporter)} that it cannot reach {names_text(event.suspects, name_of)}"


def _resolved(event: events.DisconnectionResolved, name_of: NameOf) -> str:
    how = "" if event.exact else " (the best found in time)"
    keep, remove = names_text(event.keep, name_of), names_text(event.remove, name_of)
    return f"settles who stays{how}: {keep}; removes {remove}: {event.why}"


SUSPICION = (
    EventRow(
        events.HeartbeatLate, _late, lambda event: "good" if event.over else "warning", DEBUG, part="detail",
        mark=lambda event: (f"{'○' if event.over else '◔'} {{address:name}}", "faint"),
    ),
    EventRow(
        events.ObserverPaused, "stood still for {gap:duration} itself, so it suspects no member", level=WARNING,
        logged_as="Resetting heartbeat timestamps: ",
    ),
    EventRow(
        events.SuspicionRaised, "suspects {suspect:name}: {reason}", "warning", WARNING,
        mark=("⊘ {suspect:name}", "warning"), mark_weight=5, decides=8,
    ),
    EventRow(
        events.SuspicionCleared, "no longer suspects {suspect:name}: {reason}", "good",
        mark=("○ {suspect:name}", "good"), decides=9,
    ),
    EventRow(
        events.ExplicitSuspicionSent, "asks {to:name} to suspect it: {reason}", mark=("! {to:name}", "warning"),
        part="detail", follows=(Follows(events.ListInstalled, "that one is not on it, or does not follow its master"),),
    ),
    EventRow(
        events.ExplicitSuspicionReceived, _explicit_received, level=WARNING,
        logged_as=lambda event: f"Received suspicion request from {bracketed(event.sender)}: ",
        mark=("! {sender:name}", "warning"), part="detail",
    ),
    EventRow(
        events.ComplaintSent, "complains to {master:name} of heartbeats from the stranger {stranger:name}",
        mark=("¿ {stranger:name}", "faint"), part="detail",
        follows=(Follows(events.ListInstalled, "the stranger is not on it", deeper=False),),
    ),
)  # fmt: skip

PARTIAL_DISCONNECTIONS = (
    EventRow(events.DisconnectionReported, _reported, "warning", mark=("≁ {reporter:name}", "warning")),
    EventRow(
        events.DisconnectionResolved, _resolved, "bad", WARNING, mark=("◆ settle", "bad"), decides=14,
        follows=(Follows(events.DisconnectionReported, "members cannot reach one another"),),
    ),
)  # fmt: skip
