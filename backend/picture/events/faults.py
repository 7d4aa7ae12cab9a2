"""Faults of operators and of the network: the rows of these events, and the impairments of a link."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from logging import WARNING
from typing import Literal, NamedTuple, cast

from quarterdeck.backend.commands.links import conditions_by_kind
from quarterdeck.backend.core import commands as do
from quarterdeck.backend.core.events import (
    JournalChanged,
    MembersExpected,
    OperatorAsked,
    ProcessKilled,
    ProcessPaused,
    ProcessResumed,
    StrangerRefused,
)
from quarterdeck.backend.core.link_condition import LinkChanged
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.picture.events.event_row import EventRow, LandmarkMark, Mark
from quarterdeck.backend.picture.text.formatting import NameOf, counted, duration_text

ImpairmentKind = Literal["cut", "slow", "lossy", "doubling", "dropping"]

GLYPHS: dict[ImpairmentKind, str] = {"cut": "✕", "dropping": "⊘", "lossy": "≈", "slow": "~", "doubling": "»"}
"""The worst first."""


class Impairment(NamedTuple):
    """One thing that is wrong with links.

    `value` is how they are cut, the delay or its range in microseconds, the probability, or the kinds of dropped messages.
    """

    kind: ImpairmentKind
    value: str | int | float | tuple[str, ...] | tuple[int, int]
    of_kind: str = ""
    """The kind of messages that suffers it alone; empty when all do."""

    @property
    def kinds(self) -> tuple[str, ...]:
        """The same as commands name it."""
        return (self.of_kind,) if self.of_kind else ()


def impairments_of(condition: LinkChanged) -> Iterator[Impairment]:
    """Return the impairments of a link in this condition, the worst first."""
    if condition.blocked:
        yield Impairment("cut", condition.blocked)
    if condition.dropped_kinds:
        yield Impairment("dropping", condition.dropped_kinds)
    for of_kind in condition.of_kinds:
        if of_kind.held:
            yield Impairment("dropping", (), of_kind.kind)
    found = conditions_by_kind(condition)
    for part in found:
        if part.loss:
            yield Impairment("lossy", part.loss, part.kind)
    for part in found:
        if part.delay_up_to > part.delay:
            yield Impairment("slow", (part.delay, part.delay_up_to), part.kind)
        elif part.delay:
            yield Impairment("slow", part.delay, part.kind)
    for part in found:
        if part.duplicate:
            yield Impairment("doubling", part.duplicate, part.kind)


def impairment_text(impairment: Impairment) -> str:
    """Return the effect of this impairment on messages, to stand after the names of the links' ends."""
    whose = f"{impairment.of_kind} messages" if impairment.of_kind else ""
    match impairment:
        case Impairment("cut", mode):
            return f"is cut ({mode})"
        case Impairment("slow", value):
            least_us, most_us = value if isinstance(value, tuple) else (value, 0)
            up_to = f" to {duration_text(int(most_us))}" if most_us else ""
            return f"is slower by {duration_text(int(least_us))}{up_to}{f' for {whose}' if whose else ''}"
        case Impairment("dropping", ()):
            return f"holds {impairment.of_kind or 'everything'}"
        case Impairment("dropping", tuple(kinds)):
            return f"drops every {', '.join(map(str, kinds))}"
        case Impairment(kind, chance):
            does = "loses" if kind == "lossy" else "doubles"
            return f"{does} {chance:.0%}{f' of {whose}' if whose else ''}"


def heading_of(impairment: Impairment) -> str:
    """Return the same without a verb of its own, to stand before its subject."""
    return impairment_text(impairment).replace("is slower", "slow").removeprefix("is ").removesuffix(" (blackhole)")


def commands_for(
    impairment: Impairment, sources: Sequence[str], targets: Sequence[str], *, one_way: bool
) -> tuple[do.Command, ...]:
    """Return the commands that make the links from each source to each target, and back unless `one_way`, have this trait."""
    ends = (tuple(sources), tuple(targets))
    match impairment:
        case Impairment("cut", mode):
            return (do.CutLink(*ends, one_way, cast(do.BlockMode, mode)),)
        case Impairment("slow", value):
            least_us, most_us = value if isinstance(value, tuple) else (value, 0)
            return (do.DelayLink(*ends, int(least_us), one_way, int(most_us), impairment.kinds),)
        case Impairment("lossy", float(chance)):
            return (do.LoseOnLink(*ends, chance, one_way, impairment.kinds),)
        case Impairment("doubling", float(chance)):
            return (do.DuplicateOnLink(*ends, chance, one_way, impairment.kinds),)
        case Impairment(_, ()) if impairment.of_kind:
            held = do.HoldMessages(*ends, impairment.kinds)
            return (held,) if one_way else (held, do.HoldMessages(ends[1], ends[0], impairment.kinds))
        case Impairment(_, kinds):
            there = do.DropMessages(*ends, cast(tuple[str, ...], kinds))
            return (there,) if one_way else (there, do.DropMessages(ends[1], ends[0], there.kinds))


def neutral(impairment: Impairment) -> Impairment:
    """Return the value of a link without this impairment. A cut has none: only healing ends it."""
    nothing: dict[ImpairmentKind, float | tuple[str, ...]] = {"slow": 0, "lossy": 0.0, "doubling": 0.0, "dropping": ()}
    return Impairment(impairment.kind, nothing[impairment.kind], impairment.of_kind)


def condition_text(link: LinkChanged) -> str:
    """Return the effect of a one-way link on messages, to stand after the names of its ends: ``is cut (blackhole)``."""
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
    """Return the trouble of a journal, to stand after the name of its member."""
    return f"cannot be written: {event.failure}" if event.failure else "is written again"


def request_text(event: OperatorAsked) -> str:
    """Return the name of the operator and the request."""
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
    EventRow(
        OperatorAsked, lambda event, _: request_text(event) + ("" if event.granted else f"; refused: {event.reason}"),
        mark=None, external=True,
    ),
    EventRow(
        events.SettingsChanged, mark=None, external=True,
        words=lambda event, _: "has other settings: " + ", ".join(map(" ".join, event.properties.items())),
    ),
    EventRow(StrangerRefused, "refuses the stranger {remote}: {reason}", level=WARNING, external=True),
    EventRow(MembersExpected, "{size} members are accepted as the size of the cluster", mark=None, external=True),
    EventRow(JournalChanged, _journal_changed, "warning", WARNING, external=True),
)  # fmt: skip
