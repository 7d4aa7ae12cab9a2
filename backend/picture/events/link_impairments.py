"""What can be wrong with a link, one thing at a time, and the commands that do and undo it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, cast

from quarterdeck.backend.core.commands import commands as do
from quarterdeck.backend.core.link_condition import LinkChanged
from quarterdeck.backend.core.links import conditions_by_kind
from quarterdeck.backend.picture.text.formatting import duration_text

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
    """All that is wrong with a link in this condition, the worst first."""
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
    """Return what links with this impairment do to messages, to stand after the names of their ends."""
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
    """Return the same without a verb of its own, to stand before what it is about."""
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
    """Return the value at which there is nothing of this kind. A cut has none: only healing ends it."""
    nothing: dict[ImpairmentKind, int | float | tuple[str, ...]] = {
        "slow": 0,
        "lossy": 0.0,
        "doubling": 0.0,
        "dropping": (),
    }
    return Impairment(impairment.kind, nothing[impairment.kind], impairment.of_kind)
