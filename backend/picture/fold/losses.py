"""Which partitions lost data, by the lineage that lost them.

Both halves of a split judge for themselves: what one lost may be well in the other one. So a loss belongs to a lineage. It goes
over to the lineage that follows when a member goes on under a new master, and ends with the last one who holds such a list: a
member that merges begins a new incarnation with the data of the cluster that it joins.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from quarterdeck.backend.core.partitions.events import PartitionLost
from quarterdeck.backend.picture.fold.belief import MemberBelief


class SideLoss(NamedTuple):
    """What one side has lost for good."""

    lineage: str
    side: str
    """The label of its master; of the first who holds such a list while nobody leads it."""
    partitions: frozenset[int]
    at_most: int
    """Maps with at most so many backups have lost entries; `ALL_LOST` when no replica was left."""
    maps: tuple[str, ...]
    """These maps, where their configuration is known."""
    since_us: int
    """When the first of the partitions was lost."""


class _LineageLoss(NamedTuple):
    partitions: frozenset[int]
    at_most: int
    maps: frozenset[str]
    since_us: int


class Losses:
    """The losses of a run so far."""

    def __init__(self) -> None:
        self._lost: dict[str, _LineageLoss] = {}

    def copy(self) -> Losses:
        """Return the same losses, to go their own way from here."""
        twin = Losses()
        twin._lost = self._lost.copy()
        return twin

    def take(self, lineage: str, lost: PartitionLost, at_us: int) -> None:
        """Note that a master of this lineage recorded a partition that lost data."""
        partitions, at_most, maps, since_us = self._lost.get(lineage, (frozenset(), 0, frozenset(), at_us))
        self._lost[lineage] = _LineageLoss(
            partitions | {lost.partition}, max(at_most, lost.lost_backups), maps.union(lost.lost_maps), since_us
        )

    def follow(self, before: str, lineage: str, members: Iterable[MemberBelief]) -> None:
        """Note that a member of the lineage `before` is the first to install a list of `lineage`."""
        if before in self._lost and all(belief.lineage != lineage for belief in members):
            self._lost[lineage] = self._lost[before]

    def standing(self, members: Iterable[MemberBelief]) -> tuple[SideLoss, ...]:
        """Return the losses that `members` live with.

        A lineage without a master counts only as long as no master leads at all.
        """
        if not self._lost:
            return ()
        living = [belief for belief in members if belief.status in ("member", "paused")]
        leading = [belief for belief in living if belief.is_master]
        sides = {belief.lineage: belief.label for belief in reversed(leading or living)}
        return tuple(
            SideLoss(lineage, label, lost.partitions, lost.at_most, tuple(sorted(lost.maps)), lost.since_us)
            for lineage, label in sides.items()
            if (lost := self._lost.get(lineage)) is not None
        )
