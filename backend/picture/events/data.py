"""Calls of clients, backups and measurements: the rows of their events."""

from __future__ import annotations

from logging import DEBUG

from quarterdeck.backend.core.data import events
from quarterdeck.backend.core.membership.events import MemberStarted
from quarterdeck.backend.picture.events.event_row import EventRow, Follows, filled
from quarterdeck.backend.picture.text.formatting import NameOf, bytes_text, counted, duration_text

TEXT_SHOWN = 60
"""Letters of a key or a value that a line shows."""


def call_text(call: events.CallFinished) -> str:
    """Return how a call ended: ``put orders k1: was 'a' before (p17, 3 ms)``."""
    asked = f"{call.operation} {call.map} {call.key}"
    if call.problem:
        return f"{asked} failed: {call.problem}; {'nothing was done' if call.untouched else 'it may have been done'}"
    found = _quoted(call.value) if call.found else "not there"
    outcome = found if call.operation == "get" else f"was {found} before"
    return f"{asked}: {outcome} (p{call.partition}, {duration_text(call.took)})"


def _quoted(text: str) -> str:
    return repr(text if len(text) <= TEXT_SHOWN else text[: TEXT_SHOWN - 1] + "…")


def _call_started(event: events.CallStarted, name_of: NameOf) -> str:
    what = f" {_quoted(event.value)}" if event.operation == "put" else ""
    return f"is asked to {event.operation} {event.map} {event.key}{what}"


def _merged(event: events.EntriesMerged, name_of: NameOf) -> str:
    brought = counted(event.offered, "entry", "entries")
    failed = f"; the rest could not be offered: {event.problem}" if event.problem else ""
    return f"brought {brought} into the merge, {event.taken} taken ({event.policy}){failed}"


def _measured(event: events.DataMeasured, name_of: NameOf) -> str:
    reads, writes = sum(measured.reads for measured in event.maps), sum(measured.writes for measured in event.maps)
    stored = f"stores {counted(event.entries, 'entry', 'entries')}, {bytes_text(event.bytes)}"
    lag = f"; {counted(len(event.lagging), 'backup')} behind" if event.lagging else ""
    asked = f"{counted(reads, 'read')} and {counted(writes, 'write')} in {duration_text(event.span)}"
    return f"{stored}, and {event.backup_entries} as a backup; {asked}{lag}"


DATA = (
    EventRow(events.CallStarted, _call_started, "faint", DEBUG, mark=None, part="frequent", external=True),
    EventRow(
        events.CallFinished, lambda event, _: call_text(event), lambda event: "warning" if event.problem else "plain",
        DEBUG, mark=None, part="frequent",
    ),
    EventRow(
        events.BackupOutOfStep, "its backup of p{partition} is out of step with {owner:name}: {reason}", "warning", DEBUG,
    ),
    EventRow(
        events.BackupInStep,
        lambda event, name_of: filled("its backup of p{partition} is in step with {owner:name} again: ", event, name_of)
        + f"{counted(event.entries, 'entry', 'entries')}, {bytes_text(event.bytes)}",
        "good", DEBUG, part="detail", follows=(Follows(events.BackupOutOfStep, "it had asked for it", same="partition"),),
    ),
    EventRow(
        events.EntriesMerged, _merged, "strong", follows=(Follows(MemberStarted, "it came here in a merge"),),
    ),
    EventRow(
        events.EntriesEvicted,
        lambda event, _: f"evicts {counted(len(event.keys), 'entry', 'entries')} of {event.map} from p{event.partition}"
        " to make room",
        "faint", DEBUG, mark=None, part="frequent", external=True,
    ),
    EventRow(events.DataMeasured, _measured, "faint", DEBUG, mark=None, part="measurement", external=True),
)  # fmt: skip
