"""Migrations: one decision each, in the order destination, master, source; one at a time per participant, if allowed at all."""

from __future__ import annotations

from dataclasses import dataclass, field

from quarterdeck.backend.core.cluster_profile import allows_migrations
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.membership.events import ClusterStateChanged
from quarterdeck.backend.core.partitions.events import (
    CompletedEvicted,
    MigrationAccepted,
    MigrationDecided,
    MigrationFinished,
    MigrationStarted,
    TableRecovered,
    TableRecoveryStarted,
)
from quarterdeck.backend.invariants.invariant import Invariant, Violation


@dataclass(eq=False)
class OneDecision(Invariant):
    """A migration is committed for all or for none, masters and participants, and no master decides it twice.

    What a destination did that is gone does not count: the others decided without it (Avoid Data Loss on Migration, 2.1). Two
    halves of a split decide for themselves, so nothing is said once the members were divided.
    """

    name = "one decision"

    _decisions: dict[str, tuple[bool, Record]] = field(default_factory=dict)
    _decided: dict[tuple[str, str], Record] = field(default_factory=dict)
    """By master and migration, the record of its decision."""

    def _decide(self, record: Record, event: MigrationDecided) -> Violation | None:
        first = self._decided.setdefault((record.uuid, event.migration_id), record)
        if first is not record:
            return self.violated(f"{record.member} decided migration {event.migration_id} twice", first, record)
        return self._learn_in_order(record, event.migration_id, event.committed)

    def _finish(self, record: Record, event: MigrationFinished) -> Violation | None:
        return self._learn_in_order(record, event.migration_id, event.committed)

    def _recover(self, record: Record, event: TableRecovered) -> Violation | None:
        decisions = [(one, True) for one in event.committed_ids] + [(one, False) for one in event.rolled_back_ids]
        found = [self._learn_in_order(record, migration_id, committed) for migration_id, committed in decisions]
        return next(filter(None, found), None)

    def _learn_in_order(self, record: Record, migration_id: str, committed: bool) -> Violation | None:
        known, witness = self._decisions.setdefault(migration_id, (committed, record))
        if known == committed or self._tables.divided:
            return None
        if isinstance(witness.event, MigrationFinished) and self._tables.incarnations.of(witness).ended:
            self._decisions[migration_id] = committed, record
            return None
        words = {True: "committed", False: "rolled back"}
        ends = f"{words[known]} at {witness.member} and {words[committed]} at {record.member}"
        return self.violated(f"migration {migration_id} is {ends}", witness, record)


@dataclass(eq=False)
class CommitOrder(Invariant):
    """The destination commits before the master does, and the master before the source (Avoid Data Loss on Migration, 2.1).

    A new master commits what destinations of its list have committed (2.2). While members are divided nothing is said.
    """

    name = "commit order"

    _at_destination: dict[str, str] = field(default_factory=dict)
    """By migration, the incarnation of the destination that has committed it."""
    _at_master: set[str] = field(default_factory=set)
    _recovering: set[str] = field(default_factory=set)
    """The incarnations that search for the latest table: they finish their own part before they record how it ended."""

    def _search(self, record: Record, event: TableRecoveryStarted) -> None:
        self._recovering.add(record.uuid)

    def _decide(self, record: Record, event: MigrationDecided) -> Violation | None:
        return self._master_commits(record, event.migration_id) if event.committed else None

    def _recover(self, record: Record, event: TableRecovered) -> Violation | None:
        self._recovering.discard(record.uuid)
        listed = {member.uuid for member in self._tables.incarnations.of(record).members}
        self._at_master.update(one for one, destination in self._at_destination.items() if destination in listed)
        return next(filter(None, (self._master_commits(record, name) for name in event.committed_ids)), None)

    def _master_commits(self, record: Record, migration_id: str) -> Violation | None:
        self._at_master.add(migration_id)
        if migration_id in self._at_destination or self._tables.division:
            return None
        return self.violated(f"{record.member} committed migration {migration_id}, its destination has not", record)

    def _finish(self, record: Record, event: MigrationFinished) -> Violation | None:
        if not event.committed:
            return None
        if event.endpoint == "destination":
            self._at_destination[event.migration_id] = record.uuid
            return None
        known = self._at_destination if record.uuid in self._recovering else self._at_master
        if event.migration_id not in known and not self._tables.division:
            text = f"{record.member}, the source, committed migration {event.migration_id}, no master has"
            return self.violated(text, record)
        return None


@dataclass(eq=False)
class MigrationsAllowed(Invariant):
    """A master begins no migration while the state of its cluster allows none (Hazelcast: cluster states)."""

    name = "migrations allowed"

    _forbidden: dict[str, tuple[Record, ClusterStateChanged]] = field(default_factory=dict)

    def _change(self, record: Record, event: ClusterStateChanged) -> None:
        if allows_migrations(event.state):
            self._forbidden.pop(record.uuid, None)
        else:
            self._forbidden[record.uuid] = record, event

    def _start(self, record: Record, event: MigrationStarted) -> Violation | None:
        if record.uuid not in self._forbidden:
            return None
        witness, change = self._forbidden[record.uuid]
        text = f"{record.member} began migration {event.migration_id} in a cluster that is {change.state}"
        return self.violated(text, witness, record)


@dataclass(eq=False)
class OneAtATime(Invariant):
    """No member takes part in two migrations of one partition at a time (Avoid Data Loss on Migration, 2.1)."""

    name = "one at a time"

    _active: dict[tuple[str, int], tuple[str, Record]] = field(default_factory=dict)
    """By incarnation and partition, the migration that it takes part in."""

    def _accept(self, record: Record, event: MigrationAccepted) -> Violation | None:
        key = record.uuid, event.partition
        known, witness = self._active.setdefault(key, (event.migration_id, record))
        if known == event.migration_id:
            return None
        both = f"{event.migration_id} of partition {event.partition}, and in {known} still"
        return self.violated(f"{record.member} takes part in {both}", witness, record)

    def _finish(self, record: Record, event: MigrationFinished) -> None:
        key = record.uuid, event.partition
        if key in self._active and self._active[key][0] == event.migration_id:
            del self._active[key]


@dataclass(eq=False)
class Eviction(Invariant):
    """A master forgets a migration only when every member of its list knows how it ended (Avoid Data Loss on Migration, 2.1).

    Two halves of a split may end it differently: once the members were divided a master answers for its own decisions only.
    """

    name = "eviction"

    _final: dict[str, dict[str, tuple[int, int, Record]]] = field(default_factory=dict)
    """By migration and master, its partition and the version after the decision; the latest decision last."""

    def _decide(self, record: Record, event: MigrationDecided) -> None:
        by_master = self._final.setdefault(event.migration_id, {})
        by_master.pop(record.uuid, None)
        by_master[record.uuid] = event.partition, event.partition_version, record

    def _evict(self, record: Record, event: CompletedEvicted) -> Violation | None:
        members = self._tables.incarnations.of(record).members
        for migration_id in event.migration_ids:
            by_master = self._final.get(migration_id, {})
            latest = None if self._tables.divided else next(reversed(by_master.values()), None)
            decision = by_master.get(record.uuid, latest)
            if decision is None:
                continue
            partition, version, witness = decision
            for member in members:
                table = self._tables.by_incarnation.get(member.uuid)
                row = table.rows.get(partition) if table else None
                if row is None or row.version < version:
                    has = f"has version {row.version if row else 0} of partition {partition}, not {version}"
                    text = f"{record.member} forgot migration {migration_id}; {self._tables.label(member.uuid)} {has}"
                    return self.violated(text, witness, record)
        return None
