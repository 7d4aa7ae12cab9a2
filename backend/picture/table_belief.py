"""One member's partition table, as it last said it is: who holds which partition, and how much each life holds.

A table is folded from changed rows only, and the counts are kept up with them, so that a change of one partition of fifty
thousand costs no more than one of three.
"""

from __future__ import annotations

from collections.abc import Collection

from backend.core.partitions.events import Holder, TableChanged

NOBODY = -1
"""In place of a holder's number."""


class TableBelief:
    """The table after the changes taken in so far. A new one knows no partition."""

    __slots__ = (
        "_backed_up",
        "_number_of",
        "_owned",
        "_rows",
        "cause",
        "digest",
        "holders",
        "partitions",
        "since_us",
        "version",
    )

    def __init__(self) -> None:
        self.version = 0
        """The sum of the versions of all partitions (design 9.1)."""
        self.digest = ""
        self.partitions = 0
        """How many partitions there are."""
        self.cause = ""
        """What changed it last."""
        self.since_us = 0
        """Time of the last change, microseconds on the run's clock."""
        self.holders: list[Holder] = []
        """Every life that ever stood in it, by number."""
        self._number_of: dict[str, int] = {}
        self._rows: dict[int, tuple[int, ...]] = {}
        """By partition: its version, then the number of the holder at each replica index."""
        # Counts by number of the holder. The last place, which is where -1 leads, is for nobody.
        self._owned = [0]
        self._backed_up = [0]

    def take(self, event: TableChanged, at: int) -> None:
        """Take in one change."""
        self.version, self.digest, self.partitions = event.table_version, event.digest, event.partitions
        self.cause, self.since_us = event.cause, at
        numbers = [self._number(holder) for holder in event.holders]
        alike = numbers == list(
            range(len(numbers))
        )  # always so for the first table of a life, the largest change there is
        numbers.append(NOBODY)
        rows, owned, backed_up = self._rows, self._owned, self._backed_up
        for partition, version, *places in event.rows:
            before = rows.get(partition)
            if before is not None:
                owned[before[1]] -= 1
                for number in before[2:]:
                    backed_up[number] -= 1
            held = places if alike else [numbers[place] for place in places]
            rows[partition] = (version, *held)
            owned[held[0]] += 1
            for number in held[1:]:
                backed_up[number] += 1

    def owned_by(self, uuid: str) -> int:
        """How many partitions the life `uuid` owns."""
        return self._owned[self._number_of[uuid]] if uuid in self._number_of else 0

    def backed_up_by(self, uuid: str) -> int:
        """How many partitions the life `uuid` keeps a backup of."""
        return self._backed_up[self._number_of[uuid]] if uuid in self._number_of else 0

    def __len__(self) -> int:
        """How many partitions have a row."""
        return len(self._rows)

    def row(self, partition: int) -> tuple[Holder | None, ...]:
        """The holders of a partition by replica index; nobody at all when it was never told of."""
        numbers = self._rows.get(partition, (0,))[1:]
        return tuple(None if number == NOBODY else self.holders[number] for number in numbers)

    def lost_without(self, ending: Collection[str], living: Collection[str]) -> int:
        """How many partitions lose their last replica with the lives `ending`; `living` are all that have not ended yet."""
        last = {self._number_of[uuid] for uuid in ending if uuid in self._number_of}
        left = {number for uuid, number in self._number_of.items() if uuid in living} - last
        return sum(left.isdisjoint(row[1:]) and not last.isdisjoint(row[1:]) for row in self._rows.values())

    def _number(self, holder: Holder) -> int:
        number = self._number_of.get(holder.uuid)
        if number is None:
            number = self._number_of[holder.uuid] = len(self.holders)
            self.holders.append(holder)
            self._owned.insert(-1, 0)
            self._backed_up.insert(-1, 0)
        return number
