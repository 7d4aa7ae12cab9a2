"""The order of a partition's migrations (Avoid Data Loss on Migration, 3.2.2 and 3.2.3; Hazelcast: migration planner).

The document's rules, taken in turn, lower the number of available replicas in some rows with a hole where another order
would not. So all orders of such steps are compared, and that one is taken which

1. loses a replica that the row has and the target counts on least often,
2. parks the fewest replicas, see `_straight_steps`; none, if the first can be had without,
3. gives the fewest replicas up on its way, and then takes the fewest steps,
4. and then has the hottest places filled as early as possible, and then the hottest places final as early as possible.

The last rule puts COPY and SHIFT UP first, as 3.2.3 asks: they fill a place, a MOVE does not. Every step but CLEAR brings a
place its final holder, who stays, so rows never come back and the search is over few of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from operator import ne
from typing import NamedTuple

from quarterdeck.backend.core.partitions.migration.migration import (
    NumberedStep,
    Numbers,
    applied,
    bring,
    clear,
    lowers,
    replicas,
)

Flags = tuple[bool, ...]
"""Something that is better not so, by replica index."""


def in_order(current: Numbers, target: Numbers) -> tuple[NumberedStep, ...]:
    """Return the steps from `current` to `target`, which have no cycle between them."""
    way = _OrderSearch(target, parking=False).best_way(current)
    if way.cost.lost:
        way = _OrderSearch(target, parking=True).best_way(current)
    if way.cost.lost:
        return detour(current, target) or way.steps
    return way.steps


class _Cost(NamedTuple):
    """What a way costs, in the order in which ways are compared."""

    lost: int
    parked: int
    given_up: int
    steps: int


class _Way(NamedTuple):
    """A way to the target; of two ways the smaller one is better."""

    cost: _Cost
    empty: tuple[Flags, ...]
    """After each step: which places are empty."""
    unfinished: tuple[Flags, ...]
    """After each step: which places have not their final holder."""
    steps: tuple[NumberedStep, ...]


class _OrderSearch:
    """The best way to one target from any row. `parking` allows to park replicas."""

    def __init__(self, target: Numbers, *, parking: bool) -> None:
        self._target = target
        self._parking = parking
        self._known: dict[Numbers, _Way] = {target: _Way(_Cost(0, 0, 0, 0), (), (), ())}

    def best_way(self, row: Numbers) -> _Way:
        known = self._known.get(row)
        if known is None:
            known = min(self._way_by(step, row) for step in _straight_steps(row, self._target, self._parking))
            self._known[row] = known
        return known

    def _way_by(self, step: NumberedStep, row: Numbers) -> _Way:
        target = self._target
        after = applied(row, step)
        rest = self.best_way(after)
        parked = step.source_new >= 0 and target[step.source_new] != step.source
        cost = _Cost(
            lost=rest.cost.lost + lowers(row, after, target),
            parked=rest.cost.parked + parked,
            given_up=rest.cost.given_up + (replicas(after) < replicas(row)),
            steps=rest.cost.steps + 1,
        )
        empty = tuple([not member for member in after])
        unfinished = tuple(map(ne, after, target))
        return _Way(cost, (empty, *rest.empty), (unfinished, *rest.unfinished), (step, *rest.steps))


def _straight_steps(row: Numbers, target: Numbers, parking: bool) -> Iterator[NumberedStep]:
    """Yield the legal steps that bring a place its final holder, or clear a place that is to be empty.

    A member that must leave and has an empty place waiting moves there in the same step, so that no replica hangs on the newcomer
    alone (SHIFT DOWN, Avoid Data Loss on Migration, 3.1.3); if that place is a hotter one, it has to move up first. With
    `parking`, it may also move down into any other hole, from where it moves up again or is displaced later.
    """
    for index, (present, final) in enumerate(zip(row, target, strict=True)):
        if present == final:
            continue
        if not final:
            yield clear(row, index)
            continue
        if final in row[:index]:
            continue
        own_place = target.index(present) if present and present in target else -1
        waiting = own_place >= 0 and not row[own_place]
        if waiting and own_place < index:
            continue
        yield bring(row, final, index, own_place if waiting else -1)
        if parking and present and not waiting:
            for hole in range(index + 1, len(row)):
                if not row[hole]:
                    yield bring(row, final, index, hole)


ROWS_LOOKED_AT = 4000
"""The search ends after so many rows: all there are of 4 replicas and 8 members, about a second for 7 replicas."""


def detour(current: Numbers, target: Numbers) -> tuple[NumberedStep, ...] | None:
    """Return the fewest legal steps from `current` to `target` that keep the replicas, or None if none were found.

    Only a target with a hole in front of a replica can need them, and no arrangement makes one; a user who asks what would
    happen may. A detour copies what is soon dropped again, so it is the last resort (Avoid Data Loss on Migration, 3.2).
    """
    members = sorted({*current, *target} - {0})
    came_by: dict[Numbers, tuple[Numbers, NumberedStep] | None] = {current: None}
    ahead = deque([current])
    for _ in range(ROWS_LOOKED_AT):
        if not ahead:
            return None
        row = ahead.popleft()
        for step in legal_steps(row, members):
            after = applied(row, step)
            if after in came_by or lowers(row, after, target):
                continue
            came_by[after] = (row, step)
            if after == target:
                return _way_to(after, came_by)
            ahead.append(after)
    return None


def legal_steps(row: Numbers, members: list[int]) -> Iterator[NumberedStep]:
    """Yield every step that `row` allows: up to a hotter index, in from outside, and down only into a hole."""
    holes = [index for index, member in enumerate(row) if not member]
    for index, present in enumerate(row):
        if present:
            yield clear(row, index)
        for member in members:
            if member in row[: index + 1]:
                continue
            yield bring(row, member, index)
            if present:
                yield from (bring(row, member, index, hole) for hole in holes if hole > index)


def _way_to(row: Numbers, came_by: dict[Numbers, tuple[Numbers, NumberedStep] | None]) -> tuple[NumberedStep, ...]:
    steps: list[NumberedStep] = []
    while (last := came_by[row]) is not None:
        row, step = last
        steps.append(step)
    return tuple(reversed(steps))
