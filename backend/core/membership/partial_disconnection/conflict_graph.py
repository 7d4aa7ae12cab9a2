"""Who stays when members cannot reach one another.

See Partial Member Disconnection Resolution, Deciding on a New Optimal Cluster Member List; Decisions: Equal cliques.

The greatest set of members without a conflict between any two. The document looks for a maximum clique among the connections;
the same set is a maximum independent set among the conflicts, which are few.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from quarterdeck.backend.core.membership.partial_disconnection.independent_set import (
    Effort,
    Slices,
    components,
    heaviest_independent_set,
)
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
        texts.append(
            f"{len(rest)} more disputes are settled likewise; they cost {gone} member{'' if gone == 1 else 's'}."
        )
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
        stay, shown = dispute.stay, equals[:SHOWN_ALTERNATIVES]
        swaps = [f"{named(other & ~stay)} in place of {named(stay & ~other)}" for other in shown]
        if len(equals) > SHOWN_ALTERNATIVES:
            swaps.append("others")
        sentences.append(f"As many would stay with {', or '.join(swaps)}; the choice falls on the older.")
    return " ".join(sentences)


def shortened(names: Iterable[str]) -> str:
    """Return the names in a row, the first few of them if they are many."""
    listed = list(names)
    more = len(listed) - SHOWN_NAMES
    return ", ".join(listed[:SHOWN_NAMES]) + (f" and {more} more" if more > 0 else "")


VISITS_PER_SECOND = 2_000_000
"""How much work stands for a second of the time that is set. Counted and not timed: equal input, equal answer."""

UNLIMITED = 1 << 60


def visits_within(timeout_us: int) -> int:
    """Convert a timeout into a budget of vertex visits. 0 sets no limit, as in the product.

    See Partial Member Disconnection Resolution, Configuration: the timeout of the algorithm.
    """
    return timeout_us * VISITS_PER_SECOND // 1_000_000 or UNLIMITED


class CliqueCandidate(Struct, frozen=True):
    """One member of the list, in any form of name that sorts."""

    name: str
    lite: bool = False


class ConflictResolution(Struct, frozen=True):
    """Who stays and who goes, both in order of age. `exact` when nothing better exists; else the best that was found."""

    keep: tuple[str, ...]
    remove: tuple[str, ...]
    exact: bool
    work: int
    """Vertex visits spent."""
    why: str
    """In words: the conflicts that force it, and what the alternatives of equal size are."""


def resolve_conflicts(
    members: Sequence[CliqueCandidate], conflicts: Iterable[tuple[str, str]], *, work_budget: int = UNLIMITED
) -> ConflictResolution:
    """Decide at once which of `members` stay: see `ConflictSearch`."""
    search = ConflictSearch(members, conflicts, work_budget=work_budget)
    while (resolution := search.search_on()) is None:
        pass
    return resolution


class ConflictSearch:
    """The search for those of `members` (in order of age, the master first) who stay, so that no two of them are in conflict.

    A conflict counts both ways, whichever side reported it; one that names the master or a stranger counts not at all. Most data
    members, then most members, then the oldest (compared lexicographically from the oldest on). There always is an answer, at
    least a greedy one.
    """

    def __init__(
        self,
        members: Sequence[CliqueCandidate],
        conflicts: Iterable[tuple[str, str]],
        *,
        work_budget: int = UNLIMITED,
    ) -> None:
        """Raise ValueError when two members have the same name."""
        self._effort = Effort(0)
        self._slices = _resolve(members, conflict_sets(members, conflicts), work_budget, self._effort)

    def search_on(self) -> ConflictResolution | None:
        """Spend one slice of work. Return the resolution if the search has ended."""
        try:
            next(self._slices)
        except StopIteration as ended:
            found: ConflictResolution = ended.value
            return found
        return None

    def stop(self) -> ConflictResolution:
        """End the search with the best choice found so far."""
        self._effort.over = True
        while (resolution := self.search_on()) is None:
            pass
        return resolution


def _resolve(
    members: Sequence[CliqueCandidate], adjacent: Sequence[int], work_budget: int, effort: Effort
) -> Slices[ConflictResolution]:
    disputed = sum(1 << place for place, around in enumerate(adjacent) if around)
    parts = components(adjacent, disputed)
    removed, exact = 0, True
    settled: dict[int, ConflictGroup] = {}
    # Small disputes first: what they leave of the budget is shared by the others.
    for left, part in zip(range(len(parts), 0, -1), sorted(parts, key=lambda one: (one.bit_count(), one)), strict=True):
        effort.limit = effort.work + max(0, work_budget - effort.work) // left
        stay, proven = yield from _settle_part(list(vertices_of(part)), members, adjacent, effort)
        removed |= part & ~stay
        exact = exact and proven
        settled[part] = ConflictGroup(part, stay, proven)
    names = [member.name for member in members]
    lite = sum(1 << place for place, member in enumerate(members) if member.lite)
    return ConflictResolution(
        keep=tuple(name for place, name in enumerate(names) if not removed >> place & 1),
        remove=tuple(names[place] for place in vertices_of(removed)),
        exact=exact,
        work=effort.work,
        why=explain_conflicts([settled[part] for part in parts], names, lite, adjacent),
    )


def conflict_sets(members: Sequence[CliqueCandidate], conflicts: Iterable[tuple[str, str]]) -> list[int]:
    """For each member, by its place, the set of those with whom it is in conflict."""
    place_of = {member.name: place for place, member in enumerate(members)}
    if len(place_of) < len(members):
        raise ValueError("two members have the same name; each needs a name of its own")
    adjacent, bit_of = [0] * len(members), [1 << place for place in range(len(members))]
    for reporter, suspect in conflicts:
        one, other = place_of.get(reporter, 0), place_of.get(suspect, 0)  # strangers count as little as the master
        if one and other and one != other:
            adjacent[one] |= bit_of[other]
            adjacent[other] |= bit_of[one]
    return adjacent


def _settle_part(
    places: list[int], members: Sequence[CliqueCandidate], adjacent: Sequence[int], effort: Effort
) -> Slices[tuple[int, bool]]:
    """Return who stays of the members at `places`, who are in conflict with no others; and whether that is proven.

    The whole order of choice is one number: from its high digits to its low ones the data members, the members, and a bit
    for each member, the oldest's the highest. No two sets have the same, so there is exactly one best.
    """
    size = len(places)
    weight_at = {
        place: (1 if members[place].lite else size + 2) << size | 1 << (size - 1 - age)
        for age, place in enumerate(places)
    }
    # The bound builds its cliques from the first vertex on, and is best when that has few neighbours.
    order = sorted(places, key=lambda place: (adjacent[place].bit_count(), place))
    bit_at = {place: 1 << vertex for vertex, place in enumerate(order)}
    relabelled = [sum(map(bit_at.__getitem__, vertices_of(adjacent[place]))) for place in order]
    effort.spend(sum(around.bit_count() for around in relabelled) // 2)
    chosen, proven = yield from heaviest_independent_set(relabelled, [weight_at[place] for place in order], effort)
    return sum(1 << order[vertex] for vertex in vertices_of(chosen)), proven
