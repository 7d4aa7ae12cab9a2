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
from quarterdeck.backend.picture.events.event_row import EventRow, LandmarkMark, LetterOf, Mark
from quarterdeck.backend.picture.events.link_impairments import impairment_text, impairments_of
from quarterdeck.backend.picture.text.formatting import NameOf, counted


def condition_text(link: LinkChanged) -> str:
    """Return what a one-way link does to messages, to stand after the names of its ends: ``is cut (blackhole)``."""
    return " and ".join(map(impairment_text, impairments_of(link))) or "is healed"


def _link_mark(event: LinkChanged, letter: LetterOf) -> Mark:
    if event.is_plain:
        return f"═ to {letter(event.target)}", "good"
    return (f"✂ to {letter(event.target)}", "bad") if event.blocked else (f"~ to {letter(event.target)}", "warning")


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


def _settings_changed(event: events.SettingsChanged, name_of: NameOf) -> str:
    return f"has other settings: {', '.join(f'{name} {value}' for name, value in event.properties.items())}"


FAULTS = (
    EventRow(
        kind=ProcessKilled, words=lambda event, name_of: f"{event.target} is killed", tone="bad",
        mark=("✕ killed", "bad"), mark_weight=9, befalls=lambda event: event.target, lane="over",
        landmark=lambda event, member: LandmarkMark("faults", "K", "bad", f"{event.target} is killed"), external=True,
    ),
    EventRow(
        kind=ProcessPaused, words=lambda event, name_of: f"{event.target} is paused", tone="warning",
        mark=("‖ frozen", "warning"), befalls=lambda event: event.target, lane="frozen",
        landmark=lambda event, member: LandmarkMark("faults", "P", "warning", f"{event.target} is paused"),
        external=True,
    ),
    EventRow(
        kind=ProcessResumed, words=lambda event, name_of: f"{event.target} runs on", tone="good",
        mark=("▲ on", "good"), befalls=lambda event: event.target, lane="alive",
        landmark=lambda event, member: LandmarkMark("faults", "R", "good", f"{event.target} is resumed"),
        external=True,
    ),
    EventRow(
        kind=LinkChanged,
        words=lambda event, name_of: f"link {event.source} to {event.target} {condition_text(event)}", tone="warning",
        level=WARNING, mark=_link_mark, befalls=lambda event: event.source, landmark=_link_landmark, external=True,
    ),
)  # fmt: skip

REQUESTS = (
    EventRow(
        kind=OperatorAsked,
        words=lambda event, name_of: request_text(event) + ("" if event.granted else f"; refused: {event.reason}"),
        mark=None, external=True,
    ),
    EventRow(kind=events.SettingsChanged, words=_settings_changed, mark=None, external=True),
    EventRow(
        kind=StrangerRefused,
        words=lambda event, name_of: f"refuses the stranger {event.remote}: {event.reason}", level=WARNING,
        external=True,
    ),
    EventRow(kind=JournalChanged, words=_journal_changed, tone="warning", level=WARNING, external=True),
)  # fmt: skip
