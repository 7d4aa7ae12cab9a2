"""What can be wrong with a link, one thing at a time, and the commands that do and undo it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, cast

from quarterdeck.backend.core.commands import (
    BlockMode,
    Command,
    CutLink,
    DelayLink,
    DropMessages,
    DuplicateOnLink,
    LoseOnLink,
)
from quarterdeck.backend.core.events import LinkChanged
from quarterdeck.backend.picture.amounts import duration_text

TraitKind = Literal["cut", "slow", "lossy", "doubling", "dropping"]

GLYPHS: dict[TraitKind, str] = {"cut": "✕", "dropping": "⊘", "lossy": "≈", "slow": "~", "doubling": "»"}
"""The worst first."""


class Trait(NamedTuple):
    """One thing that is wrong: how links are cut, the delay in microseconds, the probability, or the kinds of messages."""

    kind: TraitKind
    value: str | int | float | tuple[str, ...]


def traits_of(condition: LinkChanged) -> Iterator[Trait]:
    """All that is wrong with a link in this condition, the worst first."""
    if condition.blocked:
        yield Trait("cut", condition.blocked)
    if condition.dropped_kinds:
        yield Trait("dropping", condition.dropped_kinds)
    if condition.loss:
        yield Trait("lossy", condition.loss)
    if condition.delay:
        yield Trait("slow", condition.delay)
    if condition.duplicate:
        yield Trait("doubling", condition.duplicate)


def trait_text(trait: Trait) -> str:
    """What is wrong, in a few words."""
    match trait:
        case Trait("cut", mode):
            return "cut" if mode == "blackhole" else f"cut by {mode}"
        case Trait("slow", int(delay_us)):
            return f"slow by {duration_text(delay_us)}"
        case Trait("dropping", tuple(kinds)):
            return f"drops {', '.join(kinds)}"
        case Trait("lossy", chance):
            return f"loses {chance:.3g} of all messages"
        case Trait(_, chance):
            return f"doubles {chance:.3g} of all messages"


def doing(trait: Trait, sources: Sequence[str], targets: Sequence[str], *, one_way: bool) -> tuple[Command, ...]:
    """The commands that make the links from each source to each target, and back unless `one_way`, have this trait."""
    ends = (tuple(sources), tuple(targets))
    match trait:
        case Trait("cut", mode):
            return (CutLink(*ends, one_way, cast(BlockMode, mode)),)
        case Trait("slow", int(delay_us)):
            return (DelayLink(*ends, delay_us, one_way),)
        case Trait("lossy", float(chance)):
            return (LoseOnLink(*ends, chance, one_way),)
        case Trait("doubling", float(chance)):
            return (DuplicateOnLink(*ends, chance, one_way),)
        case Trait(_, kinds):
            there = DropMessages(*ends, cast(tuple[str, ...], kinds))
            return (there,) if one_way else (there, DropMessages(ends[1], ends[0], there.kinds))


def neutral(trait: Trait) -> Trait:
    """The value at which there is nothing of this kind. A cut has none: only healing ends it."""
    nothing: dict[TraitKind, int | float | tuple[str, ...]] = {
        "slow": 0,
        "lossy": 0.0,
        "doubling": 0.0,
        "dropping": (),
    }
    return Trait(trait.kind, nothing[trait.kind])
