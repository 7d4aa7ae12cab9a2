"""Joins and removals: a list changes within its lineage only with a reason that its master recorded.

See Hazelcast: joining and member list, heartbeats and suspicion.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.cluster_profile import allows_joins
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.membership.events import ClusterStateChanged, ListInstalled, MemberAdmitted, MemberRemoved
from quarterdeck.backend.core.properties import Settings
from quarterdeck.backend.invariants.incarnations import IncarnationHistory
from quarterdeck.backend.invariants.invariant import Invariant, PendingObligation, Violation

STALE_JOIN_PREVENTION = "hazelcast.stale.join.prevention.duration.seconds"


@dataclass(eq=False)
class RemovalReason(Invariant):
    """A master that leaves a member off its next list has recorded that it removes it, and whom it removes it leaves off."""

    name = "removal"

    _recorded: dict[str, dict[str, Record]] = field(default_factory=dict)
    """By master, the incarnations that its next list must not hold."""

    def _remove(self, record: Record, event: MemberRemoved) -> None:
        self._recorded.setdefault(record.uuid, {})[event.removed_uuid] = record

    def _install(self, record: Record, event: ListInstalled) -> Violation | None:
        incarnation = self._incarnations.of(record)
        if not incarnation.is_author_of(event):
            return None
        recorded = self._recorded.pop(record.uuid, {})
        for member in event.members:
            if member.uuid in recorded:
                text = f"{record.member} removed {member.address} and keeps it in v{event.version}"
                return self.violated(text, recorded[member.uuid], record)
        before, witness = incarnation.before, incarnation.before_record
        if before is None or witness is None or before.lineage != event.lineage:
            return None
        present = {member.uuid for member in event.members}
        for member in before.members:
            if member.uuid not in present and member.uuid not in recorded:
                text = f"{record.member} left {member.address} off v{event.version} without a word"
                return self.violated(text, witness, record)
        return None


@dataclass(slots=True)
class _LatestIncarnation:
    """The incarnation of an address that was started last, of all on the lists of a lineage."""

    started: Record
    listed: Record
    """The first list with it."""
    left_us: int | None = None
    """When the first list without it was made."""


@dataclass(eq=False)
class IncarnationOrder(Invariant):
    """A master takes in no incarnation of a member that was started before another one that is on its list, or has just left.

    It remembers the other one for as long as stale-join prevention lasts. What an incarnation sends may arrive long after its
    end (Cluster Service Consistency Improvements, Explicit Suspicion).
    """

    name = "incarnation order"

    _latest: dict[str, dict[Address, _LatestIncarnation]] = field(default_factory=lambda: defaultdict(dict))
    """By lineage and address."""

    def _install(self, record: Record, event: ListInstalled) -> Violation | None:
        author = self._incarnations.of(record)
        if not author.is_author_of(event):
            return None
        kept = {name: value for name, value in author.settings.items() if name == STALE_JOIN_PREVENTION}
        oldest_us = record.at - Settings.of(kept).stale_join_prevention_us
        listed, latest = {member.uuid for member in event.members}, self._latest[event.lineage]
        for address, last in list(latest.items()):
            if last.left_us is None and last.started.uuid not in listed:
                last.left_us = record.at
            if last.left_us is not None and last.left_us <= oldest_us:
                del latest[address]
        for member in event.members:
            incarnation = self._incarnations.by_uuid.get(member.uuid)
            if incarnation is None or incarnation.started is None:
                continue
            last = latest.setdefault(member.address, _LatestIncarnation(incarnation.started, record))
            if last.started is incarnation.started:
                last.left_us = None
            elif last.started.at <= incarnation.started.at:
                latest[member.address] = _LatestIncarnation(incarnation.started, record)
            else:
                text = f"{record.member} takes {incarnation.label} in as it was before its last start"
                return self.violated(text, last.listed, incarnation.started, last.started, record)
        return None


@dataclass(eq=False)
class AdmissionRecorded(Invariant):
    """A member that a master puts on its list is recorded as admitted, once, or is removed again."""

    name = "admission"

    _owed: dict[tuple[str, str], tuple[Record, Address]] = field(default_factory=dict)
    """By the incarnations of master and newcomer: the list that took it in."""

    def pending_obligations(self) -> Iterator[PendingObligation]:
        for (master_uuid, _), (record, address) in self._owed.items():
            master = self._incarnations.by_uuid[master_uuid]
            if not master.ended:
                text = f"{master.label} put {address} on its list and never admitted it"
                yield PendingObligation(self.violated(text, record), record.at, (master,))

    def _install(self, record: Record, event: ListInstalled) -> None:
        incarnation = self._incarnations.of(record)
        for uuid, address in _newcomers(incarnation, event):
            self._owed[record.uuid, uuid] = record, address

    def _admit(self, record: Record, event: MemberAdmitted) -> Violation | None:
        if self._owed.pop((record.uuid, event.joined_uuid), None) is not None:
            return None
        return self.violated(f"{record.member} admitted {event.address}, which is no newcomer on its list", record)

    def _remove(self, record: Record, event: MemberRemoved) -> None:
        self._owed.pop((record.uuid, event.removed_uuid), None)


@dataclass(eq=False)
class NoJoinsWhileClosed(Invariant):
    """While the cluster is FROZEN or PASSIVE its master takes in no one who was no member before (Hazelcast: missing members)."""

    name = "no newcomers"

    _closed: dict[str, tuple[Record, set[Address]]] = field(default_factory=dict)
    """By incarnation: the record that closed the cluster, and who may come back."""

    def _change(self, record: Record, event: ClusterStateChanged) -> None:
        if allows_joins(event.state):
            self._closed.pop(record.uuid, None)
        elif record.uuid not in self._closed:
            members = self._incarnations.of(record).members
            self._closed[record.uuid] = record, {member.address for member in members}

    def _install(self, record: Record, event: ListInstalled) -> Violation | None:
        if record.uuid not in self._closed:
            return None
        witness, known = self._closed[record.uuid]
        incarnation = self._incarnations.of(record)
        for _, address in _newcomers(incarnation, event):
            if address not in known:
                text = f"{record.member} took in {address} while the cluster lets no newcomers in"
                return self.violated(text, witness, record)
        # What others decided is theirs to answer for: from a list that this incarnation did not extend, all may come back.
        known.update(member.address for member in event.members)
        return None


def _newcomers(incarnation: IncarnationHistory, event: ListInstalled) -> Iterator[tuple[str, Address]]:
    """Uuid and address of whom the master `incarnation` takes in with its next list; none on lists that it did not make."""
    before = incarnation.before
    if before is None or not incarnation.is_author_of(event) or before.lineage != event.lineage:
        return
    present = {member.uuid for member in before.members}
    for member in event.members:
        if member.uuid not in present:
            yield member.uuid, member.address
