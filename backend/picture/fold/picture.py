"""The fold: events in, the belief of each member out.

A picture never asks a member anything. The same records give the same picture, whether they come from a live cluster,
from a simulation or from a journal; replay is this fold up to a moment.
"""

from __future__ import annotations

from collections.abc import Collection
from copy import copy

from quarterdeck.backend.commands.links import set_condition
from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.data.events import CallFinished, DataMeasured, EntriesMerged
from quarterdeck.backend.core.events import (
    Event,
    JournalChanged,
    MembersExpected,
    OperatorAsked,
    ProcessKilled,
    ProcessPaused,
    ProcessResumed,
    Record,
    StrangerRefused,
)
from quarterdeck.backend.core.link_condition import LinkChanged
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.core.membership.views.identity import Member
from quarterdeck.backend.core.partitions.events import PartitionLost, TableChanged
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.core.witnessed.events import Aspect, ConnectionChanged, MemberMeasured
from quarterdeck.backend.picture.fold.belief import MemberBelief, Status
from quarterdeck.backend.picture.fold.belief_folds import (
    FOLDS,
    inherit,
    inherit_witness,
    settle_leading,
    settle_with_list,
)
from quarterdeck.backend.picture.fold.departures import FAREWELLS, Departures
from quarterdeck.backend.picture.fold.loss_incident import Entries
from quarterdeck.backend.picture.fold.losses import Losses
from quarterdeck.backend.picture.fold.migrations import HISTORY_EVENTS, MigrationHistory

__all__ = ["MemberBelief", "Picture", "Status"]

MEASURE_INTERVAL = "quarterdeck.data.measure.interval.seconds"
"""The property of members that measure their data; 0 turns that off."""

QUIET_US = 2 * SECOND_US
"""A member that has reported nothing for so long was not written to since its last report: it reports within a second."""

USED_LATELY_US = 10 * SECOND_US
"""Data that was used so lately may have changed since it was measured."""

NO_ADDRESS = Address("")
"""Stands in a belief whose `MemberStarted` was never seen, until one of its lists gives the address."""

CONTENTS_KEPT = 64
"""Lists whose addresses are remembered for the next member that installs them."""

PAST_KEPT = 10_000
"""Incarnations that are over, and still known as that."""


