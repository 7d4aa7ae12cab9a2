"""The heaviest independent set of a small graph: branch and bound over a graph that shrinks by itself, within a budget.

A set of vertices is an integer with a bit for each. Weights are integers of any size, so a caller can put a whole order of
preference into one number. Work is counted in vertex visits and never timed: equal input, equal answer.

The long attempt begins with a good set, which is found without a proof: by greed, then by a tabu search by swaps, as Jin and Hao
describe it. Its draws come from a fixed sequence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from quarterdeck.backend.core.membership.partial_disconnection.shrinking_graph import ShrinkingGraph, vertices_of

STEP_VISITS = 8
"""What one step costs, in vertex visits of a branch and bound that takes the same time."""

STEPS_BETWEEN_LOOKS = 64
"""After so many steps the search asks whether it must stop."""

SHORTEST_TABU, LONGEST_TABU = 7, 31
"""Steps for which a vertex that was pushed out stays out."""

STEPS_WITHOUT_GAIN = 256
"""After so many steps without anything better a vertex is chosen against the odds."""


def greedy(adjacent: Sequence[int], weight: Sequence[int], effort: Effort) -> tuple[int, int]:
    """Two sets to begin with: always the heaviest that is left; and always the heaviest for the neighbours that it costs."""
    effort.spend(len(adjacent))
    by_cost, left = 0, (1 << len(adjacent)) - 1
    while left:
        effort.spend(left.bit_count())
        vertex = max(vertices_of(left), key=lambda one: weight[one] // (1 + (adjacent[one] & left).bit_count()))
        by_cost |= 1 << vertex
        left &= ~(adjacent[vertex] | 1 << vertex)
    return filled(adjacent, weight, 0), by_cost


def filled(adjacent: Sequence[int], weight: Sequence[int], chosen: int) -> int:
    """Return an independent set with what can be added to it, always the heaviest first."""
    for vertex in sorted(range(len(weight)), key=weight.__getitem__, reverse=True):
        if not (adjacent[vertex] | 1 << vertex) & chosen:
            chosen |= 1 << vertex
    return chosen


class LocalSearch:
    """A walk over independent sets; `best` is the heaviest seen.

    How many chosen neighbours each vertex has is kept for all vertices at once: bit v of the planes together is the count of
    vertex v, in binary. So a move costs a few operations on whole sets, however many neighbours there are.
    """

    def __init__(self, adjacent: Sequence[int], weight: Sequence[int], start: int) -> None:
        self._adjacent, self._weight = adjacent, weight
        self._everything = (1 << len(adjacent)) - 1
        self._chosen = self._chosen_weight = self._tabu = self._draws = 0
        self._planes = [0] * (1 + max((around.bit_count() for around in adjacent), default=0).bit_length())
        self._leaving_tabu = [0] * (LONGEST_TABU + 1)
        for vertex in vertices_of(start):
            self._add(vertex)
        self.best, self.best_weight = start, self._chosen_weight

    def run(self, steps: int, effort: Effort) -> None:
        stale = 0
        for step in range(steps):
            if step % STEPS_BETWEEN_LOOKS == 0:
                if effort.is_spent():
                    return
                effort.spend(STEP_VISITS * min(STEPS_BETWEEN_LOOKS, steps - step))
            self._step(step, stale > 0 and stale % STEPS_WITHOUT_GAIN == 0)
            stale += 1
            if self._chosen_weight > self.best_weight:
                self.best, self.best_weight, stale = self._chosen, self._chosen_weight, 0

    def _step(self, step: int, impatient: bool) -> None:
        """Choose a vertex that costs nothing, or else one that costs one other, or else any."""
        slot = step % len(self._leaving_tabu)
        self._tabu &= ~self._leaving_tabu[slot]
        self._leaving_tabu[slot] = 0
        more = 0
        for plane in self._planes[1:]:
            more |= plane
        allowed = self._everything & ~self._chosen & ~self._tabu
        free = allowed & ~more & ~self._planes[0]
        swaps = allowed & ~more & self._planes[0]
        if free:
            self._add(self._drawn(free))
        elif swaps and not impatient:
            vertex = self._drawn(swaps)
            if 2 * self._weight[vertex] > self._weight[(self._adjacent[vertex] & self._chosen).bit_length() - 1]:
                self._push_in(vertex, step, swaps.bit_count())
        elif others := self._everything & ~self._chosen:
            self._push_in(self._drawn(others), step, 0)

    def _push_in(self, vertex: int, step: int, choices: int) -> None:
        """Choose `vertex`; its chosen neighbours go, and stay out for a while."""
        gone = self._adjacent[vertex] & self._chosen
        for neighbour in vertices_of(gone):
            self._remove(neighbour)
        self._add(vertex)
        tabu_steps = SHORTEST_TABU + self._draw(min(choices, LONGEST_TABU - SHORTEST_TABU) + 1)
        self._leaving_tabu[(step + tabu_steps) % len(self._leaving_tabu)] |= gone
        self._tabu |= gone

    def _add(self, vertex: int) -> None:
        self._chosen |= 1 << vertex
        self._chosen_weight += self._weight[vertex]
        carry, planes, place = self._adjacent[vertex], self._planes, 0
        while carry:
            plane = planes[place]
            planes[place] = plane ^ carry
            carry &= plane
            place += 1

    def _remove(self, vertex: int) -> None:
        self._chosen ^= 1 << vertex
        self._chosen_weight -= self._weight[vertex]
        borrow, planes, place = self._adjacent[vertex], self._planes, 0
        while borrow:
            planes[place] ^= borrow
            borrow &= planes[place]
            place += 1

    def _drawn(self, among: int) -> int:
        shifted = among >> self._draw(among.bit_length())
        skipped = among.bit_length() - shifted.bit_length()
        return (shifted & -shifted).bit_length() - 1 + skipped

    def _draw(self, below: int) -> int:
        """Return the next number of the sequence (Knuth's linear congruential generator), cut to size."""
        self._draws = (self._draws * 6364136223846793005 + 1442695040888963407) & 0xFFFF_FFFF_FFFF_FFFF
        return (self._draws >> 33) % below


QUICK_VISITS_PER_VERTEX = 40
"""What a first attempt may cost. It is enough for all that shrinks away, and then no local search is needed."""

SEARCH_STEPS_PER_VERTEX = 10
"""Steps of local search per vertex before the long attempt, to begin with a good answer."""

RESERVE = 4
"""One part in so many of the budget is kept for local search, if the long attempt is cut."""

MOST_SEARCH_STEPS = 1_000_000
"""Steps of local search after the long attempt, at most."""

DEEPEST_BRANCH = 200
"""Branches within one another. Deeper ones are cut: Python's own stack is not endless."""


class Effort:
    """What has been spent of a budget of vertex visits."""

    def __init__(self, budget: int, out_of_time: Callable[[], bool] | None = None) -> None:
        self.work = 0
        self.limit = budget
        self._out_of_time = out_of_time
        self._over = False

    def spend(self, visits: int) -> None:
        self.work += visits

    def is_spent(self) -> bool:
        """Whether to stop, by the present limit or because time is over."""
        if not self._over and self._out_of_time is not None:
            self._over = self._out_of_time()
        return self._over or self.work >= self.limit


def heaviest_independent_set(adjacent: Sequence[int], weight: Sequence[int], effort: Effort) -> tuple[int, bool]:
    """Return the set of vertices, no two of them adjacent, that weighs most; and whether that is proven.

    `adjacent` is symmetric and without loops, all weights are positive. Spends up to `effort.limit` and a little more: two
    greedy answers are always found, and what is returned is never lighter than they are.
    """
    size, limit = len(adjacent), effort.limit
    everything = (1 << size) - 1

    def weight_of(chosen: int) -> int:
        return sum(weight[vertex] for vertex in vertices_of(chosen))

    def attempt(until: int, best: int) -> tuple[int, bool]:
        effort.limit = min(limit, until)
        branching = Branching(effort)
        found = branching.beat(ShrinkingGraph(everything, adjacent, weight), weight_of(best))
        return (best if found is None else found[1]), not branching.cut

    best, proven = attempt(effort.work + QUICK_VISITS_PER_VERTEX * size, 0)
    if not proven:
        start = max((best, *greedy(adjacent, weight, effort)), key=weight_of)
        effort.limit = limit
        search = LocalSearch(adjacent, weight, start)
        search.run(SEARCH_STEPS_PER_VERTEX * size, effort)
        best, proven = attempt(limit - (limit - effort.work) // RESERVE, search.best)
        if not proven:
            effort.limit = limit
            search = LocalSearch(adjacent, weight, best)
            # A search without a limit is cut only where it is too deep: then local search is to end by itself, too.
            search.run(min(max(0, limit - effort.work) // STEP_VISITS, MOST_SEARCH_STEPS), effort)
            best = filled(adjacent, weight, search.best)
    effort.limit = limit
    return best, proven


class Branching:
    """One attempt at branch and bound. `cut` says that the effort was spent before everything was looked at."""

    def __init__(self, effort: Effort) -> None:
        self.cut = False
        self._effort = effort

    def beat(self, graph: ShrinkingGraph, floor: int, depth: int = 0) -> tuple[int, int] | None:
        """Return the heaviest set of `graph` as (weight, set), if one is heavier than `floor`. Uses up `graph`."""
        best: tuple[int, int] | None = None
        while not self._must_stop(depth):
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
                found = self._beat_by_parts(graph, parts, floor, depth)
                return best if found is None else found
            vertex = self._busiest(graph)
            weight = graph.gained + graph.weight[vertex]
            without = graph.alive & ~graph.adjacent[vertex] & ~(1 << vertex)
            found = self.beat(graph.part(without), floor - weight, depth + 1)
            if found is not None:
                floor = weight + found[0]
                best = floor, graph.rebuilt(found[1] | 1 << vertex)
            graph.drop(vertex)
        return best

    def _must_stop(self, depth: int) -> bool:
        self.cut = self.cut or depth > DEEPEST_BRANCH or self._effort.is_spent()
        return self.cut

    def _beat_by_parts(self, graph: ShrinkingGraph, parts: list[int], floor: int, depth: int) -> tuple[int, int] | None:
        """Parts without a link between them are searched on their own, the small ones first."""
        parts.sort(key=lambda part: (part.bit_count(), part))
        bounds = [self._bound(graph, part) for part in parts]
        weight, chosen, ahead = graph.gained, 0, sum(bounds)
        for part, bound in zip(parts, bounds, strict=True):
            ahead -= bound
            found = self.beat(graph.part(part), floor - weight - ahead, depth + 1)
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
