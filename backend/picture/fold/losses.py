"""Which partitions lost data, by the lineage that lost them.

Both halves of a split judge for themselves: what one lost may be well in the other one. So a loss belongs to a lineage. It goes
over to the lineage that follows when a member goes on under a new master, and ends with the last member that holds such a list: a
member that merges begins a new incarnation with the data of the cluster that it joins. A loss is made good when all members that
left before it have merged back with their entries.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from quarterdeck.backend.core.membership.views.identity import Member
from quarterdeck.backend.core.partitions.events import PartitionLost
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.picture.fold.belief import MemberBelief

BEFORE_LOSS_US = 60 * SECOND_US
"""Members that were removed so long before a loss took the replicas with them."""

REMOVALS_KEPT = 200
LINEAGES_KEPT = 50

COUNTED_AFTER_US = 10 * SECOND_US
"""So long after a loss every member of Hazelcast has counted its entries anew: metrics come every 5 seconds."""


class LineageLoss(NamedTuple):
    """What one lineage lost."""

    entries_of: dict[int, int | None]
    """By partition; None where it is not known."""
    at_most: int
    maps: frozenset[str]
    since_us: int
    until_us: int
    before: Mapping[str, int] | None = None
    """By map, the entries that all members together owned before, where a witness knows them."""
    after: Mapping[str, int] | None = None
    """The same once every member has counted them anew."""

    def copy(self) -> LineageLoss:
        return self._replace(entries_of=self.entries_of.copy())


class Losses:
    """The losses of a run so far."""

    def __init__(self) -> None:
        self._lost: dict[str, LineageLoss] = {}
        self._removed: dict[str, dict[Member, int]] = {}
        self._restored: frozenset[str] = frozenset()
        self._bringing: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self._lost)

    def copy(self) -> Losses:
        """Return the same losses, to go their own way from here."""
        twin = Losses()
        twin._lost = {lineage: lost.copy() for lineage, lost in self._lost.items()}
        twin._restored, twin._bringing = self._restored, self._bringing
        twin._removed = {lineage: removed.copy() for lineage, removed in self._removed.items()}
        return twin

    def removed(self, lineage: str, members: Collection[Member], at_us: int) -> None:
        """Note that a master of this lineage installed a list without these members."""
        if members:
            removed = self._removed.setdefault(lineage, {})
            removed.update(dict.fromkeys(sorted(members, key=lambda member: member.address), at_us))
            for member in list(removed)[:-REMOVALS_KEPT]:
                del removed[member]
            for former in list(self._removed)[:-LINEAGES_KEPT]:
                del self._removed[former]

    def take(
        self, lineage: str, lost: PartitionLost, at_us: int, entries: int | None, members: Collection[MemberBelief]
    ) -> None:
        """Note that a master of this lineage recorded a partition that lost data, of which `entries` were known."""
        known = self._lost.get(lineage)
        if known is None:
            before = self._owned(lineage, members, removed=True)
            known = LineageLoss({}, 0, frozenset(), at_us, at_us, before)
        known.entries_of.setdefault(lost.partition, entries)
        self._lost[lineage] = known._replace(
            at_most=max(known.at_most, lost.lost_backups), maps=known.maps.union(lost.lost_maps), until_us=at_us
        )

    def counted(self, lineage: str, at_us: int, members: Collection[MemberBelief]) -> None:
        """Keep what `members` own now if that was counted after a loss of this lineage: they report something newer next."""
        lost = self._lost.get(lineage)
        if lost is not None and lost.after is None and at_us - lost.until_us >= COUNTED_AFTER_US:
            self._lost[lineage] = lost._replace(after=self._owned(lineage, members))

    def _owned(
        self, lineage: str, members: Collection[MemberBelief], *, removed: bool = False
    ) -> Mapping[str, int] | None:
        """Return by map how many entries members of a witness own together; None where one of them did not report any.

        With `removed` those that were removed lately are counted, too; else they are not.
        """
        gone = {member.uuid for member in self._removed.get(lineage, {})}
        owned: dict[str, int] = {}
        for belief in members:
            lives = belief.lineage == lineage and belief.status in ("member", "paused")
            if not belief.witnessed_by or not (removed if belief.uuid in gone else lives):
                continue
            if belief.data is None:
                return None
            for name, stored in belief.data.maps.items():
                owned[name] = owned.get(name, 0) + stored.entries
        return owned or None

    def bring(self, incarnation: str) -> None:
        """Note that an incarnation ends to merge elsewhere, and brings entries."""
        if self._lost:
            self._bringing |= {incarnation}

    def merged(self, lineage: str, incarnation: str, *, came: bool) -> None:
        """Note that the merging of an incarnation into this lineage has ended, and whether its entries came."""
        self._bringing -= {incarnation}
        if came and lineage in self._lost:
            self._restored |= {incarnation}

    def follow(self, before: str, lineage: str, incarnation: str, members: Iterable[MemberBelief]) -> None:
        """Note that an incarnation of the lineage `before` is the first to install a list of `lineage`.

        One that was removed from `before` knows nothing of what that lost since.
        """
        if any(member.uuid == incarnation for member in self._removed.get(before, ())):
            return
        if before in self._lost and all(belief.lineage != lineage for belief in members):
            self._lost[lineage] = self._lost[before].copy()
            self._removed[lineage] = self._removed.get(before, {}).copy()

    def of(self, lineage: str) -> LineageLoss | None:
        """Return what a lineage lost; None where that is nothing, or all that went have merged back with their entries."""
        removed = self.removed_before(lineage)
        restored = removed and self._restored.issuperset(member.uuid for member in removed)
        return None if restored else self._lost.get(lineage)

    def removed_before(self, lineage: str) -> tuple[Member, ...]:
        """Return the members that were removed before a loss of this lineage, the first one first."""
        lost = self._lost.get(lineage)
        if lost is None:
            return ()
        gone, from_us = self._removed.get(lineage, {}), lost.since_us - BEFORE_LOSS_US
        return tuple(member for member, at_us in gone.items() if from_us <= at_us <= lost.until_us)

    def is_bringing(self, incarnation: str) -> bool:
        """Return whether an incarnation has gone over to another side with entries, and its merging has not ended yet."""
        return incarnation in self._bringing

    def fewer(self, lineage: str, members: Collection[MemberBelief], now_us: int) -> dict[str, int]:
        """Return by map how many entries fewer there are than before the loss, as far as that is known."""
        lost = self._lost[lineage]
        after = lost.after
        if after is None and now_us - lost.until_us >= COUNTED_AFTER_US:
            after = self._owned(lineage, members)
        if lost.before is None or after is None:
            return {}
        differences = {name: count - after.get(name, 0) for name, count in lost.before.items()}
        return {name: fewer for name, fewer in differences.items() if fewer > 0}
