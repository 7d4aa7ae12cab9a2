"""Which members are one undivided cluster, and since when: in such a stretch its data is one register for each key.

While nothing divides the members, all of them are one. In a division those are one whose list is the same at all on it, with
one table that names no others (a FROZEN or PASSIVE cluster keeps the names of those who left), until a list leaves one of them
off, they merge, or too many of them end.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from quarterdeck.backend.core.cluster_profile import allows_promotions
from quarterdeck.backend.core.data.events import EntriesMerged
from quarterdeck.backend.core.events import ProcessKilled, Record
from quarterdeck.backend.core.membership.events import ClusterStateChanged, ListInstalled, MemberMerging, MemberStopped
from quarterdeck.backend.core.partitions.events import ALL_LOST, PartitionLost
from quarterdeck.backend.invariants.data.holder_losses import HolderLosses
from quarterdeck.backend.invariants.event_rules import EventRules
from quarterdeck.backend.invariants.incarnations import IncarnationHistory
from quarterdeck.backend.invariants.partition_tables import PartitionRow, PartitionTables

MERGE_POLICY, DEFAULT_POLICY = "quarterdeck.merge.policy", "put-if-absent"
FILLING = ("put-if-absent", "discard")
"""The policies by which the values of the winner stay."""


@dataclass(slots=True, eq=False)
class UndividedStretch:
    """A time in which some members are one undivided cluster."""

    began: int
    """When, on the clock of calls (`HolderLosses.clock`)."""
    members: set[str]
    """The members of a side of a division; nothing is said of them while nothing is divided."""
    before: UndividedStretch | None = None
    """The stretch whose values are still present where no write has replaced them since."""
    kept: frozenset[int] = frozenset()
    """The partitions for which that is so."""
    is_filled: bool = False
    """Whether a merge may have added values."""
    is_own: bool = False
    """Whether writes of other sides of the division leave the values of the stretch before unchanged."""
    unserved: frozenset[int] = frozenset()
    """Partitions whose rows keep the name of an owner elsewhere. That owner may still carry out requests."""
    is_whole: bool = False
    """Whether all members are in it, so that the sides of a division before it are nowhere any more."""
    is_over: bool = False
    over_at: int = 0
    losses_left: int = 0
    """The number of members of a side that may end before data may be lost."""

    def earlier(self, partition: int | None) -> Iterator[EarlierStretch]:
        """Yield the stretches whose values of a partition are still present in this stretch, where no write has replaced them."""
        stretch, is_filled, is_own = self, False, True
        while stretch.before is not None and partition in stretch.kept:
            is_filled |= stretch.is_filled
            is_own &= stretch.is_own
            stretch = stretch.before
            yield EarlierStretch(stretch, is_filled, is_own)


class EarlierStretch(NamedTuple):
    """A stretch before another one."""

    stretch: UndividedStretch
    is_filled: bool
    """Whether a merge may have added values."""
    is_own: bool
    """Whether writes of other sides of the division make no difference."""


class _Last(NamedTuple):
    """The last stretch of some members. By partition, who held it in the end: each of them had all that was acknowledged."""

    stretch: UndividedStretch
    holders: Mapping[int, set[str | None]]


class UndividedClusters(EventRules):
    """The undivided clusters of a run. `tables` and `losses` must be shown each record before."""

    def __init__(self, tables: PartitionTables, losses: HolderLosses) -> None:
        self._tables = tables
        self._losses = losses
        self._whole: UndividedStretch | None = UndividedStretch(0, set())
        """The stretch of all members while nothing divides them."""
        self._sides: dict[str, UndividedStretch] = {}
        """In a division, the stretch of each member that is in one."""
        self._last_whole: UndividedStretch | None = None
        """The one before the division."""
        self._last: dict[str, _Last] = {}
        """Since then, the latest stretch of each member."""
        self._lost: dict[str, set[int]] = defaultdict(set)
        """By member, the partitions of which all was lost for its cluster since that stretch."""
        self._lost_anywhere: set[int] = set()
        """The same for all of them, since the division began."""
        self._is_filled: dict[str, bool] = {}
        """The members of clusters into which others have merged since then: whether the merge filled only empty keys."""
        self._keeping_names: set[str] = set()
        """The members whose tables name holders that have left, by the state of their cluster."""
        self._is_lost = self._is_reunited = False
        """Whether a member has ended or entries were discarded since then; whether all are one again."""
        tables.reunited.append(self._note_reunion)

    def of(self, uuid: str) -> UndividedStretch | None:
        """Return the stretch that the member is in now; None while it is in no undivided cluster."""
        if self._is_reunited:
            self._reunite()
        if not self._tables.division:
            return self._whole
        if uuid not in self._sides:
            self._look_for_side(uuid)
        return self._sides.get(uuid)

    # What the records show

    def _install(self, record: Record, event: ListInstalled) -> None:
        self._reunite()
        if not self._tables.division:
            return
        self._begin_division()
        side = self._sides.get(record.uuid)
        incarnation = self._tables.incarnations.of(record)
        if side is not None:
            if not self._goes_on(side, event):
                self._end(side)
            elif (
                event.cause == "demotion"
            ):  # The copies of the demoted member are gone, also where others could take them.
                side.losses_left = min(side.losses_left, max(1, self._fewest_holders(record.uuid, side.members)))
        elif incarnation.before is None and record.uuid not in self._tables.bringing:
            self._join(record.uuid, event)

    def _change_state(self, record: Record, event: ClusterStateChanged) -> None:
        (self._keeping_names.discard if allows_promotions(event.state) else self._keeping_names.add)(record.uuid)

    def _lose(self, record: Record, event: PartitionLost) -> None:
        """Note a loss for all members of the cluster: the master that records it may leave."""
        if event.lost_backups >= ALL_LOST:
            reporter = self._tables.incarnations.by_uuid.get(record.uuid)  # None where records begin later
            members = reporter.members if reporter is not None else ()
            for uuid in {record.uuid, *(member.uuid for member in members)}:
                self._lost[uuid].add(event.partition)
            self._lost_anywhere.add(event.partition)

    def _brought(self, record: Record, event: EntriesMerged) -> None:
        self._is_lost |= event.policy == "discard" or bool(event.problem)
        self._fill(self._tables.incarnations.of(record), event.policy)
        self._reunite()

    def _merge(self, record: Record, event: MemberMerging) -> None:
        self._reunite()
        self._begin_division()
        incarnations = self._tables.incarnations
        target = incarnations.by_address.get(event.target)
        for uuid in (record.uuid, target.uuid if target is not None else ""):
            if (side := self._sides.get(uuid)) is not None:
                self._end(side)
        if target is not None:
            policy = incarnations.of(record).settings.get(MERGE_POLICY, DEFAULT_POLICY)
            self._fill(target, policy)

    def _fill(self, winner: IncarnationHistory, policy: str) -> None:
        """Note the effect of a merge on the values of the members on the winner's list."""
        for member in winner.members:
            self._is_filled[member.uuid] = policy in FILLING and self._is_filled.get(member.uuid, True)

    def _gone(self, record: Record, event: MemberStopped | ProcessKilled) -> None:
        uuid = self._tables.incarnations.ended_by(record)
        self._is_lost = True
        side = self._sides.pop(uuid, None)
        if side is not None:
            side.members.discard(uuid)
            side.losses_left -= 1
            if side.losses_left <= 0:
                self._end(side)
        self._reunite()

    # Divisions

    def _begin_division(self) -> None:
        if self._whole is not None:
            self._last_whole, self._whole = self._whole, None
            self._over(self._last_whole)
            last = _Last(self._last_whole, _holders(self._tables.newest))
            self._last = {incarnation.uuid: last for incarnation in self._tables.alive()}
            self._lost.clear()
            self._lost_anywhere.clear()
            self._is_filled.clear()
            self._is_lost = False

    def _note_reunion(self) -> None:
        self._is_reunited = True

    def _reunite(self) -> None:
        """End the division if all are one again, maybe as they were one side of it already."""
        if not self._is_reunited:
            return
        self._is_reunited = False
        sides = {id(side): side for side in self._sides.values()}
        whole = next(iter(sides.values())) if len(sides) == 1 else None
        if whole is None or any(incarnation.uuid not in whole.members for incarnation in self._tables.alive()):
            for side in sides.values():
                self._end(side)
            whole = self._begun({member.uuid for member in self._tables.alive()})
        whole.is_whole = True
        self._whole, self._last_whole = whole, None
        self._sides.clear()

    def _goes_on(self, side: UndividedStretch, event: ListInstalled) -> bool:
        """Return whether a list of a member leaves its cluster undivided."""
        listed = {member.uuid for member in event.members}
        if any(uuid not in listed and not self._tables.is_gone(uuid) for uuid in side.members):
            return False
        if self._names_bringing(event):
            return False
        by_uuid = self._tables.incarnations.by_uuid
        strangers = [by_uuid[uuid] for uuid in listed - side.members if uuid in by_uuid]
        return all(other.view is None or self._tables.is_gone(other.uuid) for other in strangers)

    def _join(self, uuid: str, event: ListInstalled) -> None:
        """Add a newcomer to the side whose list it installs first."""
        listed = {member.uuid for member in event.members}
        of_others = {id(side): side for uuid in listed if (side := self._sides.get(uuid)) is not None}
        if len(of_others) == 1:
            (side,) = of_others.values()
            of_its_lineage = all(self._lists(member, event.lineage, set()) for member in side.members)
            if of_its_lineage and side.members <= listed and not self._tables.has_left_off(uuid, event, side.members):
                side.members.add(uuid)
                self._sides[uuid] = side

    def _look_for_side(self, uuid: str) -> None:
        """Begin a stretch if the members on this member's list are one cluster by now."""
        tables, incarnation = self._tables, self._tables.incarnations.by_uuid.get(uuid)
        view = incarnation.view if incarnation is not None else None
        if view is None or tables.is_gone(uuid):
            return
        members = {member.uuid for member in view.members}
        if members & self._sides.keys() or not all(self._lists(uuid, view.lineage, members) for uuid in members):
            return
        if any(self._names_bringing(tables.incarnations.by_uuid[uuid].view) for uuid in members):
            return  # Some may have a newer list than this member.
        outside = {place for uuid in members for place in self._places_outside(uuid, members)}
        if outside and not all(uuid in self._keeping_names and self._lists_only(uuid, members) for uuid in members):
            return
        side = self._begun(members)
        side.unserved = frozenset(partition for partition, replica_index in outside if replica_index == 0)
        side.kept -= side.unserved
        side.losses_left = self._fewest_holders(uuid, members)
        self._sides.update(dict.fromkeys(members, side))

    def _fewest_holders(self, uuid: str, members: set[str]) -> int:
        """Return how many of these members hold a partition, by the member's table, of which the fewest hold any."""
        table, listed = self._tables.by_incarnation.get(uuid), self._tables.incarnations.by_uuid[uuid].members
        holding = members - {member.uuid for member in listed if member.lite}
        return min((len(holding.intersection(row.holders)) for row in table.rows.values()), default=0) if table else 0

    def _lists(self, uuid: str, lineage: str, members: set[str]) -> bool:
        """Return whether the member is running and has a list of this lineage on which all these members are."""
        incarnation = self._tables.incarnations.by_uuid.get(uuid)
        if incarnation is None or incarnation.view is None or self._tables.is_gone(uuid):
            return False
        view = incarnation.view
        return view.lineage == lineage and members <= {member.uuid for member in view.members}

    def _names_bringing(self, view: ListInstalled | None) -> bool:
        """Return whether a list names members that bring their entries along, which may overwrite present ones."""
        bringing = self._tables.bringing
        return bool(bringing) and view is not None and any(member.uuid in bringing for member in view.members)

    def _lists_only(self, uuid: str, members: set[str]) -> bool:
        """Return whether the member's list names no others that live."""
        view = self._tables.incarnations.by_uuid[uuid].view
        return view is not None and all(
            other.uuid in members or self._tables.is_gone(other.uuid) for other in view.members
        )

    def _places_outside(self, uuid: str, members: set[str]) -> Iterator[tuple[int, int]]:
        """Yield partition and replica index of the replicas that other members hold in the member's table."""
        table = self._tables.by_incarnation.get(uuid)
        for partition, row in table.rows.items() if table is not None else ():
            for replica_index, holder in enumerate(row.holders):
                if holder is not None and holder not in members:
                    yield partition, replica_index

    def _begun(self, members: set[str]) -> UndividedStretch:
        """Begin the stretch of these members, with the values that they still have of the stretch before."""
        now = self._losses.clock
        latest = {id(last.stretch): last for uuid in members if (last := self._last.get(uuid)) is not None}
        merged = {filled for uuid in members if (filled := self._is_filled.get(uuid)) is not None}
        if False in merged or len(latest) != 1:
            if self._is_lost or any(incarnation.uuid not in members for incarnation in self._tables.alive()):
                return UndividedStretch(now, members)
            untouched = frozenset(self._tables.newest.keys() - self._lost_anywhere)
            return UndividedStretch(now, members, self._last_whole, untouched)
        (last,) = latest.values()
        lost = set().union(*(self._lost[uuid] for uuid in members & self._lost.keys()))
        kept = frozenset(
            partition for partition, held in last.holders.items() if held & members and partition not in lost
        )
        return UndividedStretch(now, members, last.stretch, kept, is_filled=bool(merged), is_own=True)

    def _end(self, side: UndividedStretch) -> None:
        self._over(side)
        tables = [self._tables.by_incarnation[uuid] for uuid in side.members if uuid in self._tables.by_incarnation]
        newest = max(tables, key=lambda table: table.version, default=None)
        last = _Last(side, _holders(newest.rows if newest is not None else {}))
        for uuid in side.members:
            self._sides.pop(uuid, None)
            self._last[uuid] = last
            self._lost.pop(uuid, None)

    def _over(self, stretch: UndividedStretch) -> None:
        stretch.is_over, stretch.over_at = True, self._losses.clock


def _holders(rows: Mapping[int, PartitionRow]) -> dict[int, set[str | None]]:
    return {partition: set(row.holders) - {None} for partition, row in rows.items()}
