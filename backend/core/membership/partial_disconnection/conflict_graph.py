"""Who stays when members cannot reach one another.

See Partial Member Disconnection Resolution, Deciding on a New Optimal Cluster Member List; Decisions: Equal cliques.

The greatest set of members without a conflict between any two. The document looks for a maximum clique among the connections;
the same set is a maximum independent set among the conflicts, which are few.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

from quarterdeck.backend.core.membership.partial_disconnection.conflict_explanation import (
    ConflictGroup,
    explain_conflicts,
)
from quarterdeck.backend.core.membership.partial_disconnection.independent_set import (
    Effort,
    components,
    heaviest_independent_set,
)
from quarterdeck.backend.core.membership.partial_disconnection.shrinking_graph import vertices_of

WORK_BUDGET = 600_000
"""Vertex visits after which the search is cut short; one takes about 0.5 µs. A count, not a time: equal input, equal answer."""


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
    members: Sequence[CliqueCandidate],
    conflicts: Iterable[tuple[str, str]],
    *,
    work_budget: int = WORK_BUDGET,
    out_of_time: Callable[[], bool] | None = None,
) -> ConflictResolution:
    """Who of `members` (in order of age, the master first) stays so that no two of those who stay are in conflict.

    A conflict counts both ways, whoever reported it; one that names the master or a stranger counts not at all. Most data
    members, then most members, then the oldest (compared lexicographically from the oldest on). There always is an answer, at
    least a greedy one. `out_of_time` is the outer guard of a live member, asked now and then; a simulated one goes by the
    budget alone. Raises ValueError when two members have the same name.
    """
    adjacent = _conflict_sets(members, conflicts)
    disputed = sum(1 << place for place, around in enumerate(adjacent) if around)
    parts = components(adjacent, disputed)
    effort = Effort(0, out_of_time)
    removed, exact = 0, True
    settled: dict[int, ConflictGroup] = {}
    # Small disputes first: what they leave of the budget is shared by the others.
    for left, part in zip(range(len(parts), 0, -1), sorted(parts, key=lambda one: (one.bit_count(), one)), strict=True):
        effort.limit = effort.work + max(0, work_budget - effort.work) // left
        stay, proven = _settle_part(list(vertices_of(part)), members, adjacent, effort)
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


def _conflict_sets(members: Sequence[CliqueCandidate], conflicts: Iterable[tuple[str, str]]) -> list[int]:
    """For each member, by its place, the set of those with whom it is in conflict."""
    place_of = {member.name: place for place, member in enumerate(members)}
    if len(place_of) < len(members):
        raise ValueError("two members have the same name; each must be told apart by its own")
    adjacent, bit_of = [0] * len(members), [1 << place for place in range(len(members))]
    for reporter, suspect in conflicts:
        one, other = place_of.get(reporter, 0), place_of.get(suspect, 0)  # strangers count as little as the master
        if one and other and one != other:
            adjacent[one] |= bit_of[other]
            adjacent[other] |= bit_of[one]
    return adjacent


def _settle_part(
    places: list[int], members: Sequence[CliqueCandidate], adjacent: Sequence[int], effort: Effort
) -> tuple[int, bool]:
    """Who stays of the members at `places`, who are in conflict with nobody else; and whether that is proven.

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
    chosen, proven = heaviest_independent_set(relabelled, [weight_at[place] for place in order], effort)
    return sum(1 << order[vertex] for vertex in vertices_of(chosen)), proven
