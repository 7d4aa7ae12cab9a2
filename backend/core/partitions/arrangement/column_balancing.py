"""One replica index, where simple choices failed: replicas are passed on along shortest paths (the flow of `limits_at`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import compress
from operator import eq, ne

from quarterdeck.backend.core.partitions.arrangement.fair_shares import GroupLimits, member_quotas, totals_by_group
from quarterdeck.backend.core.partitions.arrangement.slots import Slots


def level_groups(slots: Slots, index: int, limits: GroupLimits, vacant: list[int]) -> bool:
    """Fill the `vacant` rows and bring every group within its limits, if possible. Return whether it was.

    In any case no row stays vacant.
    """
    level = _Levelling(slots, index)
    counts, least, most = level.counts, limits.least, limits.most
    within = True
    for row in vacant:
        if not level.fill(row, lambda group: counts[group] < most[group]):
            within = False
            level.fill(row, lambda group: True)
    for group, limit in enumerate(most):
        while counts[group] > limit and level.pass_on([group], lambda other: counts[other] < most[other]):
            pass
        within = within and counts[group] <= limit
    for group, limit in enumerate(least):
        while counts[group] < limit:
            givers = [other for other, low in enumerate(least) if counts[other] > low]
            if not level.pass_on(givers, lambda other, group=group: other == group):  # type: ignore[misc]
                break
        within = within and counts[group] >= limit
    return within


def level_members(slots: Slots, index: int) -> None:
    """Even out the members of each group, which may replace one another in any row."""
    shares, column = slots.shares, slots.columns[index]
    counts = slots.counts[index].copy()
    wanted = member_quotas(shares, totals_by_group(shares, counts), counts)
    lacking: list[list[int]] = [
        [member for member in members for _ in range(wanted[member] - counts[member])] for members in shares.members_of
    ]
    before = slots.before[index]
    # Slots that are given away anyhow go first: they cost no further copy.
    rows = [row for row, member in enumerate(column) if counts[member] > wanted[member]]
    for row in sorted(rows, key=lambda row: (before[row] == column[row], row)):
        member = column[row]
        if counts[member] > wanted[member]:
            slots.seat(row, index, lacking[slots.group_of[member]].pop())
            counts[member] -= 1


@dataclass(frozen=True, slots=True)
class _BalancingStep:
    """How a group can get one more slot: it takes `row` from `giver`, or `row` is vacant. A path begins with neither."""

    row: int | None
    giver: int | None


class _Levelling:
    def __init__(self, slots: Slots, index: int) -> None:
        self._slots, self._index = slots, index
        self._members = slots.counts[index]
        self.counts = totals_by_group(slots.shares, self._members)
        self._changed: list[list[int]] = [[] for _ in self.counts]
        """By group, rows that change hands anyhow, so that to pass them on costs no further copy."""
        self._kept: list[list[int]] = []
        """By group, the other rows; made when they are needed."""
        self._passed: dict[tuple[bool, int, int, bool], int] = {}
        """How many rows of a giver were found to be nothing for a taker; see `_row_from`."""
        self._collect(self._changed, ne)

    def fill(self, row: int, accepts: Callable[[int], bool]) -> bool:
        """Fill a vacant row in such a way that a group that accepts one more gets one more."""
        allowed = [group for group in range(len(self.counts)) if self._slots.may_stand(row, self._index, group)]
        beside = self._slots.groups_beside(row, self._index)
        allowed.sort(key=lambda group: (group in beside, self.counts[group], group))
        in_ring = [group for group in allowed if self._closes_cycle(row, group)]
        acceptable = [group for group in allowed if accepts(group)]
        for group in sorted(acceptable, key=in_ring.__contains__)[:1]:
            self._give(group, row)
            return True
        return self._walk({group: _BalancingStep(row, None) for group in allowed}, accepts)

    def pass_on(self, givers: list[int], accepts: Callable[[int], bool]) -> bool:
        """Take a slot from one of `givers` in such a way that a group that accepts one more gets one more."""
        return self._walk({group: _BalancingStep(None, None) for group in givers}, accepts)

    def _walk(self, start: dict[int, _BalancingStep], accepts: Callable[[int], bool]) -> bool:
        """Search rows that change hands anyhow first; and before all, ways without rings, as rings are cancelled."""
        for with_rings in (False, True):
            for with_kept in (False, True):
                path = dict(start)
                sources = (self._changed, self._kept_rows()) if with_kept else (self._changed,)
                taker = self._search(path, sources, accepts, with_rings=with_rings)
                if taker is not None:
                    self._carry_out_path(path, taker)
                    return True
        return False

    def _kept_rows(self) -> list[list[int]]:
        if not self._kept:
            self._kept = [[] for _ in self.counts]
            self._collect(self._kept, eq)
        return self._kept

    def _closes_cycle(self, row: int, group: int) -> bool:
        return self._slots.closes_cycle(row, self._index, self._least_of(group))

    def _least_of(self, group: int) -> int:
        members = self._members
        return min(self._slots.shares.members_of[group], key=lambda member: (members[member], member))

    def _collect(self, rows_of: list[list[int]], compared: Callable[[int, int], bool]) -> None:
        """Sort rows by the group that has the slot: those for which the comparison of the member before and now holds."""
        column, group_of = self._slots.columns[self._index], self._slots.group_of
        for row in compress(range(len(column)), map(compared, self._slots.before[self._index], column)):
            if column[row] >= 0:
                rows_of[group_of[column[row]]].append(row)

    def _search(
        self,
        path: dict[int, _BalancingStep],
        sources: tuple[list[list[int]], ...],
        accepts: Callable[[int], bool],
        *,
        with_rings: bool,
    ) -> int | None:
        """Search breadth first for the nearest group that accepts one more. `path` is extended by the steps that lead there."""
        unreached = [group for group in range(len(self.counts)) if group not in path]
        frontier = list(path)
        while frontier and unreached:
            reached = []
            for giver in frontier:
                for source in sources:
                    for taker in list(unreached):
                        row = self._row_from(source[giver], giver, taker, with_rings=with_rings)
                        if row is None:
                            continue
                        path[taker] = _BalancingStep(row, giver)
                        if accepts(taker):
                            return taker
                        reached.append(taker)
                        unreached.remove(taker)
            frontier = reached
        return None

    def _row_from(self, rows: list[int], giver: int, taker: int, *, with_rings: bool) -> int | None:
        """Return the next of the giver's rows that the taker may have.

        A row that it may not have is never looked at again: that depends only on the hotter indices, which are settled, and on
        rings, which are only disliked.
        """
        column, group_of, may_stand = self._slots.columns[self._index], self._slots.group_of, self._slots.may_stand
        seen = (rows is self._changed[giver], giver, taker, with_rings)
        for place in range(self._passed.get(seen, 0), len(rows)):
            row = rows[place]
            if group_of[column[row]] == giver and may_stand(row, self._index, taker):
                if with_rings or not self._closes_cycle(row, taker):
                    self._passed[seen] = place
                    return row
        self._passed[seen] = len(rows)
        return None

    def _carry_out_path(self, path: dict[int, _BalancingStep], taker: int) -> None:
        step = path[taker]
        while step.row is not None:
            self._give(taker, step.row)
            if step.giver is None:
                return
            taker, step = step.giver, path[step.giver]

    def _give(self, group: int, row: int) -> None:
        giver = self._slots.columns[self._index][row]
        if giver >= 0:
            self.counts[self._slots.group_of[giver]] -= 1
        if self._closes_cycle(row, group):
            self._slots.cycle_rows[row] = None
        self._slots.seat_and_vacate(row, self._index, self._least_of(group))
        self.counts[group] += 1
        self._changed[group].append(row)
