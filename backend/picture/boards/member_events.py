"""What happened to one member lately, as facts to paint: the latest first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from quarterdeck.backend.core import events
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.picture.events.catalogue import describe_event
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.text.fact import Fact
from quarterdeck.backend.picture.text.formatting import clock_text, with_names

EVENTS_TOLD = 20

PROCESS_FAULTS: frozenset[type] = frozenset({events.ProcessKilled, events.ProcessPaused, events.ProcessResumed})
"""What was done to a member, recorded under the name of its cluster."""


def recent_facts(picture: Picture, records: Sequence[Record], label: str) -> Iterator[Fact]:
    """Yield the last `EVENTS_TOLD` events of a member among `records`, which stand in order of time.

    They have their moment, not their age: what has not changed is not painted again.
    """
    own = (
        record
        for record in reversed(records)
        if record.member == label or (type(record.event) in PROCESS_FAULTS and record.event.target == label)  # type: ignore[union-attr]
    )
    heading = "lately"
    for record in islice(own, EVENTS_TOLD):
        yield Fact(heading, f"{clock_text(record.at).strip()} s: {_told(picture, record)}", "faint")
        heading = ""
    if heading:
        yield Fact(heading, "nothing that is still remembered", "faint")


def _told(picture: Picture, record: Record) -> str:
    """As in the tail of all events, but for the name of the member."""
    told = describe_event(record.event, picture.label_of)
    return told if isinstance(record.event, events.MemberStarted) else with_names(told, picture.label_of)
