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
        kind=events.HeartbeatLate, words=_late, tone=lambda event: "good" if event.over else "warning", level=DEBUG,
        mark=lambda event, letter: (f"{'○' if event.over else '◔'} {letter(event.address)}", "faint"), part="detail",
    ),
    EventRow(
        kind=events.ObserverPaused,
        words=lambda event, name_of: f"stood still for {duration_text(event.gap)} itself, so it suspects no member",
        level=WARNING, logged_as="Resetting heartbeat timestamps: ",
    ),
    EventRow(
        kind=events.SuspicionRaised,
        words=lambda event, name_of: f"suspects {name_of(event.suspect)}: {event.reason}", tone="warning",
        level=WARNING, mark=lambda event, letter: (f"⊘ {letter(event.suspect)}", "warning"), mark_weight=5, decides=8,
    ),
    EventRow(
        kind=events.SuspicionCleared,
        words=lambda event, name_of: f"no longer suspects {name_of(event.suspect)}: {event.reason}", tone="good",
        mark=lambda event, letter: (f"○ {letter(event.suspect)}", "good"), decides=9,
    ),
    EventRow(
        kind=events.ExplicitSuspicionSent,
        words=lambda event, name_of: f"asks {name_of(event.to)} to suspect it: {event.reason}",
        mark=lambda event, letter: (f"! {letter(event.to)}", "warning"), part="detail",
        follows=(Follows(events.ListInstalled, "that one is not on it, or does not follow its master"),),
    ),
    EventRow(
        kind=events.ExplicitSuspicionReceived, words=_explicit_received, level=WARNING,
        logged_as=lambda event: f"Received suspicion request from {bracketed(event.sender)}: ",
        mark=lambda event, letter: (f"! {letter(event.sender)}", "warning"), part="detail",
    ),
    EventRow(
        kind=events.ComplaintSent,
        words=lambda event, name_of: (
            f"complains to {name_of(event.master)} of heartbeats from the stranger {name_of(event.stranger)}"
        ),
        mark=lambda event, letter: (f"¿ {letter(event.stranger)}", "faint"), part="detail",
        follows=(Follows(events.ListInstalled, "the stranger is not on it", deeper=False),),
    ),
)  # fmt: skip

PARTIAL_DISCONNECTIONS = (
    EventRow(
        kind=events.DisconnectionReported, words=_reported, tone="warning",
        mark=lambda event, letter: (f"≁ {letter(event.reporter)}", "warning"),
    ),
    EventRow(
        kind=events.DisconnectionResolved, words=_resolved, tone="bad", level=WARNING, mark=("◆ settle", "bad"),
        decides=14, follows=(Follows(events.DisconnectionReported, "members cannot reach one another"),),
    ),
)  # fmt: skip
