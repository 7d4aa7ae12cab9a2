"""Which partitions lost as many holders as they had replicas, so that what was written to them before may be lost.

The replicas of a partition count from when all data was safe last: until then a holder that went is not replaced for certain.
A member that its master let go, since nothing of it was needed any more, is no loss: nothing excuses what it took along.
`clock` counts calls and changes of the holders; what was asked for at 3 was asked for before what was at 5.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Set
from math import inf

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.data.events import CallFinished, CallStarted
from quarterdeck.backend.core.events import ProcessKilled, Record
from quarterdeck.backend.core.membership.events import ListInstalled, MemberMerging, MemberStopped
from quarterdeck.backend.core.partitions.events import DrainFinished, DrainStarted, TableChanged
from quarterdeck.backend.invariants.event_rules import EventRules
from quarterdeck.backend.invariants.partition_tables import PartitionTables


class HolderLosses(EventRules):
    """The losses of holders of each partition. `tables` must be shown each record before."""

    def __init__(self, tables: PartitionTables) -> None:
        self._tables = tables
        self.clock = 0
        self.replicas: dict[int, int] = {}
        """By partition, its replicas when all data was safe last, or when it was arranged."""
        self.lost: dict[int, set[str]] = defaultdict(set)
        """By partition, the holders that have gone since."""
        self.excused: dict[int, list[int]] = defaultdict(list)
        """By partition, when everything that was written may have been lost."""
        self.at_risk: dict[int, int] = {}
        """By partition, when a holder of it went or it moved last."""
        self._let_go: set[Address] = set()
        """The members of which the others need nothing any more, by the word of a master."""
        self._reunited_at: float = -inf
        """The clock when the members became one cluster again. Earlier writes may be lost."""
        tables.before_change.append(self._look_whether_safe)
        tables.reunited.append(self._begin_anew)

    def lost_at(self, partition: int | None) -> float:
        """Return when everything that was written to the partition may have been lost last, by a division or its holders."""
        excused_at = self.excused_at(partition)
        return excused_at if excused_at > self._reunited_at else self._reunited_at

    def excused_at(self, partition: int | None) -> float:
        """Return when the partition last lost as many holders as it had replicas."""
        times = None if partition is None else self.excused.get(partition)
        return times[-1] if times else -inf

    def _tick(self, record: Record, event: CallStarted | CallFinished) -> None:
        self.clock += 1

    def _begin_anew(self) -> None:
        self._reunited_at = self.clock
        self.lost.clear()
        self._look_whether_safe()

    def _move(self, record: Record, event: TableChanged) -> None:
        self.clock += 1
        table = self._tables.by_incarnation[record.uuid]
        for partition, before in table.before.items():
            row = table.rows[partition]
            if before is not None and before.replicas:
                if before.holders != row.holders:
                    self.at_risk[partition] = self.clock
            elif event.cause == "arranged":
                # Empty, and so in step. A master that does not know yet that a member is gone may give it partitions.
                self.replicas[partition] = row.replicas
                self.lost[partition] = {uuid for uuid in row.holders if uuid and self._tables.is_gone(uuid)}

    def _look_whether_safe(self) -> None:
        if self._tables.in_use and not self._tables.why_not_safe():
            self.lost.clear()
            self.replicas = {partition: row.replicas for partition, row in self._tables.newest.items()}
            for address in self._let_go:
                self._expect_to_leave(address)

    def _drain(self, record: Record, event: DrainStarted) -> None:
        self._let_go.discard(event.address)

    def _let_leave(self, record: Record, event: DrainFinished) -> None:
        if event.cause == "nothing-left":
            self._let_go.add(event.address)
            self._expect_to_leave(event.address)

    def _expect_to_leave(self, address: Address) -> None:
        """Count on the copies of a leaver no more, from the word of its master on, that no other member could have taken."""
        master, leaver = self._tables.one_master(), self._tables.incarnations.by_address.get(address)
        if master is not None and leaver is not None:
            others = {member.uuid for member in self._tables.data_members(master, without=(leaver.uuid,))}
            held = self._held_by(leaver.uuid)
            held = [partition for partition in held if others <= set(self._tables.newest[partition].holders)]
            self._do_without(leaver.uuid, held, others)

    def _gone(self, record: Record, event: ProcessKilled | MemberStopped | MemberMerging) -> None:
        self.clock += 1
        uuid = self._tables.incarnations.ended_by(record)
        incarnation = self._tables.incarnations.by_uuid.get(uuid)
        address = incarnation.address if incarnation is not None else None
        is_let_go = isinstance(event, MemberStopped) and address in self._let_go
        if address is not None:
            self._let_go.discard(address)
        if is_let_go:
            self._do_without(uuid, self._held_by(uuid))
            return
        for partition in self._held_by(uuid):
            self.lost[partition].add(uuid)
            if len(self.lost[partition]) >= self.replicas.get(partition, 1):
                self.excused[partition].append(self.clock)

    def _demote(self, record: Record, event: ListInstalled) -> None:
        before = self._tables.incarnations.of(record).before
        if event.cause == "demotion" and event.author == event.master and before is not None:
            held_data = {member.uuid for member in before.members if not member.lite}
            others = {member.uuid for member in event.members if not member.lite}
            for member in event.members:
                if member.lite and member.uuid in held_data:
                    self._do_without(member.uuid, self._held_by(member.uuid), others)

    def _do_without(self, uuid: str, partitions: Iterable[int], counted_on: Set[str] = frozenset()) -> None:
        """Note that no other member had to have what this one had of them: a replica less may be there, but one at least.

        A master learns late that one of those it counts on has crashed. Where all of them are holders, no other member could
        have taken the copy, and the crash is as if it came afterwards.
        """
        for partition in partitions:
            holders, lost = self._tables.newest[partition].holders, self.lost[partition]
            unnoticed = len(lost & counted_on) if counted_on <= set(holders) else 0
            others = sum(other is not None and other != uuid and not self._tables.is_gone(other) for other in holders)
            left = len(lost) - unnoticed + max(1, others + unnoticed)
            self.replicas[partition] = min(self.replicas.get(partition, 1), left)
            if unnoticed and len(lost) >= left:
                self.excused[partition].append(self.clock)

    def _held_by(self, uuid: str) -> list[int]:
        """Return the partitions that the member holds, which are at risk now."""
        held = [partition for partition, row in self._tables.newest.items() if uuid in row.holders]
        self.at_risk.update(dict.fromkeys(held, self.clock))
        return held
