"""What operators and the network do to a cluster: the rows of these events."""

from __future__ import annotations

from collections.abc import Iterator
from logging import WARNING

from quarterdeck.backend.core import events
from quarterdeck.backend.core.link_condition import LinkChanged
from quarterdeck.backend.core.links import conditions_by_kind
from quarterdeck.backend.picture.events.event_row import EventRow, LandmarkMark, LetterOf, Mark
from quarterdeck.backend.picture.text.formatting import NameOf, counted, duration_text


def condition_text(link: LinkChanged) -> str:
    """Return what a one-way link does to messages, to stand after the names of its ends: ``is cut (blackhole)``."""
    cut = [f"is cut ({link.blocked})"] if link.blocked else []
    return " and ".join((*cut, *impairments(link))) or "is healed"


def impairments(link: LinkChanged) -> Iterator[str]:
    """Yield what a link does to messages besides being cut."""
    for condition in conditions_by_kind(link):
        kind = condition.kind
        whose = f" of {kind} messages" if kind else ""
        if condition.delay or condition.delay_up_to:
            up_to = f" to {duration_text(condition.delay_up_to)}" if condition.delay_up_to > condition.delay else ""
            yield f"is slower by {duration_text(condition.delay)}{up_to}{f' for {kind} messages' if kind else ''}"
        if condition.loss:
            yield f"loses {condition.loss:.0%}{whose}"
        if condition.duplicate:
            yield f"doubles {condition.duplicate:.0%}{whose}"
    held = [of_kind.kind or "everything" for of_kind in link.of_kinds if of_kind.held]
    if held:
        yield f"holds {', '.join(held)}"
    if link.dropped_kinds:
        yield f"drops every {', '.join(link.dropped_kinds)}"


def _link_mark(event: LinkChanged, letter: LetterOf) -> Mark:
    if event.is_plain:
        return f"═ to {letter(event.target)}", "good"
    return (f"✂ to {letter(event.target)}", "bad") if event.blocked else (f"~ to {letter(event.target)}", "warning")


def _link_landmark(event: LinkChanged, member: str) -> LandmarkMark:
    ends = f"from {event.source} to {event.target}"
    if event.is_plain:
        return LandmarkMark("faults", "H", "good", f"the link {ends} is healed")
    return LandmarkMark("faults", "L", "warning", f"the link {ends} is {'cut' if event.blocked else 'worse'}")


def _journal_changed(event: events.JournalChanged, name_of: NameOf) -> str:
    missing = f"; {counted(event.lost, 'record')} lost so far" if event.lost else ""
    return f"the journal of {event.target} {journal_text(event)}{missing}"


def journal_text(event: events.JournalChanged) -> str:
    """Return what became of a journal, to stand after the name of its member."""
    return f"cannot be written: {event.failure}" if event.failure else "is written again"


def request_text(event: events.OperatorAsked) -> str:
    """Return who asks for what."""
    return f"{event.remote}, as {event.role}, asks for {event.command}"


def _settings_changed(event: events.SettingsChanged, name_of: NameOf) -> str:
    return f"has other settings: {', '.join(f'{name} {value}' for name, value in event.properties.items())}"


FAULTS = (
    EventRow(
        kind=events.ProcessKilled, words=lambda event, name_of: f"{event.target} is killed", tone="bad",
        mark=("✕ killed", "bad"), mark_weight=9, befalls=lambda event: event.target, lane="over",
        landmark=lambda event, member: LandmarkMark("faults", "K", "bad", f"{event.target} is killed"), external=True,
    ),
    EventRow(
        kind=events.ProcessPaused, words=lambda event, name_of: f"{event.target} is paused", tone="warning",
        mark=("‖ frozen", "warning"), befalls=lambda event: event.target, lane="frozen",
        landmark=lambda event, member: LandmarkMark("faults", "P", "warning", f"{event.target} is paused"),
        external=True,
    ),
    EventRow(
        kind=events.ProcessResumed, words=lambda event, name_of: f"{event.target} runs on", tone="good",
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
        kind=events.OperatorAsked,
        words=lambda event, name_of: request_text(event) + ("" if event.granted else f"; refused: {event.reason}"),
        mark=None, external=True,
    ),
    EventRow(kind=events.SettingsChanged, words=_settings_changed, mark=None, external=True),
    EventRow(
        kind=events.StrangerRefused,
        words=lambda event, name_of: f"refuses the stranger {event.remote}: {event.reason}", level=WARNING,
        external=True,
    ),
    EventRow(kind=events.JournalChanged, words=_journal_changed, tone="warning", level=WARNING, external=True),
)  # fmt: skip
