"""One replica index is brought to its fair shares (Avoid Data Loss on Migration, 3.2; Hazelcast: repartitioning, step 4).

First the vacant slots are filled, then members that hold too much give some away. Where such simple choices fail, because every
member that lacks something is in the row already, slots are passed on through others (`column_balancing`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import repeat
from math import gcd
from operator import mod

from quarterdeck.backend.core.partitions.arrangement.column_balancing import level_groups, level_members
from quarterdeck.backend.core.partitions.arrangement.fair_shares import (
    group_quotas,
    limits_at,
    member_quotas,
    totals_by_group,
)
from quarterdeck.backend.core.partitions.arrangement.slots import LEAVING, VACANT, Slots


def settle_column(slots: Slots, index: int, held: list[int], *, exact: bool) -> bool:
    """Fill and balance replica `index`, all hotter ones being settled. Return whether every group came within its limits.

    `held` is what each group has at the hotter indices, and is updated.
    """
    shares = slots.shares
    limits = limits_at(shares, index, held, exact=exact)
    if shares.mixed:
        _make_room_for_capped_groups(slots, index)
    counts = slots.counts[index]
    quotas = group_quotas(shares, limits, counts)
    wanted = member_quotas(shares, quotas, counts)
    lacking = [max(quota - have, 0) for quota, have in zip(wanted, counts, strict=False)]
    excess = [max(have - quota, 0) for quota, have in zip([*wanted, 0, 0], counts, strict=True)]
    excess[VACANT] = excess[LEAVING] = 0
    within = True
    vacant = slots.vacant_rows(index)
    if vacant or any(excess):
        receivers = _Receivers(slots, index, lacking)
        vacant = _fill(slots, index, vacant, receivers)
        done = _give_away(slots, index, excess, receivers) and not vacant
        if not done:
            within = level_groups(slots, index, limits, vacant)
        if not shares.one_by_one:
            level_members(slots, index)
    for group, count in enumerate(totals_by_group(shares, counts)):
        held[group] += count
    return within


class _Receivers:
    """The members that lack replicas at this index, each in turn and in proportion to what it lacks."""

    def __init__(self, slots: Slots, index: int, lacking: list[int]) -> None:
        self.lacking = lacking
        self._slots, self._index = slots, index
        self._others = [column for column in slots.columns if column is not slots.columns[index]]
        self._room_to_spare = not slots.shares.mixed
        self._rotation = _interleaved(lacking)
        self._passed_over = [0] * len(lacking)
        self._waiting: list[int] = []
        """Members that were passed over, because they did not fit in the row whose turn it was."""

    def next_for(self, row: int) -> int:
        """Return a member that lacks a replica and fits in the row, or `VACANT`. It then lacks one less."""
        slots, index, lacking, passed_over = self._slots, self._index, self.lacking, self._passed_over
        group_of = slots.group_of
        beside = [group_of[column[row]] for column in self._others]
        # Most rows need no closer look.
        harmless = self._room_to_spare and not slots.given_up[row]
        for place, member in enumerate(self._waiting) if self._waiting else ():
            if lacking[member] and group_of[member] not in beside:
                if harmless or slots.is_harmless(row, index, member):
                    passed_over[member] -= 1
                    if not passed_over[member]:
                        del self._waiting[place]
                    lacking[member] -= 1
                    return member
        for member in self._rotation:
            # A member may have been served out of turn, from within the row.
            if lacking[member] <= passed_over[member]:
                continue
            if not passed_over[member]:
                if group_of[member] not in beside and (harmless or slots.is_harmless(row, index, member)):
                    lacking[member] -= 1
                    return member
                self._waiting.append(member)
            passed_over[member] += 1
        return VACANT


def _interleaved(lacking: list[int]) -> Iterator[int]:
    """Return every member as many times as it lacks replicas, evenly spread."""
    size = len(lacking)
    positions: list[int] = []
    for member, count in enumerate(lacking):
        if count:
            half = (1 << 32) // (2 * count) * size
            positions += range(half + member, 2 * half * count, 2 * half)
    positions.sort()
    return map(mod, positions, repeat(size))


def _fill(slots: Slots, index: int, vacant: Iterable[int], receivers: _Receivers) -> list[int]:
    """Fill vacant rows, and return those that are left over.

    A member that holds a replica of the partition comes first: one without a slot, else the next colder one, which moves up.
    """
    column, lacking, given_up, mixed = slots.columns[index], receivers.lacking, slots.given_up, slots.shares.mixed
    counts = slots.counts[index]
    colder = list(zip(slots.columns, slots.counts, strict=True))[index + 1 :]
    left, next_for = [], receivers.next_for
    for row in vacant:
        if given_up[row] and _seat_again(slots, row, index, lacking):
            continue
        leaver = column[row]
        member = VACANT
        if leaver == VACANT:
            for other, other_counts in colder:
                next_colder = other[row]
                if next_colder >= 0 and lacking[next_colder]:
                    if not mixed or slots.leaves_room(row, index, slots.group_of[next_colder]):
                        member, other[row] = next_colder, VACANT
                        lacking[member] -= 1
                        other_counts[member] -= 1
                        other_counts[VACANT] += 1
                        break
        if member == VACANT:
            member = next_for(row)
            if member == VACANT:
                left.append(row)
                continue
        column[row] = member
        counts[leaver] -= 1
        counts[member] += 1
    return left


def _seat_again(slots: Slots, row: int, index: int, lacking: list[int]) -> bool:
    """Seat a member that holds a replica of the partition, lost its slot and lacks one here. Return whether there is one."""
    beside = slots.groups_beside(row, index)
    for member in slots.displaced(row):
        if lacking[member] and slots.group_of[member] not in beside and slots.is_harmless(row, index, member):
            lacking[member] -= 1
            slots.seat(row, index, member)
            return True
    return False


def _give_away(slots: Slots, index: int, excess: list[int], receivers: _Receivers) -> bool:
    """Let members that hold too much give to those that lack, from rows all over the table.

    Return whether none holds too much now.
    """
    column, owed = slots.columns[index], sum(excess)
    for row in _scattered(len(column), index) if owed else ():
        if excess[column[row]]:
            receiver = receivers.next_for(row)
            if receiver != VACANT:
                excess[column[row]] -= 1
                slots.seat(row, index, receiver)
                owed -= 1
                if not owed:
                    break
    return not owed


def _scattered(count: int, index: int) -> Iterator[int]:
    """Yield all rows once, the first few of them evenly spread: by steps of the golden section.

    Every index begins elsewhere in this order: a member that joins got the first rows at the hotter index, and fits in others
    here.
    """
    step = max(count * 618 // 1000, 1)
    while gcd(step, count) != 1:
        step += 1
    row = index * (count // 7) * step % count
    for _ in range(count):
        yield row
        row = (row + step) % count


def _make_room_for_capped_groups(slots: Slots, index: int) -> None:
    """Vacate slots in which only a capped group may stand, if the row is to hold all capped groups."""
    column = slots.columns[index]
    for row, member in enumerate(column):
        if member >= 0 and not slots.leaves_room(row, index, slots.group_of[member]):
            slots.vacate(row, index)
