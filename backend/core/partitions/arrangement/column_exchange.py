"""What no replica index can settle alone, for groups of different sizes: two indices of one row exchange their members.

The indices are settled one after the other, and where groups differ in size, a choice at a hotter one may leave too few choices
at a colder one. When all rows are full, replicas are passed on here from group to group at one index: a row gets a group that it
lacks, or exchanges with another index that has room for that.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from typing import NamedTuple

from quarterdeck.backend.core.partitions.arrangement.column_balancing import level_members
from quarterdeck.backend.core.partitions.arrangement.fair_shares import ideal_limits, imbalance, totals_by_group
from quarterdeck.backend.core.partitions.arrangement.slots import Slots

ROWS_LOOKED_AT = 500
"""Of every group, in a search for one exchange."""
MOST_CYCLES_AVOIDED = 100
"""A table that needs more rings than that can hardly be evened out without them."""


class Unevenness(NamedTuple):
    """How far counts are from fair shares; less is better."""

    imbalance: int
    """As in an arrangement."""
    surplus: int
    """Replicas that groups hold beyond their limits or lack to them, and members beyond the others of their group."""


def unevenness(slots: Slots) -> Unevenness:
    """Return how far the counts are from fair shares. All are fair if the surplus is 0."""
    limits = ideal_limits(slots.shares)
    surplus = 0
    for counts in slots.counts:
        for total, least, most in zip(totals_by_group(slots.shares, counts), limits.least, limits.most, strict=True):
            surplus += max(total - most, least - total, 0)
        for members in slots.shares.members_of:
            held = [counts[member] for member in members]
            surplus += max(max(held) - min(held) - 1, 0)
    return Unevenness(imbalance(slots.shares, slots.counts), surplus)


def exchange_columns(slots: Slots) -> None:
    """Bring groups within their limits as far as that succeeds. Every row must be full."""
    exchange = _Exchange(slots, with_rings=True)
    while exchange.improve():
        pass
    for index in range(slots.shares.replicas):
        level_members(slots, index)


def avoid_cycles(slots: Slots) -> None:
    """Undo rings, in which members change places, as such migrations are cancelled, and even out without them.

    All of it is undone if that fails: then only rings help. It is not tried where many are needed, or where every row has all
    groups in it. Every row must be full.
    """
    if len(slots.cycle_rows) > MOST_CYCLES_AVOIDED or slots.shares.replicas == len(slots.shares.members_of):
        return
    columns, counts = [column.copy() for column in slots.columns], [count.copy() for count in slots.counts]
    for row in slots.cycle_rows:
        after = slots.without_cycles_in(row, [column[row] for column in slots.columns])
        for index, member in enumerate(after):
            if slots.columns[index][row] != member:
                slots.seat(row, index, member)
    surplus = unevenness(slots).surplus
    if surplus:
        exchange = _Exchange(slots, with_rings=False)
        while exchange.improve():
            pass
        surplus = unevenness(slots).surplus
    if surplus:
        slots.columns, slots.counts = columns, counts


class _ExchangeStep(NamedTuple):
    """In `row`, `giver` hands its slot on: to the one at index `other` in exchange, or to one that is not in the row."""

    row: int
    giver: int
    other: int | None


class _Exchange:
    def __init__(self, slots: Slots, *, with_rings: bool) -> None:
        self._slots, self._with_rings = slots, with_rings
        self._with_disorder = False
        """What is easy was done."""
        self._limits = ideal_limits(slots.shares)
        self._totals = [totals_by_group(slots.shares, counts) for counts in slots.counts]
        self._rows_of: list[list[deque[int]]] = [[deque() for _ in slots.shares.members_of] for _ in slots.columns]
        """By index and group, where it stands, or stood; they are looked at in turn."""
        for rows_of, column in zip(self._rows_of, slots.columns, strict=True):
            for row, member in enumerate(column):
                rows_of[slots.group_of[member]].append(row)

    def improve(self) -> bool:
        """Bring the groups nearer to their limits by one pass. Return whether one was found that does."""
        before = self._beyond_limits()
        for with_disorder in (True,) if self._with_disorder else (False, True):
            self._with_disorder = with_disorder
            for index in range(len(self._totals)):
                for givers, takers in self._wanted(index):
                    done = self._pass_on(index, givers, takers, with_disorder=with_disorder)
                    if with_disorder:
                        # An exchange may have brought another index beyond the limits; there, passing on may be easy.
                        for other in sorted({at for _, at, _ in done} - {index}):
                            for others, others_takers in self._wanted(other):
                                done += self._pass_on(other, others, others_takers, with_disorder=False)
                    if self._beyond_limits() < before:
                        return True
                    for row, at, member in reversed(done):
                        self._put(row, at, member)
        return False

    def _wanted(self, index: int) -> list[tuple[list[int], list[int]]]:
        """Return which groups should give a slot at the index, each time with those that should get it."""
        least, most, totals = self._limits.least, self._limits.most, self._totals[index]
        below_most = [group for group, count in enumerate(totals) if count < most[group]]
        above_least = [group for group, count in enumerate(totals) if count > least[group]]
        return [
            ([group], below_most) if count > most[group] else (above_least, [group])
            for group, count in enumerate(totals)
            if not least[group] <= count <= most[group]
        ]

    def _pass_on(
        self, index: int, givers: list[int], takers: Collection[int], *, with_disorder: bool
    ) -> list[tuple[int, int, int]]:
        """Pass a slot from a giver to a taker by the fewest steps.

        Return what was done: row, index and the member that was there.
        """
        steps: dict[int, _ExchangeStep | None] = dict.fromkeys(givers)
        taker = self._search(index, steps, takers, with_disorder=with_disorder)
        done: list[tuple[int, int, int]] = []
        while taker is not None and (step := steps[taker]) is not None:
            self._carry_out(index, step, taker, done)
            taker = step.giver
        return done

    def _search(
        self, index: int, steps: dict[int, _ExchangeStep | None], takers: Collection[int], *, with_disorder: bool
    ) -> int | None:
        group_of, column = self._slots.group_of, self._slots.columns[index]
        frontier = list(steps)
        while frontier:
            reached = []
            for giver in frontier:
                rows = self._rows_of[index][giver]
                for _ in range(min(len(rows), ROWS_LOOKED_AT)):
                    row = rows.popleft()
                    if group_of[column[row]] != giver:
                        continue
                    rows.append(row)
                    for taker, other in self._ways(row, index, giver, with_disorder=with_disorder):
                        if taker not in steps:
                            steps[taker] = _ExchangeStep(row, giver, other)
                            if taker in takers:
                                return taker
                            reached.append(taker)
                    if len(steps) == len(self._slots.shares.members_of):
                        return None
            frontier = reached
        return None

    def _ways(self, row: int, index: int, giver: int, *, with_disorder: bool) -> list[tuple[int, int | None]]:
        """Return the groups that may get the slot, each with the index that it comes from, or None if from outside."""
        group_of, shares, limits = self._slots.group_of, self._slots.shares, self._limits
        here = [group_of[column[row]] for column in self._slots.columns]
        ways: list[tuple[int, int | None]] = []
        if not shares.capped[giver]:
            ways += [(group, None) for group in range(len(shares.members_of)) if group not in here]
        for other, group in enumerate(here):
            totals = self._totals[other]
            in_order = totals[group] > limits.least[group] and totals[giver] < limits.most[giver]
            if other != index and (in_order or with_disorder):
                ways.append((group, other))
        return ways if self._with_rings else [way for way in ways if not self._makes_cycle(row, index, *way)]

    def _makes_cycle(self, row: int, index: int, group: int, other: int | None) -> bool:
        after = [column[row] for column in self._slots.columns]
        if other is None:
            after[index] = self._least_of(group, index)
        else:
            after[index], after[other] = after[other], after[index]
        return self._slots.without_cycles_in(row, after) != tuple(after)

    def _least_of(self, group: int, index: int) -> int:
        counts = self._slots.counts[index]
        return min(self._slots.shares.members_of[group], key=lambda member: (counts[member], member))

    def _carry_out(self, index: int, step: _ExchangeStep, taker: int, done: list[tuple[int, int, int]]) -> None:
        slots, row = self._slots, step.row
        leaves = slots.columns[index][row]
        done.append((row, index, leaves))
        if step.other is None:
            comes = self._least_of(taker, index)
        else:
            comes = slots.columns[step.other][row]
            done.append((row, step.other, comes))
            self._put(row, step.other, leaves)
        self._put(row, index, comes)

    def _put(self, row: int, index: int, member: int) -> None:
        group_of, totals = self._slots.group_of, self._totals[index]
        totals[group_of[self._slots.columns[index][row]]] -= 1
        totals[group_of[member]] += 1
        self._rows_of[index][group_of[member]].append(row)
        self._slots.seat(row, index, member)

    def _beyond_limits(self) -> int:
        return sum(
            max(total - most, least - total, 0)
            for totals in self._totals
            for total, least, most in zip(totals, self._limits.least, self._limits.most, strict=True)
        )
