"""The heaviest independent set of a small graph: a greedy start, then branch and bound over a graph that shrinks by itself.

A set of vertices is an integer with a bit for each. Weights are integers of any size, so a caller can put a whole order of
preference into one number. Work is counted in vertex visits and never timed: equal input, equal answer. The search is a
generator that stops after each slice of its work, so that its caller can do other work in between.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import TypeVar

from quarterdeck.backend.core.membership.partial_disconnection.shrinking_graph import ShrinkingGraph, vertices_of

Result = TypeVar("Result")
Slices = Generator[None, None, Result]
"""A computation in slices: it yields after each of them, and returns its result."""

SLICE_VISITS = 20_000
"""Vertex visits in one slice: about 10 ms."""

QUICK_VISITS_PER_VERTEX = 40
"""What a first attempt may cost. It is enough for every graph that shrinks away, and then no greedy start is needed."""

DEEPEST_BRANCH = 200
"""Branches within one another. Deeper ones are cut: Python's own stack is not endless."""


class Effort:
    """The vertex visits spent of a budget."""

    def __init__(self, budget: int) -> None:
        self.work = 0
        self.limit = budget
        self.over = False
        """Set by a caller that wants the best set found so far."""
        self._slice_ends = SLICE_VISITS

    def spend(self, visits: int) -> None:
        self.work += visits

    def is_spent(self) -> bool:
        return self.over or self.work >= self.limit

    def ends_slice(self) -> bool:
        """Return whether the present slice is spent. The next one begins then."""
        if self.work < self._slice_ends:
            return False
        self._slice_ends = self.work + SLICE_VISITS
        return True


def heaviest_independent_set(
    adjacent: Sequence[int], weight: Sequence[int], effort: Effort
) -> Slices[tuple[int, bool]]:
    """Return the set of vertices, no two of them adjacent, that weighs most; and whether that is proven.

    `adjacent` is symmetric and without loops, all weights are positive. Spends up to `effort.limit` and a little more: two
    greedy answers are always found, and what is returned is never lighter than they are.
    """
    everything, limit = (1 << len(adjacent)) - 1, effort.limit
    effort.limit = min(limit, effort.work + QUICK_VISITS_PER_VERTEX * len(adjacent))
    quick = Branching(effort)
    found = yield from quick.beat(ShrinkingGraph(everything, adjacent, weight), 0)
    effort.limit = limit
    if not quick.cut:
        return (found[1] if found is not None else 0), True
    by_cost = yield from greedy_by_cost(adjacent, weight, effort)
    starts = (filled(adjacent, weight, chosen) for chosen in (0, by_cost, found[1] if found is not None else 0))
    floor, best = max((sum(weight[vertex] for vertex in vertices_of(start)), start) for start in starts)
    thorough = Branching(effort)
    found = yield from thorough.beat(ShrinkingGraph(everything, adjacent, weight), floor)
    return (best if found is None else filled(adjacent, weight, found[1])), not thorough.cut


