"""Good independent sets quickly, without a proof: two greedy ones, and a search by swaps that begins with any.

The search is a tabu search by swaps, as Jin and Hao describe it. Its draws come from a fixed sequence: equal input, equal answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from quarterdeck.backend.core.membership.partial_disconnection.shrinking_graph import vertices_of

STEP_VISITS = 8
"""What one step costs, in vertex visits of a branch and bound that takes the same time."""

STEPS_BETWEEN_LOOKS = 64
"""After so many steps the search asks whether it must stop."""

SHORTEST_TABU, LONGEST_TABU = 7, 31
"""Steps for which a vertex that was pushed out stays out."""

STEPS_WITHOUT_GAIN = 256
"""After so many steps without anything better a vertex is chosen against the odds."""


class Budget(Protocol):
    """What is spent from."""

    def spend(self, visits: int) -> None:
        """Spend as much as it costs to look at so many vertices."""

    def is_spent(self) -> bool:
        """Whether nothing is left."""


def greedy(adjacent: Sequence[int], weight: Sequence[int], budget: Budget) -> tuple[int, int]:
    """Two sets to begin with: always the heaviest that is left; and always the heaviest for the neighbours that it costs."""
    budget.spend(len(adjacent))
    by_cost, left = 0, (1 << len(adjacent)) - 1
    while left:
        budget.spend(left.bit_count())
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

    def run(self, steps: int, budget: Budget) -> None:
        stale = 0
        for step in range(steps):
            if step % STEPS_BETWEEN_LOOKS == 0:
                if budget.is_spent():
                    return
                budget.spend(STEP_VISITS * min(STEPS_BETWEEN_LOOKS, steps - step))
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
