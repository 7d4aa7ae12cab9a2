"""Which data was lost, one incident for each loss, and what became of the replicas that went.

Both halves of a split judge for themselves: data that one lost may be well in the other one. So a loss is feared until every
incarnation that held the partition has ended, and every other side with the same data has lost it, too. It is healed when an
incarnation that held it has merged back with its entries, or when no member of the side that lost it is left and another side
has the partition.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.data.events import DataMeasured
from quarterdeck.backend.core.membership.views.identity import Member
from quarterdeck.backend.core.partitions.events import ALL_LOST, PartitionLost
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.core.witnessed.events import MemberMeasured
from quarterdeck.backend.picture.fold.belief import MemberBelief
from quarterdeck.backend.picture.fold.data_lines import DataLines
from quarterdeck.backend.picture.fold.entry_counts import EntryCount, EntryCounts
from quarterdeck.backend.picture.fold.loss_incident import (
    CountEntries,
    Entries,
    FateState,
    LossIncident,
    PartitionFate,
    are_together,
    held_by,
    holds,
    is_living,
    is_responsible,
    owned_at,
    was_written,
)

BEFORE_LOSS_US = 60 * SECOND_US
"""Members that were removed so long before a loss may have taken the replicas with them."""
TOGETHER_US = 5 * SECOND_US
"""What a side of members of Hazelcast loses so soon after its last loss belongs to that: counts cannot tell them apart."""

REMOVALS_KEPT, LINEAGES_KEPT, INCIDENTS_KEPT, INCARNATIONS_KEPT = 200, 50, 50, 10_000

Members = Collection[MemberBelief]


class Losses:
    """The losses of a run so far."""

    def __init__(self) -> None:
        self.incidents: list[LossIncident] = []
        """The oldest first."""
        self.returned: dict[str, str] = {}
        """By incarnation, the next one of its process, or of its address: whether its entries came along is not reported."""
        self._is_shared = False
        self._number = 0
        self._counts = EntryCounts()
        self._lines = DataLines()
        self._removed: dict[str, dict[str, tuple[Member, int]]] = {}
        self._ended: dict[str, None] = {}
        self._written_us: dict[int, int] = {}
        """By partition, when a client had its latest write answered since there are losses."""
        self._brought: dict[str, dict[int, frozenset[int]]] = {}
        """By incarnation that merges with entries, by number of the incident, the lost partitions that it brings."""

    def __bool__(self) -> bool:
        return bool(self.incidents)

    def copy(self) -> Losses:
        """Return the same losses, to go their own way from here."""
        twin = Losses()
        twin.incidents, twin._number = self.incidents, self._number
        self._is_shared = twin._is_shared = True
        twin._counts, twin._lines = self._counts.copy(), self._lines.copy()
        twin.returned, twin._ended, twin._brought = self.returned.copy(), self._ended.copy(), self._brought.copy()
        twin._written_us = self._written_us.copy()
        twin._removed = {lineage: removed.copy() for lineage, removed in self._removed.items()}
        return twin

    def wrote(self, partition: int, at_us: int) -> None:
        """Note that a client had a write to a partition answered."""
        if self.incidents:
            self._written_us[partition] = at_us

    def has_ended(self, incarnation: str) -> bool:
        """Return whether records show that this incarnation holds nothing any more."""
        return incarnation in self._ended

    def bringing(self, incident: LossIncident) -> Iterator[str]:
        """Yield the incarnations that merge, and bring partitions of this loss along."""
        return (uuid for uuid, brought in self._brought.items() if incident.number in brought)

    def are_alike(self, lineage: str, others: Collection[str]) -> bool:
        """Return whether a lineage may have the same data as one of the others."""
        return any(self._lines.are_alike(lineage, other) for other in others)

    # Lists

    def removed(self, lineage: str, members: Collection[Member], at_us: int) -> None:
        """Note that a master of this lineage installed a list without these members."""
        if members:
            removed = self._removed.setdefault(lineage, {})
            for member in sorted(members, key=lambda member: member.address):
                removed[member.uuid] = (member, at_us)
            for uuid in list(removed)[:-REMOVALS_KEPT]:
                del removed[uuid]
            for former in list(self._removed)[:-LINEAGES_KEPT]:
                del self._removed[former]

    def joined(self, belief: MemberBelief, back: Collection[Address], at_us: int) -> None:
        """Fear for what a removed member of Hazelcast owns still, since nothing may migrate, and begins anew without."""
        if not belief.witnessed_by or belief.cluster_state == "ACTIVE":
            return
        went = {it.uuid: it.address for it, _ in self._removed.get(belief.lineage, {}).values() if it.address in back}
        owned, before = owned_at(belief, went.values()), self._counts.latest(belief.lineage, belief.version)
        filled = frozenset(name for name, entries in before.entries.items() if entries) if before is not None else None
        if owned and filled != frozenset():
            incident = self._begin(belief, at_us)
            incident.before, incident.is_reported, incident.was_closed = before, False, True
            incident.went, incident.maps = went, filled or frozenset()
            incident.fates = dict.fromkeys(owned, PartitionFate(frozenset(went), None))

    def follow(self, belief: MemberBelief, lineage: str, size: int) -> None:
        """Note that a member installs its first list of `lineage`, of so many members; `belief` is what it was before."""
        before, is_new = belief.lineage, not self._lines.is_known(lineage)
        self._lines.follow(before, lineage, is_founded=size == 1 and belief.seen_from_start and not before)
        if not before:
            return
        was_removed = belief.uuid in self._removed.get(before, ())
        if before in self._removed and lineage not in self._removed and not was_removed:
            self._removed[lineage] = self._removed[before].copy()
        self._counts.follow(before, belief.version, lineage)
        for incident in self._changeable() if is_new else ():
            is_behind = belief.uuid not in incident.kept and belief.version < incident.version
            if before in incident.lineages and not (before == incident.lineage and is_behind):
                incident.lineages.add(lineage)
            if before in incident.lost_by:
                incident.lost_by[lineage] = incident.lost_by[before]

    def arranged_anew(self, lineage: str) -> None:
        """Note that a master without a table has made one: what was there before is not in it."""
        self._lines.begin(lineage)

    # Losses

    def lose(
        self, master: MemberBelief, lost: PartitionLost, at_us: int, entries_of: CountEntries, members: Members
    ) -> None:
        """Note that a master recorded a partition that lost data."""
        holders = self._holders(master, lost.partition, at_us)
        if not master.witnessed_by and self._is_known(master.lineage, lost.partition, holders):
            self.settle(at_us, members)
            return
        incident = self._incident(master, at_us, is_witnessed=bool(master.witnessed_by))
        incident.until_us = at_us
        incident.at_most, incident.maps = (
            max(incident.at_most, lost.lost_backups), incident.maps.union(lost.lost_maps),
        )  # fmt: skip
        incident.went.update((uuid, where) for uuid, where in holders.items() if uuid not in incident.kept)
        closed_us = at_us if master.cluster_state != "ACTIVE" else master.cluster_state_since_us
        incident.date(self._removed.get(master.lineage, {}).values(), closed_us)
        entries = entries_of(lost.partition, holders)
        fate = PartitionFate(frozenset(holders), *entries)
        if entries.number == 0:
            fate = fate._replace(state="refuted")
        incident.fates.setdefault(lost.partition, fate)
        self.settle(at_us, members)

    def _is_known(self, lineage: str, partition: int, holders: Collection[str]) -> bool:
        """Note a partition that an earlier incident has: its side reports it late, or another side has lost it as well."""
        for incident in reversed(self._changeable()):
            fate = incident.fates.get(partition)
            if fate is None or incident.is_witnessed:
                continue
            is_same = not fate.holders.isdisjoint(holders)  # else what was written since is lost
            if lineage in incident.lineages:
                if not is_same:
                    continue
            elif (is_same or fate.state == "feared") and self._lines.are_alike(lineage, incident.lineage):
                incident.lost_by[lineage] = incident.lost_by.get(lineage, frozenset()) | {partition}
            else:
                continue
            incident.fates[partition] = fate._replace(holders=fate.holders.union(holders))
            return True
        return False

    def _holders(self, master: MemberBelief, partition: int, at_us: int) -> dict[str, Address]:
        """Return who held a partition that a master records as lost: by its table, else who was removed lately."""
        if master.table is not None and master.shows("backups"):
            row = [holder for holder in master.table.row(partition) if holder is not None]
            if row:
                return {holder.uuid: holder.address for holder in row}
        from_us = at_us - BEFORE_LOSS_US
        if master.cluster_state != "ACTIVE":  # no copy was made since
            from_us = min(from_us, master.cluster_state_since_us)
        removed = self._removed.get(master.lineage, {}).values()
        return {member.uuid: member.address for member, removed_us in removed if removed_us >= from_us}

    def _incident(self, master: MemberBelief, at_us: int, *, is_witnessed: bool) -> LossIncident:
        """Return the incident that a loss of this side belongs to: a new one, or that of the same moment."""
        for incident in reversed(self._changeable()):
            if incident.lineage == master.lineage and incident.is_reported:
                is_same = incident.after is None if is_witnessed else incident.version == master.version
                if is_same and at_us - incident.until_us <= TOGETHER_US:
                    return incident
                break
        return self._begin(master, at_us)

    def _begin(self, belief: MemberBelief, at_us: int) -> LossIncident:
        incidents = self._changeable()
        self._number += 1
        kept = frozenset(member.uuid for member in belief.members)
        before = self._counts.before(belief.lineage, belief.version, kept) if belief.witnessed_by else None
        incident = LossIncident(
            self._number, at_us, at_us, belief.master, belief.lineage, belief.version, {belief.lineage}, kept,
            bool(belief.witnessed_by),
            at_most=0 if belief.witnessed_by else ALL_LOST, before=before, state=belief.cluster_state,
        )  # fmt: skip
        incidents.append(incident)
        del incidents[:-INCIDENTS_KEPT]
        return incident

    def _changeable(self) -> list[LossIncident]:
        """Return the incidents, no longer shared with a copy of this picture."""
        if self._is_shared:
            self.incidents, self._is_shared = [incident.copy() for incident in self.incidents], False
        return self.incidents

    # Ends and merges

    def ended(self, belief: MemberBelief, at_us: int, entries_of: CountEntries, members: Members) -> None:
        """Note that an incarnation has ended, and all that it held with it."""
        if belief.uuid in self._ended:
            return
        self._end(belief.uuid)
        self._brought.pop(belief.uuid, None)
        others = [other for other in members if other.uuid != belief.uuid]
        is_last = not any(is_living(one) and self._lines.are_alike(one.lineage, belief.lineage) for one in others)
        if belief.status != "stopped" or not is_last:  # the last one is meant to take the data along
            self._lose_with(belief, at_us, entries_of, others)
        self.settle(at_us, others)

    def reached(self, belief: MemberBelief) -> None:
        """Note how a member of Hazelcast is reached: where no process is at its address any more, the incarnation has ended."""
        state = "" if belief.connection is None else belief.connection.state
        if state == "gone" and belief.witnessed_by != ("logs",):
            self._end(belief.uuid)
        elif state == "connected":
            self._ended.pop(belief.uuid, None)

    def _end(self, incarnation: str) -> None:
        self._ended[incarnation] = None
        if len(self._ended) > INCARNATIONS_KEPT:
            del self._ended[next(iter(self._ended))]

    def _lose_with(self, belief: MemberBelief, at_us: int, entries_of: CountEntries, others: Members) -> None:
        """Begin an incident for the partitions of which an ended member of ours had the only replica."""
        table = belief.table
        if belief.witnessed_by or table is None:
            return
        held, apart = held_by(belief), set[int]()
        for other in others:
            if held and is_living(other) and self._lines.are_alike(other.lineage, belief.lineage):
                if are_together(belief, other):
                    held -= held_by(other)
                else:
                    apart |= held_by(other)
        apart &= held
        if not held:
            return
        feared = {partition for incident in self.incidents for partition, _ in incident.feared()}
        incident: LossIncident | None = None
        for partition in sorted(held - feared):
            holders = {holder.uuid: holder.address for holder in table.row(partition) if holder is not None}
            entries = entries_of(partition, (belief.uuid, *holders))
            if entries.number == 0 or (partition in apart and not was_written(belief, others, partition)):
                continue
            if incident is None:
                incident = self._begin(belief, at_us)
                incident.went[belief.uuid], incident.is_reported = belief.address, False
                incident.named_us = table.since_us
            is_apart = partition in apart
            entries = Entries(None) if is_apart else entries
            incident.fates[partition] = PartitionFate(frozenset((*holders, belief.uuid)), *entries, is_apart=is_apart)

    def merging(self, belief: MemberBelief, next_uuid: str, brings: bool | None, at_us: int, members: Members) -> None:
        """Note that an incarnation goes over to another cluster, with its entries if it `brings` some."""
        if brings is None:
            self.replaced(belief.uuid, next_uuid)
            return
        carried = self._brought.pop(belief.uuid, {})
        for incident in self._changeable():
            own = {p for p, _ in incident.feared() if is_responsible(belief, p)} if is_living(belief) else set[int]()
            if brings and (own or incident.number in carried):
                carried[incident.number] = carried.get(incident.number, frozenset()) | own
            elif own:
                incident.settle(own, "refuted", at_us)  # it had nothing in them
        if brings:
            self._brought[next_uuid] = carried
            self._lines.bring(next_uuid, belief.lineage, belief.uuid)
        self._end(belief.uuid)
        self.settle(at_us, (other for other in members if other.uuid != belief.uuid))

    def merged(self, belief: MemberBelief, at_us: int, members: Members, *, came: bool) -> None:
        """Note that the merging of an incarnation has ended, and whether its entries came."""
        brought = self._brought.pop(belief.uuid, {})
        if came:
            self._lines.merge(belief.uuid, belief.lineage)
            for incident in self._changeable():
                if belief.lineage in incident.lineages:
                    back = {p for p in brought.get(incident.number, ()) if incident.fates[p].state == "feared"}
                    incident.settle(back, "healed", at_us)
        self.settle(at_us, members)

    def replaced(self, before: str, incarnation: str) -> None:
        """Note that another incarnation answers at an address. Whether the process went on is not known yet, or never."""
        self.returned[before] = incarnation
        if len(self.returned) > INCARNATIONS_KEPT:
            del self.returned[next(iter(self.returned))]

    def started(self, incarnation: str) -> None:
        """Note that an incarnation is the first of its process: the one before it at its address has ended."""
        for before in [before for before, after in self.returned.items() if after == incarnation]:
            del self.returned[before]
            self._end(before)

    # Who may still hold what was lost

    def carriers(self, incident: LossIncident, members: Members) -> Callable[[int, PartitionFate], list[str]]:
        """Return a function of a lost partition and its fate: it lists the incarnations that may hold the partition still."""
        known = {belief.uuid: belief for belief in members}
        elsewhere = [belief for belief in known.values() if self._is_elsewhere(incident, belief)]
        bringing = [(uuid, self._brought[uuid][incident.number]) for uuid in self.bringing(incident)]

        def carriers_of(partition: int, fate: PartitionFate) -> list[str]:
            found = [
                uuid for uuid in fate.holders
                if uuid not in self._ended and self._may_hold(incident, partition, known.get(uuid))
            ]  # fmt: skip
            found += [
                belief.uuid for belief in elsewhere
                if partition not in incident.lost_by.get(belief.lineage, ()) and holds(belief, partition)
            ]  # fmt: skip
            found += [uuid for uuid, brought in bringing if partition in brought]
            return list(dict.fromkeys(found))

        return carriers_of

    def _may_hold(self, incident: LossIncident, partition: int, holder: MemberBelief | None) -> bool:
        if holder is None or incident.is_witnessed:
            return True  # it was never met, or reports no backups
        is_behind = holder.table is None or holder.table.since_us < incident.named_us
        return is_living(holder) and (is_behind or holds(holder, partition))

    def _is_elsewhere(self, incident: LossIncident, belief: MemberBelief) -> bool:
        """Return whether a member has the same data as the side that lost some, and belongs to another side."""
        if incident.is_witnessed or not is_living(belief):
            return False
        if belief.lineage in incident.lineages:  # frozen, it is still on a list from before the loss
            is_behind = belief.lineage == incident.lineage and belief.version < incident.version
            return is_behind and belief.uuid not in incident.kept
        return self._lines.are_alike(belief.lineage, incident.lineage)

    def settle(self, at_us: int, members: Iterable[MemberBelief]) -> None:
        """Confirm, heal or refute what records decide by now. Whether a member of Hazelcast has ended its watcher judges."""
        if not any(incident.is_open for incident in self.incidents):
            return
        beliefs = list(members)
        holding = {belief.uuid for belief in beliefs if is_living(belief) and belief.reached}
        for incident in self._changeable():
            if not incident.is_open:
                continue
            carriers_of = self.carriers(incident, beliefs)
            elsewhere = {belief.uuid for belief in beliefs if self._is_elsewhere(incident, belief)}
            is_over = not any(
                belief.lineage in incident.lineages and is_living(belief) and belief.uuid not in elsewhere
                for belief in beliefs
            )
            states: dict[FateState, list[int]] = {}
            for partition, fate in incident.feared():
                if fate.is_apart:
                    continue
                carriers = carriers_of(partition, fate)
                if not carriers and fate.holders and not incident.is_witnessed:
                    states.setdefault("confirmed", []).append(partition)
                elif is_over and not holding.isdisjoint(carriers or elsewhere):
                    states.setdefault("healed", []).append(partition)
            for partition in states.get("confirmed", ()):
                if at_us > incident.until_us and self._was_changed(incident, beliefs, partition):
                    incident.fates[partition] = incident.fates[partition]._replace(entries=None)
            for state, partitions in states.items():
                incident.settle(partitions, state, at_us)

    def _was_changed(self, incident: LossIncident, members: Members, partition: int) -> bool:
        """Return whether entries of a partition were written or removed after its side lost it: they may be the lost ones."""
        if self._written_us.get(partition, -1) >= incident.at_us:
            return True
        counted = (belief.data.partitions.get(partition) for belief in members if belief.data is not None)
        return any(stored.entries > 0 and stored.at_us > incident.at_us for stored in counted if stored is not None)

    # Entries of members of Hazelcast

    def measured(
        self, belief: MemberBelief, event: DataMeasured | MemberMeasured, at_us: int, members: Members
    ) -> None:
        """Apply what a member of Hazelcast reports of its entries, or of itself: then its entries are as before."""
        counted = self._counts.take(belief, event, members)
        if counted is None:
            return
        before, count = counted
        uncounted = []
        for incident in self._changeable():
            if belief.lineage not in incident.lineages or count.at_us <= incident.until_us:
                continue
            if incident.after is None and incident.before is not None:
                uncounted.append(incident)
            elif incident.is_back(count):
                incident.settle([p for p, _ in incident.feared()], "healed", at_us)
        for incident in uncounted:
            incident.recount(count, is_alone=len(uncounted) == 1)
            if incident.entries_lost() == (0, True):
                has_returned = not self.returned.keys().isdisjoint(incident.went)
                incident.settle([p for p, _ in incident.feared()], "healed" if has_returned else "refuted", at_us)
        is_known = any(
            (one.is_reported or one in uncounted)
            and belief.lineage in one.lineages
            and (before is None or one.until_us > before.at_us)
            for one in self.incidents
        )
        if before is not None and not is_known:
            self._look_for_fall(belief, before, count, members)

    def _look_for_fall(self, belief: MemberBelief, before: EntryCount, count: EntryCount, members: Members) -> None:
        """Begin an incident where members were removed, and entries of maps fell that were not written to."""
        removed = self._removed.get(belief.lineage, {}).values()
        went = {member.uuid: (member.address, us) for member, us in removed if before.at_us < us <= count.at_us}
        fell = [
            name for name, entries in before.entries.items()
            if entries > count.entries.get(name, 0) and not before.writes_until(count, name)
        ]  # fmt: skip
        if not went or not fell:
            return
        incident = self._begin(belief, max(removed_us for _, removed_us in went.values()))
        incident.before, incident.after, incident.is_reported = before, count, False
        incident.went = {uuid: address for uuid, (address, _) in went.items()}
        incident.maps = frozenset(fell)
        since_us = max(other.cluster_state_since_us for other in members if other.lineage == belief.lineage)
        incident.was_closed = belief.cluster_state != "ACTIVE" or since_us > before.at_us
        incident.fates = dict.fromkeys(owned_at(belief, incident.went.values()), PartitionFate(frozenset(went), None))
