"""One loss of data, as far as the records of members show: which partitions one side lost, and who may still hold them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.cluster_profile import ClusterState
from quarterdeck.backend.core.membership.views.identity import Member
from quarterdeck.backend.picture.fold.belief import MemberBelief
from quarterdeck.backend.picture.fold.entry_counts import EntryCount

FateState = Literal["feared", "confirmed", "healed", "refuted"]
"""Whether replicas may be left, none is, the side has the entries again, or there were no entries."""


class Entries(NamedTuple):
    """How many entries a partition had as it was counted last; None where that is not known."""

    number: int | None
    is_exact: bool = False


CountEntries = Callable[[int, Collection[str]], Entries]
"""Returns the entries of a partition that these incarnations held."""


class PartitionFate(NamedTuple):
    """What is known of one partition that a side has lost."""

    holders: frozenset[str]
    """The incarnations that held it, or may have held it, when that side lost it."""
    entries: int | None
    """How many entries it had as its owner counted last; None where that is not known."""
    is_exact: bool = False
    """Whether nothing was written between the last count and the loss."""
    state: FateState = "feared"
    is_apart: bool = False
    """Whether another side has the partition, without the writes that this side has acknowledged since they are apart."""


class LossIncident(Struct):
    """One loss of one side. Incidents are never added to each other."""

    number: int
    """Counts the incidents of a run."""
    at_us: int
    """When the data went: the removal, the kill, or the first record of a lost partition."""
    until_us: int
    """Time of the last record of it."""
    master: Address | None
    """The master of the side when it lost the data."""
    lineage: str
    version: int
    """The list of that side."""
    lineages: set[str]
    """The lineage of that side, and those that followed it."""
    kept: frozenset[str]
    """The incarnations on that list."""
    is_witnessed: bool
    named_us: int = 0
    """When the table changed last that names the holders of an ended member's partitions; 0 for a reported loss."""
    went: dict[str, Address] = {}
    """By incarnation, the members with which the data went."""
    fates: dict[int, PartitionFate] = {}
    at_most: int = 0
    """Maps with at most so many backups lost entries."""
    maps: frozenset[str] = frozenset()
    """Names or patterns of maps with too few backups, by the configuration."""
    lost_by: dict[str, frozenset[int]] = {}
    """By lineage of another side, the partitions that it lost as well."""
    before: EntryCount | None = None
    """The last count before the loss."""
    after: EntryCount | None = None
    """The first count after it."""
    is_alone: bool = True
    """Whether no other loss lies between the two counts."""
    state: ClusterState = "ACTIVE"
    """The state of the cluster at that time."""
    was_closed: bool = False
    """Whether the cluster allowed no migrations, so that a member that is started again begins empty in spite of backups."""
    is_reported: bool = True
    """Whether members reported lost partitions; else entries only fell, or the last holder ended."""
    settled_us: int | None = None
    """When the last partition was confirmed, healed or refuted."""

    def copy(self) -> LossIncident:
        return replace(
            self,
            lineages=set(self.lineages),
            went=self.went.copy(),
            fates=self.fates.copy(),
            lost_by=self.lost_by.copy(),
        )

    def date(self, removed: Iterable[tuple[Member, int]], closed_us: int) -> None:
        """Date it to the last removal of a member that went, if the cluster was closed since: it reports losses only when open.

        `closed_us` is when it was closed last.
        """
        removals_us = [at_us for member, at_us in removed if member.uuid in self.went]
        if self.is_witnessed and max(removals_us, default=closed_us) < closed_us:
            self.at_us = min(self.at_us, max(removals_us))

    @property
    def is_open(self) -> bool:
        """Return whether a replica of one of its partitions may be left."""
        return any(fate.state == "feared" for fate in self.fates.values())

    def feared(self) -> Iterator[tuple[int, PartitionFate]]:
        """Yield the partitions of which a replica may be left."""
        return ((partition, fate) for partition, fate in self.fates.items() if fate.state == "feared")

    def settle(self, partitions: Iterable[int], state: FateState, at_us: int) -> None:
        for partition in partitions:
            self.fates[partition] = self.fates[partition]._replace(state=state)
            self.settled_us = at_us

    def recount(self, after: EntryCount, *, is_alone: bool) -> None:
        """Take the first count after the loss. Where no member reported the loss, the maps that fell are the lost ones."""
        self.after, self.is_alone = after, is_alone
        if self.before is not None and not self.is_reported:
            before = self.before.entries
            fell = (name for name in self.maps if after.entries.get(name, 0) < before.get(name, 0))
            self.maps = frozenset(fell) or self.maps

    def lost_maps(self) -> tuple[str, ...] | None:
        """Return the maps that lost entries: by the counts, else those that had some and too few backups; None if unknown."""
        before = self.before
        if before is None:
            return None
        if not self.is_reported:
            return tuple(sorted(self.maps))
        able = [name for name, count in before.entries.items() if count and before.backups.get(name, 0) <= self.at_most]
        if self.after is not None and sum(before.writes_until(self.after, name) for name in able) == 0:
            able = [name for name in able if self.after.entries.get(name, 0) < before.entries[name]]
        return tuple(sorted(able))

    def entries_lost(self) -> tuple[int, bool] | None:
        """Return by how many entries the maps fell, and whether that is exact; None while it is not counted.

        What was written meanwhile is in the count: then at most so many more were lost.
        """
        before, after, maps = self.before, self.after, self.lost_maps()
        if before is None or after is None or maps is None:
            return None
        written = sum(before.writes_until(after, name) for name in maps)
        fell = sum(before.entries[name] - after.entries.get(name, 0) for name in maps)
        return max(fell + written, 0), self.is_alone and not written

    def is_back(self, count: EntryCount) -> bool:
        """Return whether a later count shows that all entries have come back, whatever was written meanwhile."""
        before = self.before
        if before is None or self.after is None or not (maps := self.lost_maps()):
            return False
        return all(
            count.entries.get(name, 0) - before.writes_until(count, name) >= before.entries[name] for name in maps
        )


