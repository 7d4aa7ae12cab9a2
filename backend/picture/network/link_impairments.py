"""What can be wrong with a link, one thing at a time, and the commands that do and undo it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, cast

from quarterdeck.backend.core.commands.commands import (
    BlockMode,
    Command,
    CutLink,
    DelayLink,
    DropMessages,
    DuplicateOnLink,
    LoseOnLink,
)
from quarterdeck.backend.core.events import LinkChanged
from quarterdeck.backend.picture.text.formatting import duration_text

ImpairmentKind = Literal["cut", "slow", "lossy", "doubling", "dropping"]

GLYPHS: dict[ImpairmentKind, str] = {"cut": "✕", "dropping": "⊘", "lossy": "≈", "slow": "~", "doubling": "»"}
"""The worst first."""


class Impairment(NamedTuple):
    """One thing that is wrong: how links are cut, the delay in microseconds, the probability, or the kinds of messages."""

    kind: ImpairmentKind
    value: str | int | float | tuple[str, ...]


def impairments_of(condition: LinkChanged) -> Iterator[Impairment]:
    """All that is wrong with a link in this condition, the worst first."""
    if condition.blocked:
        yield Impairment("cut", condition.blocked)
    if condition.dropped_kinds:
        yield Impairment("dropping", condition.dropped_kinds)
    if condition.loss:
        yield Impairment("lossy", condition.loss)
    if condition.delay:
        yield Impairment("slow", condition.delay)
    if condition.duplicate:
        yield Impairment("doubling", condition.duplicate)


def impairment_text(impairment: Impairment) -> str:
    """What is wrong, in a few words."""
    match impairment:
        case Impairment("cut", mode):
            return "cut" if mode == "blackhole" else f"cut by {mode}"
        case Impairment("slow", int(delay_us)):
            return f"slow by {duration_text(delay_us)}"
        case Impairment("dropping", tuple(kinds)):
            return f"drops {', '.join(kinds)}"
        case Impairment("lossy", chance):
            return f"loses {chance:.3g} of all messages"
        case Impairment(_, chance):
            return f"doubles {chance:.3g} of all messages"


def commands_for(
    impairment: Impairment, sources: Sequence[str], targets: Sequence[str], *, one_way: bool
) -> tuple[Command, ...]:
    """The commands that make the links from each source to each target, and back unless `one_way`, have this trait."""
    ends = (tuple(sources), tuple(targets))
    match impairment:
        case Impairment("cut", mode):
            return (CutLink(*ends, one_way, cast(BlockMode, mode)),)
        case Impairment("slow", int(delay_us)):
            return (DelayLink(*ends, delay_us, one_way),)
        case Impairment("lossy", float(chance)):
            return (LoseOnLink(*ends, chance, one_way),)
        case Impairment("doubling", float(chance)):
            return (DuplicateOnLink(*ends, chance, one_way),)
        case Impairment(_, kinds):
            there = DropMessages(*ends, cast(tuple[str, ...], kinds))
            return (there,) if one_way else (there, DropMessages(ends[1], ends[0], there.kinds))


def neutral(impairment: Impairment) -> Impairment:
    """The value at which there is nothing of this kind. A cut has none: only healing ends it."""
    nothing: dict[ImpairmentKind, int | float | tuple[str, ...]] = {
        "slow": 0,
        "lossy": 0.0,
        "doubling": 0.0,
        "dropping": (),
    }
    return Impairment(impairment.kind, nothing[impairment.kind])
