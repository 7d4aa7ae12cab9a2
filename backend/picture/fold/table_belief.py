"""One member's partition table, as it last said it is: who holds which partition, and how much each incarnation holds.

A table is folded from changed rows only, and the counts are kept up with them, so that a change of one partition of fifty
thousand costs no more than one of three.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from copy import copy
from typing import NamedTuple

from quarterdeck.backend.core.partitions.events import Holder, TableChanged

NO_HOLDER = -1
"""In place of a holder's number."""


class ReplicaLoss(NamedTuple):
    """The loss of a table when some data members end."""

    lost: tuple[int, ...]
    """Partitions of which no replica is left."""
    bared: tuple[int, ...]
    """Partitions that had several replicas and keep a single one."""
    heirs: dict[str, int]
    """By incarnation, the number of partitions that it comes to own; the greatest number first."""


class TableBelief:
    """The table after the changes taken in so far. A new one knows no partition."""

    __slots__ = (
        "_backed_up", "_number_of", "_owned", "_rows", "cause", "digest", "holders", "partitions", "since_us",
        "version", "writer",
    )  # fmt: skip

    def __init__(self, writer: object = None) -> None:
        self.writer = writer
        """As that of the belief: the picture that may change this table; for all others it is as good as frozen."""
        self.version = 0
        """The sum of the versions of all partitions (Decisions: Table version)."""
        self.digest = ""
        self.partitions = 0
        """The number of partitions."""
        self.cause = ""
        """The event that changed it last."""
        self.since_us = 0
        """Time of the last change, microseconds on the run's clock."""
        self.holders: tuple[Holder, ...] = ()
        """Every incarnation that ever stood in it, by number. Replaced, not changed: forks share it, as they share the next."""
        self._number_of: dict[str, int] = {}
        self._rows: dict[int, tuple[int, ...]] = {}
        """By partition: its version, then the number of the holder at each replica index."""
        # Counts by number of the holder. The last place, which is where -1 leads, is for no holder.
        self._owned = [0]
        self._backed_up = [0]

    def fork(self, writer: object) -> TableBelief:
        twin = copy(self)
        twin.writer = writer
        twin._rows, twin._owned, twin._backed_up = self._rows.copy(), self._owned.copy(), self._backed_up.copy()
        return twin

    def take(self, event: TableChanged, at: int) -> None:
        """Take in one change."""
        self.version, self.digest, self.partitions = event.table_version, event.digest, event.partitions
        self.cause, self.since_us = event.cause, at
        self._learn(event.holders)
        numbers = [self._number_of[holder.uuid] for holder in event.holders]
        # Always so for the first table of an incarnation, the largest change there is.
        alike = numbers == list(range(len(numbers)))
        numbers.append(NO_HOLDER)
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
        """How many partitions the incarnation `uuid` owns."""
        return self._owned[self._number_of[uuid]] if uuid in self._number_of else 0

    def backed_up_by(self, uuid: str) -> int:
        """How many partitions the incarnation `uuid` keeps a backup of."""
        return self._backed_up[self._number_of[uuid]] if uuid in self._number_of else 0

    def __len__(self) -> int:
        return len(self._rows)

    def row(self, partition: int) -> tuple[Holder | None, ...]:
        """Return the holders of a partition by replica index; none at all when it was never reported."""
        numbers = self._rows.get(partition, (0,))[1:]
        return tuple(None if number == NO_HOLDER else self.holders[number] for number in numbers)

    @property
    def rows(self) -> Mapping[int, tuple[int, ...]]:
        """By partition: its version, then the number of the holder at each replica index. A row that changes is replaced."""
        return self._rows

    def number_of(self, uuid: str) -> int:
        """Return the place in `holders` of the incarnation `uuid`; `NO_HOLDER` when it never held anything."""
        return self._number_of.get(uuid, NO_HOLDER)

    def loss_without(self, ending: Collection[str], living: Collection[str]) -> ReplicaLoss:
        """Return the loss when the incarnations `ending` end; `living` are all that have not ended yet."""
        last = {self._number_of[uuid] for uuid in ending if uuid in self._number_of}
        left = {number for uuid, number in self._number_of.items() if uuid in living} - last
        lost, bared, heirs = [], [], Counter[int]()
        for partition, row in self._rows.items():
            held = row[1:]
            if last.isdisjoint(held):
                continue
            staying = [number for number in held if number in left]
            if not staying:
                lost.append(partition)
                continue
            if len(staying) == 1:
                bared.append(partition)
            if held[0] in last:
                heirs[staying[0]] += 1
        named = {self.holders[number].uuid: count for number, count in heirs.most_common()}
        return ReplicaLoss(tuple(sorted(lost)), tuple(sorted(bared)), named)

    def _learn(self, holders: Iterable[Holder]) -> None:
        unknown = {holder.uuid: holder for holder in holders if holder.uuid not in self._number_of}
        if unknown:
            first = len(self.holders)
            self.holders += tuple(unknown.values())
            self._number_of = self._number_of | {uuid: first + place for place, uuid in enumerate(unknown)}
            self._owned[-1:-1] = self._backed_up[-1:-1] = [0] * len(unknown)
