"""A graph in search of its heaviest independent set, and the rules by which it shrinks without loss.

Every rule takes vertices away so that the heaviest set of what is left, rebuilt, is the heaviest set of the whole. The rules and
their names are those of the literature on branch and reduce (Akiba and Iwata; Lamm and others for weights).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

SMALL_DEGREE = 3
"""The rules that look at a vertex and its neighbours are tried up to so many neighbours."""

TrailStep = tuple[int, int, int]
"""How to rebuild a set: if it meets the first set, the second is added, otherwise the third."""


def vertices_of(chosen: int) -> Iterator[int]:
    """Yield the vertices of a set, the lowest first."""
    while chosen:
        low = chosen & -chosen
        yield low.bit_length() - 1
        chosen ^= low


class ShrinkingGraph:
    """The vertices still `alive`, their weights, what was `gained` by those decided upon, and the `visits` to vertices so far.

    `adjacent` may name vertices that are no more.
    """

    __slots__ = ("_trail", "adjacent", "alive", "gained", "visits", "weight")

    def __init__(self, alive: int, adjacent: Sequence[int], weight: Sequence[int]) -> None:
        self.alive = alive
        self.adjacent = list(adjacent)
        self.weight = list(weight)
        self.gained = 0
        self.visits = 0
        self._trail: list[TrailStep] = []

    def part(self, alive: int) -> ShrinkingGraph:
        """Return a graph of its own with these vertices of this one."""
        return ShrinkingGraph(alive, self.adjacent, self.weight)

    def drop(self, vertex: int) -> None:
        """Go on without `vertex`, as not chosen."""
        self.alive &= ~(1 << vertex)

    def rebuilt(self, chosen: int) -> int:
        """Return the set of the original graph that `chosen` stands for, which weighs at least what was promised."""
        for trigger, added, otherwise in reversed(self._trail):
            chosen |= added if chosen & trigger else otherwise
        return chosen

    def shrink(self) -> None:
        """Apply all rules until none applies."""
        changed = self.alive
        while changed:
            while changed := changed & self.alive:
                low = changed & -changed
                changed ^= low
                changed |= self._shrink_at(low.bit_length() - 1)
            changed = self._merge_twins()

    def _shrink_at(self, vertex: int) -> int:
        """Try the rules for a vertex with few neighbours. Returns the vertices whose surroundings changed."""
        around = self.adjacent[vertex] & self.alive
        degree = around.bit_count()
        self.visits += 1
        if degree > SMALL_DEGREE:
            return 0
        self.visits += degree
        own, adjacent, weight = self.weight[vertex], self.adjacent, self.weight
        left, total, outdone, is_clique = around, 0, 0, True
        while left:
            low = left & -left
            left ^= low
            neighbour = low.bit_length() - 1
            total += weight[neighbour]
            if around & ~adjacent[neighbour] != low:
                is_clique = False
            elif weight[neighbour] <= own:
                outdone |= low  # it excludes whatever `vertex` excludes, and weighs no more
        if total <= own:
            return self._choose(vertex, around)
        if is_clique:
            return self._choose_unless(vertex, around & ~outdone, outdone)
        if outdone:
            return self._remove(outdone)
        if degree == 2:
            return self._fold(vertex, around)
        return 0

    def _choose(self, vertex: int, around: int) -> int:
        """All neighbours together weigh no more."""
        self.gained += self.weight[vertex]
        self._trail.append((0, 0, 1 << vertex))
        return self._remove(around | 1 << vertex)

    def _choose_unless(self, vertex: int, heavier: int, outdone: int) -> int:
        """Choose `vertex`, or one of the `heavier` neighbours for what it weighs more. The neighbours are a clique."""
        own = self.weight[vertex]
        for neighbour in vertices_of(heavier):
            self.weight[neighbour] -= own
        self.gained += own
        self._trail.append((heavier, 0, 1 << vertex))
        return self._remove(outdone | 1 << vertex) | heavier

    def _fold(self, vertex: int, around: int) -> int:
        """Two neighbours without a link: both of them, or `vertex`, or the heavier of the two alone."""
        own, adjacent, weight = self.weight[vertex], self.adjacent, self.weight
        lighter, heavier = sorted(vertices_of(around), key=weight.__getitem__)
        if own < weight[lighter]:
            return 0
        self.gained += own
        if own >= weight[heavier]:  # then one of the two alone is never better than `vertex`
            self._trail.append((1 << heavier, 1 << lighter, 1 << vertex))
            weight[heavier] += weight[lighter] - own
            self.alive &= ~(1 << vertex | 1 << lighter)
            joined = heavier
        else:  # the lighter alone is never better: it comes only on top of the heavier
            self._trail.append((1 << heavier, 0, 1 << vertex))
            self._trail.append((1 << lighter, 1 << heavier, 0))
            weight[heavier] -= own
            self.alive &= ~(1 << vertex)
            joined = lighter
        beyond = (adjacent[heavier] | adjacent[lighter]) & self.alive
        for neighbour in vertices_of(beyond & ~adjacent[joined]):
            adjacent[neighbour] |= 1 << joined
        adjacent[joined] = beyond
        return beyond | around

    def _merge_twins(self) -> int:
        """Vertices with the same neighbours are one if not linked; if linked, only the heaviest counts."""
        alive, weight, changed = self.alive, self.weight, 0
        self.visits += alive.bit_count()
        seen: dict[int, int] = {}  # a vertex by its neighbours with and without itself; the two never coincide
        for vertex in vertices_of(alive):
            around = self.adjacent[vertex] & alive
            closed = around | 1 << vertex
            twin = seen.setdefault(around, vertex)
            rival = seen.setdefault(closed, vertex)
            if twin != vertex:
                weight[twin] += weight[vertex]
                self._trail.append((1 << twin, 1 << vertex, 0))
                self.alive ^= 1 << vertex
                changed |= closed | 1 << twin
            elif rival != vertex:
                worse = vertex if weight[vertex] <= weight[rival] else rival
                seen[closed] = vertex + rival - worse
                self.alive ^= 1 << worse
                changed |= around
        return changed

    def _remove(self, gone: int) -> int:
        """Remove these vertices. Return the neighbours of those gone."""
        self.alive &= ~gone
        touched = 0
        for vertex in vertices_of(gone):
            touched |= self.adjacent[vertex]
        return touched & self.alive
