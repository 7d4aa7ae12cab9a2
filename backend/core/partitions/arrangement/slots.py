"""The slots of a table while it is being arranged: columns of member numbers, one per replica index."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from quarterdeck.backend.core.partitions.arrangement.fair_shares import FairShares
from quarterdeck.backend.core.partitions.migration.migration import without_cycles

VACANT = -1
"""No member is here: it left, or there never was one."""
LEAVING = -2
"""A member that stops gracefully is here; its replica is to be moved, not replaced."""
NO_GROUP = -1


class Slots:
    """The table on its way from `before`, which is never changed, to `columns`, which are. Columns are lists of numbers."""

    def __init__(
        self, shares: FairShares, group_of: list[int], before: list[list[int]], counts: list[list[int]]
    ) -> None:
        self.shares = shares
        self.group_of = [*group_of, NO_GROUP, NO_GROUP]
        """By member, and at the end for `LEAVING` and `VACANT`."""
        self.before = before
        """May have more columns: indices that are no longer used."""
        self.columns = [column.copy() for column in before[: shares.replicas]]
        self.counts = [count.copy() for count in counts[: shares.replicas]]
        """By index and member, the replicas it has there; the last two entries are for `LEAVING` and `VACANT`."""
        self.given_up = bytearray(shares.partitions)
        """By row, 1 if a member that holds a replica may have lost its slot."""
        self.cycle_rows: dict[int, None] = {}
        """Rows in which holders may change places in a ring, in the order in which that came about."""
        self._mixed = shares.mixed

    def is_in_order(self) -> bool:
        if len(self.before) != len(self.columns) or any(count[VACANT] or count[LEAVING] for count in self.counts):
            return False
        rows = zip(*(map(self.group_of.__getitem__, column) for column in self.before), strict=True)
        return all(len(set(row)) == len(row) for row in rows)

    def vacant_rows(self, index: int) -> list[int]:
        """Return the rows that have no holder at `index`."""
        counts = self.counts[index]
        if not counts[VACANT] and not counts[LEAVING]:
            return []
        return [row for row, member in enumerate(self.columns[index]) if member < 0]

    def seat(self, row: int, index: int, member: int) -> None:
        """Give a slot to a member that fits there; its present holder loses it."""
        column, counts = self.columns[index], self.counts[index]
        giver = column[row]
        column[row] = member
        counts[giver] -= 1
        counts[member] += 1
        if giver >= 0:
            self.given_up[row] = 1

    def seat_and_vacate(self, row: int, index: int, member: int) -> None:
        """Give a slot to a member whose group may stand there; a member of its group at a colder index loses that slot."""
        group = self.group_of[member]
        for colder in range(index + 1, len(self.columns)):
            if self.group_of[self.columns[colder][row]] == group:
                self.vacate(row, colder)
        self.seat(row, index, member)

    def vacate(self, row: int, index: int) -> None:
        column, counts = self.columns[index], self.counts[index]
        counts[column[row]] -= 1
        counts[VACANT] += 1
        column[row] = VACANT
        self.given_up[row] = 1

    def displaced(self, row: int) -> list[int]:
        """Return the members that hold a replica but no slot, the hottest first: to seat them again costs no copy."""
        seated = [column[row] for column in self.columns]
        return [column[row] for column in self.before if column[row] >= 0 and column[row] not in seated]

    def groups_beside(self, row: int, index: int) -> list[int]:
        at, group_of = self.columns[index], self.group_of
        return [group_of[column[row]] for column in self.columns if column is not at]

    def is_harmless(self, row: int, index: int, member: int) -> bool:
        """Whether to seat the member, whose group is not beside, makes no ring and leaves room for the capped groups."""
        if self.given_up[row] and self.closes_cycle(row, index, member):
            return False
        return self.leaves_room(row, index, self.group_of[member])

    def may_stand(self, row: int, index: int, group: int) -> bool:
        """Return whether `group` is at no hotter index of the row. At a colder one it may be: it moves up."""
        group_of = self.group_of
        for column in self.columns[:index]:
            if group_of[column[row]] == group:
                return False
        return self.leaves_room(row, index, group)

    def leaves_room(self, row: int, index: int, group: int) -> bool:
        """Whether the capped groups, which stand in every row, still fit into the colder slots."""
        if not self._mixed or self.shares.capped[group]:
            return True
        hotter = sum(self.shares.capped[self.group_of[column[row]]] for column in self.columns[:index])
        return sum(self.shares.capped) - hotter < len(self.columns) - index

    def without_cycles_in(self, row: int, after: Sequence[int]) -> tuple[int, ...]:
        """Return what the row becomes if it is to be `after`: members that would change places in a ring stay."""
        current: list[int] = []
        for column in self.before[: len(self.columns)]:
            member = column[row] + 1
            current.append(member if member > 0 and member not in current else 0)
        return tuple(number - 1 for number in without_cycles(tuple(current), tuple(member + 1 for member in after)))

    def closes_cycle(self, row: int, index: int, member: int) -> bool:
        """Return whether `member` at `index` would make holders of the row change places in a ring.

        Such migrations are cancelled, because they cannot be done without giving up a copy for a while (Avoid Data Loss on
        Migration, 3.2.1).
        """
        place, holder = index, member
        while holder >= 0:
            came_from = next((old for old, column in enumerate(self.before) if column[row] == holder), None)
            if came_from is None or came_from >= len(self.columns):
                return False
            if came_from == index:
                return place != index
            place, holder = came_from, self.columns[came_from][row]
            if self.group_of[holder] == self.group_of[member]:
                return False  # It leaves this place when it comes to `index`.
        return False


def counts_in(column: list[int], members: int) -> list[int]:
    """Return how often each member stands in `column`, vacant slots included."""
    counts = [0] * (members + 2)
    for member, count in Counter(column).items():
        counts[member] = count
    return counts