def greedy_by_cost(adjacent: Sequence[int], weight: Sequence[int], effort: Effort) -> Slices[int]:
    """Return the set to which the vertex that is heaviest for the neighbours that it costs was added, until none was left."""
    chosen, left = 0, (1 << len(adjacent)) - 1
    while left:
        if effort.ends_slice():
            yield
        effort.spend(left.bit_count())
        vertex = max(vertices_of(left), key=lambda one: weight[one] // (1 + (adjacent[one] & left).bit_count()))
        chosen |= 1 << vertex
        left &= ~(adjacent[vertex] | 1 << vertex)
    return chosen


def filled(adjacent: Sequence[int], weight: Sequence[int], chosen: int) -> int:
    """Extend `chosen` greedily, the heaviest vertex first, until no vertex can be added."""
    for vertex in sorted(range(len(weight)), key=weight.__getitem__, reverse=True):
        if not (adjacent[vertex] | 1 << vertex) & chosen:
            chosen |= 1 << vertex
    return chosen


class Branching:
    """One attempt at branch and bound. `cut` says that the effort was spent before everything was looked at."""

    def __init__(self, effort: Effort) -> None:
        self.cut = False
        self._effort = effort

    def beat(self, graph: ShrinkingGraph, floor: int, depth: int = 0) -> Slices[tuple[int, int] | None]:
        """Return the heaviest set of `graph` as (weight, set), if one is heavier than `floor`. Uses up `graph`."""
        best: tuple[int, int] | None = None
        while True:
            if self._effort.ends_slice():
                yield
            if self._must_stop(depth):
                return best
            before = graph.visits
            graph.shrink()
            self._effort.spend(graph.visits - before)
            if not graph.alive:
                if graph.gained > floor:
                    best = graph.gained, graph.rebuilt(0)
                return best
            if graph.gained + self._bound(graph, graph.alive) <= floor:
                return best
            self._effort.spend(graph.alive.bit_count())
            parts = components(graph.adjacent, graph.alive)
            if len(parts) > 1:
                found = yield from self._beat_by_parts(graph, parts, floor, depth)
                return best if found is None else found
            vertex = self._busiest(graph)
            weight = graph.gained + graph.weight[vertex]
            without = graph.alive & ~graph.adjacent[vertex] & ~(1 << vertex)
            found = yield from self.beat(graph.part(without), floor - weight, depth + 1)
            if found is not None:
                floor = weight + found[0]
                best = floor, graph.rebuilt(found[1] | 1 << vertex)
            graph.drop(vertex)

    def _must_stop(self, depth: int) -> bool:
        self.cut = self.cut or depth > DEEPEST_BRANCH or self._effort.is_spent()
        return self.cut

    def _beat_by_parts(
        self, graph: ShrinkingGraph, parts: list[int], floor: int, depth: int
    ) -> Slices[tuple[int, int] | None]:
        """Search parts without a link between them on their own, the small ones first."""
        parts.sort(key=lambda part: (part.bit_count(), part))
        bounds = [self._bound(graph, part) for part in parts]
        weight, chosen, ahead = graph.gained, 0, sum(bounds)
        for part, bound in zip(parts, bounds, strict=True):
            ahead -= bound
            found = yield from self.beat(graph.part(part), floor - weight - ahead, depth + 1)
            if found is None:
                return None
            weight += found[0]
            chosen |= found[1]
        return weight, graph.rebuilt(chosen)

    def _bound(self, graph: ShrinkingGraph, among: int) -> int:
        """No set within `among` is heavier: of each clique of a cover at most the heaviest vertex can be chosen."""
        adjacent, weight, total = graph.adjacent, graph.weight, 0
        self._effort.spend(among.bit_count())
        while among:
            low = among & -among
            vertex = low.bit_length() - 1
            among ^= low
            heaviest, common = weight[vertex], among & adjacent[vertex]
            while common:
                low = common & -common
                vertex = low.bit_length() - 1
                among ^= low
                common &= adjacent[vertex]
                if weight[vertex] > heaviest:
                    heaviest = weight[vertex]
            total += heaviest
        return total

    def _busiest(self, graph: ShrinkingGraph) -> int:
        """Return the vertex with most neighbours: choosing it, or not, simplifies most."""
        alive = left = graph.alive
        adjacent, busiest, most = graph.adjacent, 0, -1
        self._effort.spend(alive.bit_count())
        while left:
            low = left & -left
            left ^= low
            vertex = low.bit_length() - 1
            if (neighbours := (adjacent[vertex] & alive).bit_count()) > most:
                busiest, most = vertex, neighbours
        return busiest


def components(adjacent: Sequence[int], among: int) -> list[int]:
    """Return the connected components of the vertices `among`, that with the lowest vertex first."""
    found = []
    while among:
        part = frontier = among & -among
        while frontier:
            reached = 0
            while frontier:
                low = frontier & -frontier
                frontier ^= low
                reached |= adjacent[low.bit_length() - 1]
            frontier = reached & among & ~part
            part |= frontier
        found.append(part)
        among &= ~part
    return found
