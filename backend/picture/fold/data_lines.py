"""The lineages that have the same data: they go back to one first arrangement of partitions, or merged into it."""

from __future__ import annotations

UNKNOWN = 0
"""Stands for data from before the records began; any other data may be the same."""
LINEAGES_KEPT = 1_000


class DataLines:
    """By lineage, the first arrangements from which its data comes, by number."""

    def __init__(self) -> None:
        self._of: dict[str, frozenset[int]] = {}
        self._brought: dict[str, frozenset[int]] = {}
        self._count = UNKNOWN

    def copy(self) -> DataLines:
        twin = DataLines()
        twin._of, twin._brought, twin._count = self._of.copy(), self._brought.copy(), self._count
        return twin

    def is_known(self, lineage: str) -> bool:
        """Return whether a member has followed this lineage before."""
        return lineage in self._of

    def follow(self, before: str, lineage: str, *, is_founded: bool) -> None:
        """Note a lineage that goes on from the one `before`, or is founded by a lone member without one."""
        if lineage in self._of:
            return
        if before:
            self._of[lineage] = self._of.get(before, frozenset((UNKNOWN,)))
        elif is_founded:
            self.begin(lineage)
        else:
            self._of[lineage] = frozenset((UNKNOWN,))
        if len(self._of) > LINEAGES_KEPT:
            del self._of[next(iter(self._of))]

    def begin(self, lineage: str) -> None:
        """Note that the partitions of a lineage are arranged for the first time."""
        self._count += 1
        self._of[lineage] = frozenset((self._count,))

    def bring(self, incarnation: str, lineage: str, before: str) -> None:
        """Note that an incarnation merges with the data of the lineage that it leaves, and with the data brought there before."""
        own = self._of.get(lineage, frozenset((UNKNOWN,)))
        self._brought[incarnation] = own | self._brought.pop(before, frozenset())

    def merge(self, incarnation: str, lineage: str) -> None:
        """Note that the data of an incarnation has come into a lineage."""
        brought = self._brought.pop(incarnation, frozenset())
        self._of[lineage] = self._of.get(lineage, frozenset()) | brought

    def are_alike(self, one: str, other: str) -> bool:
        """Return whether two lineages may have the same data."""
        unknown = frozenset((UNKNOWN,))
        mine, others = self._of.get(one, unknown), self._of.get(other, unknown)
        return UNKNOWN in mine or UNKNOWN in others or not mine.isdisjoint(others)
