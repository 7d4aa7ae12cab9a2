"""Who stays when members cannot reach one another (seed 001, Deciding on a New Optimal Cluster Member List; design 9.5).

The greatest set of members without a conflict between any two. The document looks for a maximum clique among the connections;
the same set is a maximum independent set among the conflicts, which are few.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct

WORK_BUDGET = 2_000_000
"""Vertex visits after which the search is cut short. A count, not a time: equal input, equal answer."""


class Candidate(Struct, frozen=True):
    """One member of the list, in any form of name that sorts."""

    name: str
    lite: bool = False


class Settlement(Struct, frozen=True):
    """Who stays and who goes, both in order of age. `exact` when nothing better exists; else the best that was found."""

    keep: tuple[str, ...]
    remove: tuple[str, ...]
    exact: bool
    work: int
    """Vertex visits spent."""
    why: str
    """In words: the conflicts that force it, and what the alternatives of equal size are."""


def settle(
    members: Sequence[Candidate],
    conflicts: Iterable[tuple[str, str]],
    *,
    work_budget: int = WORK_BUDGET,
    out_of_time: Callable[[], bool] | None = None,
) -> Settlement:
    """Who of `members` (in order of age, the master first) stays so that no two of those who stay are in conflict.

    A conflict counts both ways, whoever reported it; one that names the master or a stranger counts not at all. Most data
    members, then most members, then the oldest (compared lexicographically from the oldest on). `out_of_time` is the outer guard of a
    live member; a simulated one goes by the budget alone.
    """
    raise NotImplementedError