def is_living(belief: MemberBelief) -> bool:
    """Return whether an incarnation holds what its table gives it: it has joined and has not ended, though it may be frozen."""
    return belief.status in ("member", "paused")


def holds(belief: MemberBelief, partition: int) -> bool:
    """Return whether a member has a replica of the partition by its own table."""
    table = belief.table
    if table is None:
        return False
    number = table.number_of(belief.uuid)
    return number >= 0 and number in table.rows.get(partition, (0,))[1:]


def held_by(belief: MemberBelief) -> set[int]:
    """Return the partitions of which a member has a replica by its own table."""
    table = belief.table
    if table is None or (number := table.number_of(belief.uuid)) < 0:
        return set()
    return {partition for partition, row in table.rows.items() if number in row[1:]}


def owned_at(belief: MemberBelief, addresses: Collection[Address]) -> list[int]:
    """Return the partitions whose owners are at these addresses by a member's table."""
    table, where = belief.table, {*addresses}
    owners = ((partition, table.row(partition)[0]) for partition in table.rows) if table is not None else ()
    return [partition for partition, owner in owners if owner is not None and owner.address in where]


def are_together(one: MemberBelief, other: MemberBelief) -> bool:
    """Return whether two members are of one side: each has the other on its list."""
    return any(member.uuid == other.uuid for member in one.members) and any(
        member.uuid == one.uuid for member in other.members
    )


def was_written(belief: MemberBelief, others: Iterable[MemberBelief], partition: int) -> bool:
    """Return whether entries were written to a partition while a member followed its present lineage, as far as is measured."""
    since_us = belief.lineage_since_us
    if since_us is None:
        return True
    side = [other for other in (belief, *others) if other.lineage == belief.lineage and other.data is not None]
    stored = [other.data.partitions[partition] for other in side if other.data and partition in other.data.partitions]
    return any(one.writes and one.at_us >= since_us for one in stored)


def is_responsible(belief: MemberBelief, partition: int) -> bool:
    """Return whether a member that merges brings the entries of a partition: the first in its row that is on its list."""
    if belief.table is None or not holds(belief, partition):
        return False
    listed = {member.uuid for member in belief.members}
    row = belief.table.row(partition)
    return next((holder.uuid for holder in row if holder and holder.uuid in listed), None) == belief.uuid