class Picture:
    """The beliefs of all members, and the condition of every link, after the records applied so far."""

    def __init__(self) -> None:
        self.members: dict[str, MemberBelief] = {}
        """By label, in order of first appearance."""
        self.links: dict[tuple[str, str], LinkChanged] = {}
        """Only the links that are not plain, by (source, target)."""
        self.at = 0
        """Time of the latest record, microseconds on the run's clock."""
        self.history = MigrationHistory()
        """How migrations ended; it outlives the masters that led them."""
        self.journal_failure = ""
        """Why the one journal of all members cannot be written; empty as long as it can, or each has one of its own."""
        self.losses = Losses()
        """Partitions of which no replica is left, by who has lost them."""
        self.expected_members: int | None = None
        """The number of members that an operator accepted last as the size of the cluster."""
        self.departures = Departures()
        """Members that left lists without a goodbye."""
        self._writer = object()
        """Marks the beliefs that this picture may change; all others that it shows are shared with copies."""
        self._links_shared = False
        self._called_us = 0
        """When a client was answered last, as far as that is recorded."""
        self._labels: dict[Address, str] = {}
        self._past_incarnations: dict[str, None] = {}
        """The latest `PAST_KEPT`, so that stragglers of theirs are known as such."""
        self._contents: dict[tuple[str, int], tuple[tuple[Member, ...], frozenset[Address]]] = {}
        """Lists seen lately, by lineage and version: all members install the same ones, their addresses are shared."""
        self._latest_union: tuple[frozenset[Address], frozenset[Address], frozenset[Address]] = (frozenset(),) * 3
        """The latest two sets united, and the union: the members ever listed are shared in the same way."""

    def copy(self) -> Picture:
        """Return the same picture, to go its own way from here: what is applied to one is not seen in the other.

        Costs little, because a belief is copied only when one of the two changes it. So beliefs are not to be kept: the one
        in `members` is the one that goes on.
        """
        self._links_shared = True
        twin = copy(self)
        self._writer, twin._writer = object(), object()  # from now on neither of them changes what both show
        twin.members, twin.history, twin.losses = self.members.copy(), self.history.fork(), self.losses.copy()
        twin.departures = self.departures.copy()
        twin._labels, twin._contents = self._labels.copy(), self._contents.copy()
        twin._past_incarnations = self._past_incarnations.copy()
        return twin

    def apply(self, record: Record) -> None:
        """Take in one record. Records of incarnations that are over change nothing but the time."""
        self.at = max(self.at, record.at)
        event = record.event
        kind = type(event)
        if kind in FROM_OUTSIDE:
            self._apply_from_outside(event)
        elif isinstance(event, events.MemberStarted):
            self._begin_incarnation(record, event)
        elif isinstance(event, ConnectionChanged) and event.state == "forgotten":
            self.forget(record.member)
        else:
            if kind in HISTORY_EVENTS:
                self.history.take(record)
            belief = self._incarnation_of(record)
            if belief is None:
                return
            belief.at = record.at
            if kind in FAREWELLS:
                self.departures.bid_farewell(record.uuid)
            if kind not in OF_SEVERAL:  # most records; those that no fold takes are shown in the event tail alone
                if kind in FOLDS:
                    FOLDS[kind](belief, event, record.at)
            elif isinstance(event, events.ListInstalled):
                self._install(belief, event, record.at)
            elif isinstance(event, PartitionLost):
                if event.loses_data:
                    self.losses.lose(belief, event, record.at, self._entries_of, self.members.values())
            elif isinstance(event, events.MemberMerging):
                self.losses.merging(belief, event.next_uuid, event.brings_entries, record.at, self.members.values())
                FOLDS[kind](belief, event, record.at)
            elif isinstance(event, EntriesMerged):
                came = not event.problem and event.policy != "discard"
                self.losses.merged(belief, record.at, self.members.values(), came=came)
            elif isinstance(event, events.MemberStopped | events.JoinFailed):
                FOLDS[kind](belief, event, record.at)
                self.losses.ended(belief, record.at, self._entries_of, self.members.values())
            elif isinstance(event, ConnectionChanged):
                FOLDS[kind](belief, event, record.at)
                if event.state == "gone" or belief.uuid == record.uuid:
                    self.losses.reached(belief)
            elif isinstance(event, DataMeasured | MemberMeasured) and belief.witnessed_by:
                FOLDS[kind](belief, event, record.at)
                self.losses.measured(belief, event, record.at, self.members.values())
            elif isinstance(event, CallFinished):
                self._called_us = record.at
                if event.operation != "get":
                    self.losses.wrote(event.partition, record.at)
            else:
                if isinstance(event, TableChanged) and belief.table is None and belief.is_master:
                    self._arrange(belief, event)
                FOLDS[kind](belief, event, record.at)

    def forget(self, label: str) -> None:
        """Forget a member that is looked for no more."""
        belief = self.members.pop(label, None)
        if belief is None:
            return
        gone = {address for address, known in self._labels.items() if known == label}
        for address in gone:
            del self._labels[address]
        self.departures.forget(gone)
        for name, other in list(self.members.items()):
            if not gone.isdisjoint(other.ever_listed):
                changed = self._belief_to_change(name)
                assert changed is not None
                changed.ever_listed -= gone - changed.listed

    def is_over(self, incarnation: str) -> bool:
        """Return whether another incarnation came after this one at its address."""
        return incarnation in self._past_incarnations

    def label_of(self, address: Address) -> str:
        """Return the label of the member at `address`; the address itself when no member was seen at it."""
        return self._labels.get(address, address)

    def address_of(self, label: str) -> Address | None:
        """Return the address of the member called `label`, or None while it is not known."""
        belief = self.members.get(label)
        return belief.address or None if belief else None

    def master_of(self, label: str) -> MemberBelief | None:
        """Return the belief of the master that `label` follows; None while that master is not seen running."""
        belief = self.members.get(label)
        if belief is None or belief.master is None:
            return None
        master = self.members.get(self.label_of(belief.master))
        return master if master is not None and master.running and master.is_master else None

    def without(self, aspect: Aspect) -> MemberBelief | None:
        """One of the members, where no source reports `aspect`; None where one does, or there is no member."""
        unknown = None
        for belief in self.members.values():
            if belief.shows(aspect):
                return None
            unknown = unknown or belief
        return unknown

    def masters(self) -> tuple[str, ...]:
        """Labels of the running members that are master in their own belief."""
        return tuple(label for label, belief in self.members.items() if belief.is_master and belief.running)

    def _arrange(self, master: MemberBelief, event: TableChanged) -> None:
        if event.cause == "arranged" and master.seen_from_start and not master.witnessed_by:
            self.losses.arranged_anew(master.lineage)

    def _entries_of(self, partition: int, holders: Collection[str]) -> Entries:
        """Return how many entries a partition had by the last count of an owner, one of the `holders` if they counted any.

        None where members do not measure or were not heard, or where none was measured and there may be some since.
        """
        own = [belief for belief in self.members.values() if not belief.witnessed_by]
        lost_us = max((one.at_us for one in self.losses.incidents if partition in one.fates), default=-1)
        lineages = {belief.lineage for belief in own if belief.uuid in holders}
        counted = [
            (belief.uuid in holders, stored.at_us, stored.entries, data.at_us)
            for belief in own
            if (data := belief.data) is not None and (stored := data.partitions.get(partition)) is not None
            if stored.at_us > lost_us
            if belief.uuid in holders or not lineages or self.losses.are_alike(belief.lineage, lineages)
        ]
        if counted and (entries := max(counted)[2]):
            return Entries(entries, self.at - max(counted)[3] >= QUIET_US)
        seen = {belief.address for belief in own if belief.seen_from_start}
        if not own or not all(seen.issuperset(belief.ever_listed) for belief in own if belief.uuid in holders):
            return Entries(None)
        known = [belief.data for belief in own if belief.data is not None]
        measured = known or any(
            belief.settings is not None and belief.settings.get(MEASURE_INTERVAL, "1") not in ("0", "0.0")
            for belief in own
        )
        used_us = max((data.at_us for data in known), default=self._called_us)
        lately = bool(max(used_us, self._called_us)) and self.at - max(used_us, self._called_us) <= USED_LATELY_US
        return Entries(0) if measured and not lately else Entries(None)

    def _apply_from_outside(self, event: Event) -> None:
        """Apply an event of the operator or the network, one of `FROM_OUTSIDE`."""
        if isinstance(event, LinkChanged):
            if self._links_shared:
                self.links, self._links_shared = self.links.copy(), False
            set_condition(self.links, event)
        elif isinstance(event, ProcessKilled | ProcessPaused | ProcessResumed | JournalChanged):
            belief = self._belief_to_change(event.target)
            if isinstance(event, JournalChanged):  # without a belief it is that of a whole cluster
                (self if belief is None else belief).journal_failure = event.failure
            elif belief is None:
                return
            elif isinstance(event, ProcessKilled):
                belief.status = "killed"
                settle_leading(belief)
                self.losses.ended(belief, self.at, self._entries_of, self.members.values())
            elif isinstance(event, ProcessPaused) and belief.status not in ("stopped", "killed"):
                belief.status = "paused"
            elif isinstance(event, ProcessResumed) and belief.status == "paused":
                belief.status = "member" if belief.version else "joining"
        elif isinstance(event, MembersExpected):
            self.expected_members = event.size
        elif not isinstance(event, StrangerRefused | OperatorAsked):  # these two change no belief
            raise AssertionError(f"what {event} changes is not said here")

    # Incarnations

    def _begin_incarnation(self, record: Record, started: events.MemberStarted | None) -> MemberBelief:
        before = self.members.get(record.member)
        if before is not None:
            self._end_incarnation(before, record, started)
        if before is not None and before.uuid != record.uuid:
            self._past_incarnations[before.uuid] = None
            if len(self._past_incarnations) > PAST_KEPT:
                del self._past_incarnations[next(iter(self._past_incarnations))]
        address = started.address if started is not None else before.address if before is not None else NO_ADDRESS
        belief = MemberBelief(
            record.member, address, record.uuid, at=record.at, started_us=record.at, runs_since_us=record.at,
            writer=self._writer,
        )  # fmt: skip
        if before is not None:
            inherit_witness(belief, before)
        if started is not None:
            belief.join_list, belief.merged_from = started.join_list, started.merged_from
            belief.settings, belief.seen_from_start = started.settings, not belief.witnessed_by
            if before is not None and started.merged_from == before.uuid:
                belief.runs_since_us = before.runs_since_us
                inherit(belief, before)
        self.members[record.member] = belief
        if address:
            self._labels[address] = record.member
        self.losses.settle(record.at, self.members.values())
        return belief

    def _end_incarnation(self, before: MemberBelief, record: Record, started: events.MemberStarted | None) -> None:
        """Note the fate of the former incarnation's data, as far as the new one shows it."""
        if before.uuid == record.uuid:
            if started is not None and not started.merged_from:
                self.losses.started(record.uuid)
        elif started is not None and not started.merged_from and not before.witnessed_by:
            self.losses.ended(before, record.at, self._entries_of, self.members.values())
        elif not self.losses.has_ended(before.uuid):
            self.losses.replaced(before.uuid, record.uuid)

    def _incarnation_of(self, record: Record) -> MemberBelief | None:
        """Return the belief that `record` belongs to; None for a straggler of an earlier incarnation.

        A journal may begin in the middle of an incarnation, so an unknown incarnation need not have shown its start.
        """
        belief = self.members.get(record.member)
        if belief is not None and belief.uuid == record.uuid:
            return belief if belief.writer is self._writer else self._belief_to_change(record.member)
        if isinstance(record.event, ConnectionChanged):  # a process is reached in whichever incarnation it is
            return self._belief_to_change(record.member)
        if record.uuid in self._past_incarnations:
            return None
        return self._begin_incarnation(record, None)

    def _belief_to_change(self, label: str) -> MemberBelief | None:
        """Return the belief of the member called `label`, made this picture's own if it is shared."""
        belief = self.members.get(label)
        if belief is not None and belief.writer is not self._writer:
            belief = self.members[label] = belief.fork(self._writer)
        return belief

    # Lists

    def _install(self, belief: MemberBelief, event: events.ListInstalled, at: int) -> None:
        if belief.left_to_merge:
            return  # a list of the cluster that it has left already
        self.departures.install(belief, event, at)
        if belief.suspicions or belief.silences:
            uuids_before = {member.address: member.uuid for member in belief.members}
            still_there = {
                member.address
                for member in event.members
                if uuids_before.get(member.address, "" if uuids_before else member.uuid) == member.uuid
            }
            belief.suspicions = {who: why for who, why in belief.suspicions.items() if who in still_there}
            belief.silences = {who: since for who, since in belief.silences.items() if who in still_there}
        if not belief.address:
            own = next((member.address for member in event.members if member.uuid == belief.uuid), None)
            if own is not None:
                belief.address = own
                self._labels[own] = belief.label
        if belief.lineage != event.lineage:
            self.losses.follow(belief, event.lineage, len(event.members))
            belief.lineage_since_us = at if belief.version or belief.seen_from_start else None
        is_other_lineage = belief.lineage != event.lineage
        belief.version, belief.lineage, belief.master = event.version, event.lineage, event.master
        belief.list_since_us = at
        if belief.members != event.members:
            if belief.is_master:
                staying = {member.uuid for member in event.members}
                gone = [member for member in belief.members if member.uuid not in staying]
                self.losses.removed(event.lineage, gone, at)
                known = {member.uuid for member in belief.members}
                self.losses.joined(belief, {one.address for one in event.members if one.uuid not in known}, at)
            belief.members, belief.listed = event.members, self._addresses_of(event)
            belief.ever_listed = self._union(belief.ever_listed, belief.listed)
        if belief.status == "joining":
            belief.status = "member"
        settle_with_list(belief)
        settle_leading(belief)
        if is_other_lineage:
            self.losses.settle(at, self.members.values())

    def _addresses_of(self, event: events.ListInstalled) -> frozenset[Address]:
        known = self._contents.get((event.lineage, event.version))
        if known is not None and known[0] == event.members:
            return known[1]
        addresses = frozenset(member.address for member in event.members)
        if len(self._contents) >= CONTENTS_KEPT:
            self._contents.clear()
        self._contents[event.lineage, event.version] = (event.members, addresses)
        return addresses

    def _union(self, one: frozenset[Address], other: frozenset[Address]) -> frozenset[Address]:
        if one is not self._latest_union[0] or other is not self._latest_union[1]:
            self._latest_union = one, other, other if one <= other else one if other <= one else one | other
        return self._latest_union[2]


OF_SEVERAL: frozenset[type] = frozenset((
    events.ListInstalled, events.MemberMerging, events.MemberStopped, events.JoinFailed, PartitionLost, TableChanged,
    EntriesMerged, DataMeasured, CallFinished, ConnectionChanged, MemberMeasured,
))  # fmt: skip
"""The effects of events on more than the belief of their member."""

FROM_OUTSIDE: frozenset[type] = frozenset((
    LinkChanged, ProcessKilled, ProcessPaused, ProcessResumed, JournalChanged, StrangerRefused, OperatorAsked, MembersExpected,
))  # fmt: skip
"""What the operator and the network did. The label that it is recorded under may be no member's, and not all of it changes a
belief."""
