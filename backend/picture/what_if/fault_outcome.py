"""Which clusters come of a network fault, if nothing else happens: computed by the rules of the core.

Who has no link to the master that works both ways is removed at the heartbeat timeout, and the oldest of those claims mastership.
What the slaves report of one another is settled by the core's own decision (seed 001), and whoever that removes goes on after
those. In the end clusters merge whose members all reach one another (seed 002). Tests compare this with simulated runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

from quarterdeck.backend.core.membership.partial_disconnection.conflict_graph import Candidate, resolve_conflicts
from quarterdeck.backend.core.membership.partial_disconnection.shrinking_graph import vertices_of
from quarterdeck.backend.picture.what_if.disconnection_decision import PREVIEW_BUDGET
from quarterdeck.backend.picture.what_if.reachability import Reachability

MOST_MERGING = 40
"""Whether clusters merge is predicted for so many at most."""


class ClusterMembers(NamedTuple):
    """One cluster as it stands: its members in order of age, the master first, as places in a `Reachability`; who of
    them is lite.
    """

    members: tuple[int, ...]
    lite: int = 0


@dataclass(frozen=True, slots=True)
class Outcome:
    """The clusters that result, each led by its first member; in the order in which they come about."""

    clusters: tuple[tuple[int, ...], ...]
    exact: bool
    """Whether every decision on the way was searched to its end."""
    undecided: int
    """Members, as a set, whose clusters could merge with one or with another: which is quicker is not predicted."""


def outcome(
    reachability: Reachability,
    clusters: Sequence[ClusterMembers],
    silent: int,
    address_rank: Sequence[int],
    *,
    settles: bool,
) -> Outcome:
    """What `clusters` become. The `silent` run no more or stand still, so they make no cluster of their own.

    `address_rank` has each member's place in the order of addresses, which decides between clusters of equal size. `settles`
    tells whether masters settle what their slaves report of one another; else slaves that lose one another both stay.
    """
    lite = 0
    for standing in clusters:
        lite |= standing.lite
    formed: list[tuple[int, ...]] = []
    exact = True
    for standing in clusters:
        parts, proven = _fall_apart(
            reachability, [one for one in standing.members if not silent >> one & 1], lite, settles
        )
        formed += parts
        exact = exact and proven

    def weight(cluster: Sequence[int]) -> tuple[int, int, int]:
        """Of two clusters the other one merges into that of the greater weight (seed 002; design 9.3)."""
        return sum(not lite >> place & 1 for place in cluster), len(cluster), -address_rank[cluster[0]]

    merged, undecided = _merge(reachability, formed, weight)
    return Outcome(tuple(merged), exact, undecided)


def _fall_apart(
    reachability: Reachability, members: Sequence[int], lite: int, settles: bool
) -> tuple[list[tuple[int, ...]], bool]:
    """The clusters that one becomes, before any of them merge: the master's, of those cut off from it, of those it removes."""
    found: list[tuple[int, ...]] = []
    exact = True
    ahead = [list(members)]
    while ahead:
        members = ahead.pop()
        if not members:
            continue
        lost = reachability.unlinked_from(members[0])
        reached = [one for one in members if not lost >> one & 1]
        staying, proven = _settled(reachability, reached, lite) if settles else (reached, True)
        exact = exact and proven
        found.append(tuple(staying))
        stay = set(staying)
        ahead.append([one for one in reached if one not in stay])
        ahead.append([one for one in members if lost >> one & 1])
    return found, exact


def _settled(reachability: Reachability, members: Sequence[int], lite: int) -> tuple[list[int], bool]:
    """Who stays of those who reach the master, by the master's own decision."""
    among = sum(1 << one for one in members[1:])
    names = {one: str(one) for one in members}
    conflicts = [
        (names[one], names[other])
        for one in members[1:]
        for other in vertices_of(reachability.unlinked_from(one) & among & ~((1 << one) - 1))
    ]
    if not conflicts:
        return list(members), True
    settlement = resolve_conflicts(
        [Candidate(names[one], bool(lite >> one & 1)) for one in members], conflicts, work_budget=PREVIEW_BUDGET
    )
    return [int(name) for name in settlement.keep], settlement.exact


def _merge(
    reachability: Reachability,
    formed: Sequence[tuple[int, ...]],
    weight: Callable[[Sequence[int]], tuple[int, int, int]],
) -> tuple[list[tuple[int, ...]], int]:
    """Merge, two by two, clusters whose members all reach one another, the greatest union first; and whose merges are open."""
    clusters = list(formed)
    if len(clusters) > MOST_MERGING:
        return clusters, sum(1 << place for cluster in clusters for place in cluster)
    undecided = 0
    while possible := [(one, other) for one, other in combinations(clusters, 2) if _reach(reachability, one, other)]:
        pair = max(possible, key=lambda pair: len(pair[0]) + len(pair[1]))
        for rival in possible:
            apart = [cluster for cluster in (*pair, *rival) if (cluster in pair) != (cluster in rival)]
            if len(apart) == 2 and not _reach(reachability, *apart):  # whoever is first keeps the other one out
                undecided |= sum(1 << place for cluster in {*pair, *rival} for place in cluster)
        winner, loser = sorted(pair, key=weight, reverse=True)
        clusters = [winner + loser if cluster is winner else cluster for cluster in clusters if cluster is not loser]
    return clusters, undecided


def _reach(reachability: Reachability, one: Sequence[int], other: Sequence[int]) -> bool:
    others = sum(1 << place for place in other)
    return not any(reachability.unlinked_from(place) & others for place in one)
