"""What operators and the network do to a cluster: the rows of these events."""

from __future__ import annotations

from logging import WARNING

from quarterdeck.backend.core.events import (
    JournalChanged,
    OperatorAsked,
    ProcessKilled,
    ProcessPaused,
    ProcessResumed,
    StrangerRefused,
)
from quarterdeck.backend.core.link_condition import LinkChanged
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.picture.events.event_row import EventRow, LandmarkMark, Mark
from quarterdeck.backend.picture.events.link_impairments import impairment_text, impairments_of
from quarterdeck.backend.picture.text.formatting import NameOf, counted


def condition_text(link: LinkChanged) -> str:
    """Return what a one-way link does to messages, to stand after the names of its ends: ``is cut (blackhole)``."""
    return " and ".join(map(impairment_text, impairments_of(link))) or "is healed"


def _link_mark(event: LinkChanged) -> Mark:
    if event.is_plain:
        return "═ to {target:name}", "good"
    return ("✂ to {target:name}", "bad") if event.blocked else ("~ to {target:name}", "warning")


def _link_landmark(event: LinkChanged, member: str) -> LandmarkMark:
    ends = f"from {event.source} to {event.target}"
    if event.is_plain:
        return LandmarkMark("faults", "H", "good", f"the link {ends} is healed")
    return LandmarkMark("faults", "L", "warning", f"the link {ends} is {'cut' if event.blocked else 'worse'}")


def _journal_changed(event: JournalChanged, name_of: NameOf) -> str:
    missing = f"; {counted(event.lost, 'record')} lost so far" if event.lost else ""
    return f"the journal of {event.target} {journal_text(event)}{missing}"


def journal_text(event: JournalChanged) -> str:
    """Return what became of a journal, to stand after the name of its member."""
    return f"cannot be written: {event.failure}" if event.failure else "is written again"


def request_text(event: OperatorAsked) -> str:
    """Return who asks for what."""
    return f"{event.remote}, as {event.role}, asks for {event.command}"


FAULTS = (
    EventRow(
        ProcessKilled, "{target} is killed", "bad", mark=("✕ killed", "bad"), mark_weight=9, lane="over", external=True,
        befalls=lambda event: event.target,
        landmark=lambda event, _: LandmarkMark("faults", "K", "bad", f"{event.target} is killed"),
    ),
    EventRow(
        ProcessPaused, "{target} is paused", "warning", mark=("‖ frozen", "warning"), lane="frozen", external=True,
        befalls=lambda event: event.target,
        landmark=lambda event, _: LandmarkMark("faults", "P", "warning", f"{event.target} is paused"),
    ),
    EventRow(
        ProcessResumed, "{target} runs on", "good", mark=("▲ on", "good"), lane="alive", external=True,
        befalls=lambda event: event.target,
        landmark=lambda event, _: LandmarkMark("faults", "R", "good", f"{event.target} is resumed"),
    ),
    EventRow(
        LinkChanged, lambda event, _: f"link {event.source} to {event.target} {condition_text(event)}", "warning", WARNING,
        mark=_link_mark, befalls=lambda event: event.source, landmark=_link_landmark, external=True,
    ),
)  # fmt: skip

REQUESTS = (
    EventRow(
        OperatorAsked, lambda event, _: request_text(event) + ("" if event.granted else f"; refused: {event.reason}"),
        mark=None, external=True,
    ),
    EventRow(
        events.SettingsChanged, mark=None, external=True,
        words=lambda event, _: "has other settings: " + ", ".join(map(" ".join, event.properties.items())),
    ),
    EventRow(StrangerRefused, "refuses the stranger {remote}: {reason}", level=WARNING, external=True),
    EventRow(JournalChanged, _journal_changed, "warning", WARNING, external=True),
)  # fmt: skip
