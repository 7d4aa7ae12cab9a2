"""What happened to one member lately, as facts to paint: the latest first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from backend.core import events
from backend.core.events import Record
from backend.picture.amounts import age_text
from backend.picture.fact import Fact
from backend.picture.narration import tell
from backend.picture.picture import Picture

EVENTS_TOLD = 20

FROM_OUTSIDE: frozenset[type] = frozenset({events.ProcessKilled, events.ProcessPaused, events.ProcessResumed})
"""What was done to a member, recorded under the name of its cluster."""


def recent_facts(picture: Picture, records: Sequence[Record], label: str, now_us: int) -> Iterator[Fact]:
    """The last `EVENTS_TOLD` events of a member among `records`, which stand in order of time."""
    own = (
        record
        for record in reversed(records)
        if record.member == label or (type(record.event) in FROM_OUTSIDE and record.event.target == label)  # type: ignore[union-attr]
    )
    heading = "lately"
    for record in islice(own, EVENTS_TOLD):
        yield Fact(heading, f"{age_text(now_us - record.at)} ago: {tell(record.event, picture.label_of)}", "faint")
        heading = ""
    if heading:
        yield Fact(heading, "nothing that is still remembered", "faint")
