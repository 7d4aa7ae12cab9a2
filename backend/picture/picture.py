"""The fold: events in, what each member believes out (design section 2).

A picture never asks anybody anything. The same records give the same picture, whether they come from a live cluster,
from a simulation or from a journal; replay is this fold up to a moment.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from backend.core import events
from backend.core.address import Address
from backend.core.events import LinkChanged, Record
from backend.core.membership.identity import Member

Status = Literal["joining", "member", "paused", "stopped", "killed"]

NO_ADDRESS = Address("")
"""Stands in a belief whose `MemberStarted` was never seen, until one of its lists tells the address."""

CONTENTS_KEPT = 64
"""Lists whose addresses are remembered for the next member that installs them."""


class Suspicion(NamedTuple):
    """Why a member suspects another, and since when on the run's clock."""

    reason: str
    since_us: int


@dataclass(slots=True)
class Belief:
    """What one member believes in its present life; what it believed last, once that life is over."""

    label: str
    address: Address
    uuid: str
    status: Status = "joining"
    version: int = 0
    """Version of the installed list; 0 before the first."""
    lineage: str = ""
    master: Address | None = None
    members: tuple[Member, ...] = ()
    suspicions: dict[Address, Suspicion] = field(default_factory=dict)
    ever_listed: set[Address] = field(default_factory=set)
    """Every address that stood on one of this life's lists."""
    claiming: bool = False
    list_since_us: int = 0
    at: int = 0
    """Time of the latest event of this life."""
    listed: frozenset[Address] = frozenset()
    """The addresses in `members`, for quick questions."""

    @property
    def running(self) -> bool:
        """Whether the member takes part: it has joined and is neither frozen nor gone."""
        return self.status == "member"

    @property
    def is_master(self) -> bool:
        """Whether it leads, in its own belief."""
        return self.master is not None and self.master == self.address


class Picture:
    """What every member believes, and the condition of every link, after the records applied so far."""

    def __init__(self) -> None:
        self.members: dict[str, Belief] = {}
        """By label, in order of first appearance."""
        self.links: dict[tuple[str, str], LinkChanged] = {}
        """Only the links that are not plain, by (source, target)."""
        self.at = 0
        """Time of the latest record, microseconds on the run's clock."""
        self._labels: dict[Address, str] = {}
        self._past_lives: set[str] = set()
        self._contents: dict[tuple[str, int], tuple[tuple[Member, ...], frozenset[Address]]] = {}
        """Lists seen lately, by lineage and version: all members install the same ones, their addresses are shared."""

    def apply(self, record: Record) -> None:
        """Take in one record. Records of lives that are over change nothing but the time."""
        self.at = max(self.at, record.at)
        if not self._apply_from_outside(record.event):
            self._apply_from_member(record)

    def label_of(self, address: Address) -> str:
        """The label of the member at `address`; the address itself when nobody was seen there."""
        return self._labels.get(address, address)

    def address_of(self, label: str) -> Address | None:
        """The address of the member called `label`, or None while it is not known."""
        belief = self.members.get(label)
        return belief.address or None if belief else None

    def masters(self) -> tuple[str, ...]:
        """Labels of the running members that are master in their own belief."""
        return tuple(label for label, belief in self.members.items() if belief.running and belief.is_master)

    def _apply_from_outside(self, event: events.Event) -> bool:
        """What the operator and the network did. False when `event` is a member's own."""
        match event:
            case events.ProcessKilled(target):
                self._set_status(target, "killed")
            case events.ProcessPaused(target):
                self._set_status(target, "paused")
            case events.ProcessResumed(target):
                self._resume(target)
            case LinkChanged(source, target):
                if event == LinkChanged(source, target):
                    self.links.pop((source, target), None)
                else:
                    self.links[source, target] = event
            case events.StrangerRefused():
                pass
            case _:
                return False
        return True

    def _apply_from_member(self, record: Record) -> None:
        event = record.event
        if isinstance(event, events.MemberStarted):
            self._begin_life(record, event.address)
            return
        belief = self._life_of(record)
        if belief is None:
            return
        belief.at = record.at
        match event:
            case events.ListInstalled():
                self._install(belief, event, record.at)
            case events.MasterChanged(master):
                belief.master = master
            case events.SuspicionRaised(suspect, _, reason):
                belief.suspicions[suspect] = Suspicion(reason, record.at)
            case events.SuspicionCleared(suspect):
                belief.suspicions.pop(suspect, None)
            case events.ClaimStarted():
                belief.claiming = True
            case events.ClaimFinished() | events.ClaimAbandoned():
                belief.claiming = False
            case events.MemberStopped() | events.JoinFailed():
                belief.claiming = False
                if belief.status != "killed":
                    belief.status = "stopped"
            case _:
                pass  # told in the event tail; changes no belief

    def _begin_life(self, record: Record, address: Address) -> Belief:
        before = self.members.get(record.member)
        if before is not None and before.uuid != record.uuid:
            self._past_lives.add(before.uuid)
        belief = Belief(record.member, address, record.uuid, at=record.at)
        self.members[record.member] = belief
        if address:
            self._labels[address] = record.member
        return belief

    def _life_of(self, record: Record) -> Belief | None:
        """The belief that `record` belongs to; None for a straggler of an earlier life.

        A journal may begin in the middle of a life, so an unknown life need not have shown its start.
        """
        belief = self.members.get(record.member)
        if belief is not None and belief.uuid == record.uuid:
            return belief
        if record.uuid in self._past_lives:
            return None
        return self._begin_life(record, belief.address if belief else NO_ADDRESS)

    def _install(self, belief: Belief, event: events.ListInstalled, at: int) -> None:
        if belief.suspicions:
            lives_before = {member.address: member.uuid for member in belief.members}
            still_there = {
                member.address
                for member in event.members
                if lives_before.get(member.address, member.uuid) == member.uuid
            }
            belief.suspicions = {who: why for who, why in belief.suspicions.items() if who in still_there}
        if not belief.address:
            self._learn_address(belief, event.members)
        belief.version, belief.lineage, belief.master = event.version, event.lineage, event.master
        belief.list_since_us = at
        if belief.members != event.members:
            belief.members, belief.listed = event.members, self._addresses_of(event)
            belief.ever_listed |= belief.listed
        if belief.status == "joining":
            belief.status = "member"

    def _addresses_of(self, event: events.ListInstalled) -> frozenset[Address]:
        known = self._contents.get((event.lineage, event.version))
        if known is not None and known[0] == event.members:
            return known[1]
        addresses = frozenset(member.address for member in event.members)
        if len(self._contents) >= CONTENTS_KEPT:
            self._contents.clear()
        self._contents[event.lineage, event.version] = (event.members, addresses)
        return addresses

    def _learn_address(self, belief: Belief, members: tuple[Member, ...]) -> None:
        own = next((member.address for member in members if member.uuid == belief.uuid), None)
        if own is not None:
            belief.address = own
            self._labels[own] = belief.label

    def _set_status(self, label: str, status: Status) -> None:
        belief = self.members.get(label)
        if belief is not None and not (status == "paused" and belief.status in ("stopped", "killed")):
            belief.status = status

    def _resume(self, label: str) -> None:
        belief = self.members.get(label)
        if belief is not None and belief.status == "paused":
            belief.status = "member" if belief.version else "joining"
