"""Who holds which member list at one moment, which masters lead, and who differs from most.

Every comparison of the beliefs of several members starts here: members are grouped once a moment, by lineage, version and the
incarnations on their list. Only members that run and that the watcher reaches have a say.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from msgspec import Struct

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.membership.views.identity import Member
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.judgement.suspicions import SuspicionsInForce
from quarterdeck.backend.judgement.table_agreement import is_unsettled, table_digests
from quarterdeck.backend.judgement.watcher import WATCHES_ALL, Watcher
from quarterdeck.backend.picture.fold.belief import MemberBelief
from quarterdeck.backend.picture.fold.picture import Picture

SETTLING_US = 2 * SECOND_US
"""Members hear of a new list or table one after the other: for so long it is not known whether they will agree."""


class HeldList(Struct, frozen=True):
    """One member list, and the labels of the members that hold it."""

    version: int
    lineage: str
    """Changes with each mastership: two lists of one lineage are of one cluster, and one of them is behind."""
    master: Address | None
    """The master that the first holder follows."""
    members: tuple[Member, ...]
    listed: frozenset[Address]
    held_by: tuple[str, ...]

    def is_led_as(self, other: HeldList) -> bool:
        """Return whether both lists are of one lineage and master."""
        return self.master == other.master and self.lineage == other.lineage


class Side(Struct, frozen=True):
    """A cluster of its own: a master with its list, as it is seen or as it was when it was seen last."""

    master: str
    size: int
    unheard_since_us: int | None = None
    """Since when its master is not reached; None while it is."""


class ListAgreement:
    """The member lists of one moment with their holders. Parts are made when they are asked for, and kept."""

    def __init__(self, picture: Picture, watcher: Watcher = WATCHES_ALL, now_us: int = 0) -> None:
        self.picture, self.watcher, self.now_us = picture, watcher, now_us

    @cached_property
    def holders(self) -> tuple[MemberBelief, ...]:
        """Return the members that run, are reached and hold a list, in order of appearance."""
        missed = self.watcher.missed
        return tuple(
            belief
            for label, belief in self.picture.members.items()
            if belief.running and belief.version and label not in missed and belief.address not in missed
        )

    @cached_property
    def lists(self) -> tuple[HeldList, ...]:
        """Return the lists, the most widely held first; of equally many holders the first in order of appearance."""
        groups: list[tuple[MemberBelief, list[str]]] = []
        # Members that received one message share its addresses: most are grouped without a look at what they hold.
        by_list: dict[tuple[str, int, int], tuple[MemberBelief, list[str]]] = {}
        by_version: dict[tuple[str, int], list[tuple[MemberBelief, list[str]]]] = {}
        for belief in self.holders:
            which = (belief.lineage, belief.version, id(belief.listed))
            group = by_list.get(which)
            if group is None:
                same_version = by_version.setdefault(which[:2], [])
                group = next((known for known in same_version if known[0].members == belief.members), None)
                if group is None:
                    group = (belief, [])
                    same_version.append(group)
                    groups.append(group)
                by_list[which] = group
            group[1].append(belief.label)
        groups.sort(key=lambda group: -len(group[1]))
        return tuple(
            HeldList(first.version, first.lineage, first.master, first.members, first.listed, tuple(labels))
            for first, labels in groups
        )

    @cached_property
    def dissenters(self) -> frozenset[str]:
        """Return the members that hold another list than most."""
        return frozenset(label for other in self.lists[1:] for label in other.held_by)

    @cached_property
    def masters(self) -> tuple[MemberBelief, ...]:
        """Return the members that lead with full powers, the one with the longest list first."""
        return tuple(sorted((belief for belief in self.holders if belief.leads), key=lambda it: -len(it.members)))

    @cached_property
    def leading(self) -> tuple[str, ...]:
        """Return the labels of the members that lead."""
        return tuple(master.label for master in self.masters)

    @cached_property
    def suspicions(self) -> SuspicionsInForce:
        """Return the suspicions of the members that run and are reached."""
        return SuspicionsInForce(self.picture, self.holders)

    @cached_property
    def incarnations(self) -> dict[Address, str]:
        """Return the incarnation at each address that stands on a list: the latest one met, else by the most widely held list."""
        found = {member.address: member.uuid for held in reversed(self.lists) for member in held.members}
        listed = {member.uuid for held in self.lists for member in held.members}
        latest = self.picture.members.values() if len(self.lists) > 1 else ()
        return found | {belief.address: belief.uuid for belief in latest if belief.uuid in listed}

    @cached_property
    def sides(self) -> tuple[Side, ...]:
        """Return the clusters that are apart, those in sight first.

        A side that the watcher has lost sight of is still one: its master led a list without those that lead now, and
        neither ended nor came onto a list that is seen. Where an operator has accepted the size of what is seen, it is left out.
        """
        seen = [Side(master.label, len(master.members)) for master in self.masters]
        if not seen or (self.masters[0].members and self.watcher.expected_members == len(self.masters[0].members)):
            return tuple(seen)
        leading = {master.uuid for master in self.masters}
        lost = [
            Side(belief.label, len(belief.members), heard_us)
            for belief in self.picture.members.values()
            if (heard_us := self._last_heard_us(belief)) is not None
            and belief.leads
            and leading.isdisjoint(member.uuid for member in belief.members)
            and not any(belief.address in held.listed for held in self.lists if held.lineage != belief.lineage)
        ]
        return (*seen, *sorted(lost, key=lambda side: -side.size))

    @property
    def unheard(self) -> tuple[Side, ...]:
        """Return the sides of whose master the watcher has lost sight."""
        return tuple(side for side in self.sides if side.unheard_since_us is not None)

    def _last_heard_us(self, belief: MemberBelief) -> int | None:
        """Return when a member was heard last that is out of reach and may run; None where it is reached or has ended."""
        missed = self.watcher.missed.get(belief.label) or self.watcher.missed.get(belief.address)
        if belief.status != "member" or (missed is not None and missed.has_ended):
            return None
        if belief.connection is not None and belief.connection.state != "connected":
            is_gone = belief.connection.state == "gone" and belief.witnessed_by != ("logs",)
            return None if is_gone else belief.connection.since_us
        return None if missed is None else missed.since_us

    @cached_property
    def tables(self) -> dict[str, list[str]]:
        """Return the members that hold each partition table, by its digest."""
        return table_digests(self.picture, (belief.label for belief in self.holders), self.now_us)

    @property
    def tables_agree(self) -> bool | None:
        """Return whether all members that report a partition table report the same; None where that is not known yet.

        A side that is out of sight may have the same or another one.
        """
        if not self.tables or is_unsettled(self.picture, self.now_us):
            return None
        if len(self.tables) == 1:
            return None if self.unheard else True
        changed_us = max(belief.table.since_us for belief in self.holders if belief.table is not None)
        return None if self.now_us - changed_us < SETTLING_US else False

    @cached_property
    def lineages(self) -> int:
        """Return how many lineages the lists are of."""
        return len({held.lineage for held in self.lists})

    @property
    def is_settled(self) -> bool:
        """Return whether there is one list with one master."""
        return len(self.lists) == 1 and len(self.masters) == 1

    @property
    def list_since_us(self) -> int:
        """Return when a list was installed last."""
        return max((belief.list_since_us for belief in self.holders), default=0)

    def by_age(self, labels: Sequence[str]) -> tuple[str, ...]:
        """Return `labels` as the lists have them, the most widely held list first.

        Members of another cluster come after those of the first, in the order of their own list. A member on no list comes last:
        when it starts again it is the youngest. Lists of one cluster that differ do not move a member that is on both.
        """
        label_of, wanted = self.picture.label_of, frozenset(labels)
        ordered = dict.fromkeys(label_of(member.address) for held in self.lists for member in held.members)
        return tuple(dict.fromkeys((*filter(wanted.__contains__, ordered), *labels)))
