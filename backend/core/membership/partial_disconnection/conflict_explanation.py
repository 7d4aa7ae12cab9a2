"""What a settlement of conflicts says of itself: the conflicts that force it, and who could have stayed as well."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from quarterdeck.backend.core.membership.partial_disconnection.shrinking_graph import vertices_of

SHOWN_NAMES = 6
SHOWN_REASONS = 4
SHOWN_ALTERNATIVES = 3
SHOWN_DISPUTES = 5
"""A text names at most so many of each, and counts the rest."""

MOST_GROUPS = 12
"""Alternatives are looked for where at most so many groups of members, each with conflicts of its own, are in dispute."""


class ConflictGroup(Struct, frozen=True):
    """Members in conflict, directly or through others, as a set of places; who of them `stay`; whether that is proven best."""

    members: int
    stay: int
    proven: bool


def explain_conflicts(
    disputes: Sequence[ConflictGroup], names: Sequence[str], lite: int, adjacent: Sequence[int]
) -> str:
    """Why who stays: a few sentences. `lite` is the set of lite members, `adjacent` has each member's conflicts."""
    if not disputes:
        return "No two members are in conflict, so all stay."
    texts = [_dispute_in_words(dispute, names, lite, adjacent) for dispute in disputes[:SHOWN_DISPUTES]]
    rest = disputes[SHOWN_DISPUTES:]
    if rest:
        gone = sum((dispute.members & ~dispute.stay).bit_count() for dispute in rest)
        texts.append(f"{len(rest)} more disputes are settled likewise; they cost {_members(gone)}.")
    if not all(dispute.proven for dispute in disputes):
        texts.append("The search was cut short, so there may be a better choice than this best one found.")
    return " ".join(texts)


def alternatives_of(dispute: ConflictGroup, lite: int, adjacent: Sequence[int]) -> list[int] | None:
    """Return the other choices that keep as many data members and as many members, one more than shown at most.

    None where the dispute is too large to look for them.
    """
    groups: dict[int, int] = {}  # members with the same conflicts stay or go together in every best choice
    for place in vertices_of(dispute.members):
        groups[adjacent[place]] = groups.get(adjacent[place], 0) | 1 << place
    if len(groups) > MOST_GROUPS:
        return None
    in_order = list(groups.items())
    found: list[int] = []

    def size(chosen: int) -> tuple[int, int]:
        return (chosen & ~lite).bit_count(), chosen.bit_count()

    def extend(index: int, chosen: int, free: int) -> None:
        if len(found) > SHOWN_ALTERNATIVES or size(chosen | free) < size(dispute.stay):
            return
        if index == len(in_order):
            if chosen != dispute.stay:
                found.append(chosen)
            return
        around, together = in_order[index]
        if together & free:
            extend(index + 1, chosen | together, free & ~around & ~together)
        extend(index + 1, chosen, free & ~together)

    extend(0, 0, dispute.members)
    return found


def _dispute_in_words(dispute: ConflictGroup, names: Sequence[str], lite: int, adjacent: Sequence[int]) -> str:
    def named(chosen: int) -> str:
        return shortened(names[place] for place in vertices_of(chosen))

    gone_by_reason: dict[int, int] = {}
    for place in vertices_of(dispute.members & ~dispute.stay):
        reason = adjacent[place] & dispute.stay
        gone_by_reason[reason] = gone_by_reason.get(reason, 0) | 1 << place
    sentences = [
        f"{named(gone)} {'goes: it is' if gone.bit_count() == 1 else 'go: they are'} in conflict with {named(reason)}."
        for reason, gone in list(gone_by_reason.items())[:SHOWN_REASONS]
    ]
    if more := sum(gone.bit_count() for gone in list(gone_by_reason.values())[SHOWN_REASONS:]):
        sentences.append(f"{more} more {'member goes' if more == 1 else 'members go'} likewise.")
    equals = alternatives_of(dispute, lite, adjacent) if dispute.proven else None
    if equals is None:
        sentences.append("Whether another choice keeps as many was not looked for.")
    elif not equals:
        sentences.append("Any other choice keeps fewer data members or fewer members.")
    else:
        swaps = [
            f"{named(other & ~dispute.stay)} in place of {named(dispute.stay & ~other)}"
            for other in equals[:SHOWN_ALTERNATIVES]
        ]
        if len(equals) > SHOWN_ALTERNATIVES:
            swaps.append("others")
        sentences.append(f"As many would stay with {', or '.join(swaps)}; the choice falls on the older.")
    return " ".join(sentences)


def shortened(names: Iterable[str]) -> str:
    """Return the names in a row, the first few of them if they are many."""
    listed = list(names)
    more = len(listed) - SHOWN_NAMES
    return ", ".join(listed[:SHOWN_NAMES]) + (f" and {more} more" if more > 0 else "")


def _members(count: int) -> str:
    return f"{count} member{'' if count == 1 else 's'}"
