"""The partition table: its versions only grow, have one content and one author, and its rows make sense (seed 004, 1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from itertools import zip_longest

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.membership.events import ListInstalled, MasterChanged
from quarterdeck.backend.core.partitions.arrangement.member_groups import Half
from quarterdeck.backend.core.partitions.events import DrainStarted, MigrationsPlanned, TableChanged, TableRecovered
from quarterdeck.backend.core.partitions.migration.migration import FAILURE_INCREMENT, SUCCESS_INCREMENT
from quarterdeck.backend.invariants.incarnations import IncarnationHistory
from quarterdeck.backend.invariants.invariant import Invariant, Violation
from quarterdeck.backend.invariants.partition_tables import IncarnationTable, PartitionRow


@dataclass(eq=False)
class TableMonotone(Invariant):
    """Within an incarnation the version of a partition only grows, and the table's version is the sum of them."""

    name = "table version"

    _latest: dict[str, Record] = field(default_factory=dict)
    _sums: Counter[str] = field(default_factory=Counter)
    """By incarnation, the sum of the versions of its partitions, kept up to date with every changed row."""

    def _change(self, record: Record, event: TableChanged) -> Violation | None:
        latest = self._latest.get(record.uuid, record)
        self._latest[record.uuid] = record
        table = self._tables.by_incarnation[record.uuid]
        self._sums[record.uuid] += sum(
            table.rows[partition].version - (before.version if before is not None else 0)
            for partition, before in table.before.items()
        )
        for partition, before in table.before.items():
            row = table.rows[partition]
            if before is not None and row.version <= before.version:
                text = f"{record.member} went from version {before.version} of partition {partition} to {row.version}"
                return self.violated(text, latest, record)
        total = self._sums[record.uuid]
        if total != event.table_version:
            text = f"{record.member} has table version {event.table_version}, its partitions add up to {total}"
            return self.violated(text, latest, record)
        return None


@dataclass(eq=False)
class TableContent(Invariant):
    """One version of a partition has one content, so it has one owner.

    Everywhere while the members are one undivided cluster; among what one author published afterwards, since two halves of
    a split go on from the same versions. What only those knew that are gone does not count: their successor could not know it.
    """

    name = "table content"

    _seen: dict[tuple[str, int, int], tuple[PartitionRow, list[Record]]] = field(default_factory=dict)
    """By author, partition and version: the content, and the records of the incarnations that had it."""

    def _change(self, record: Record, event: TableChanged) -> Violation | None:
        table = self._tables.by_incarnation[record.uuid]
        author = event.author if self._tables.divided else ""
        keys = [(author, partition, table.rows[partition].version) for partition in table.before]
        return next(filter(None, [self._compare(record, key) for key in keys]), None)

    def _compare(self, record: Record, key: tuple[str, int, int]) -> Violation | None:
        _, partition, version = key
        row = self._tables.by_incarnation[record.uuid].rows[partition]
        known, witnesses = self._seen.setdefault(key, (row, []))
        if known == row:
            witnesses.append(record)
            return None
        witness = next((uuid for uuid in witnesses if not self._tables.incarnations.of(uuid).ended), None)
        if witness is None:
            self._seen[key] = row, [record]
            return None
        first, second = self._tables.names(known.holders), self._tables.names(row.holders)
        both = f"{first} at {witness.member} and {second} at {record.member}"
        return self.violated(f"version {version} of partition {partition} is {both}", witness, record)


@dataclass(eq=False)
class TableAuthor(Invariant):
    """A member that changes its table takes the change from the master that it follows, or is master itself."""

    name = "table author"

    _followed: dict[str, tuple[Address | None, Record]] = field(default_factory=dict)
    """By incarnation, its master by its own account: of its list, or one that it has promised to follow since."""

    def _follow(self, record: Record, event: ListInstalled | MasterChanged) -> None:
        self._followed[record.uuid] = event.master, record

    def _change(self, record: Record, event: TableChanged) -> Violation | None:
        author = self._tables.incarnations.by_uuid.get(event.author)
        master, witness = self._followed.get(record.uuid, (None, record))
        if author is not None and author.address == master:
            return None
        text = f"{record.member} follows {master} and takes a table from {self._tables.label(event.author)}"
        return self.violated(text, witness, record)


class TableSteps(Invariant):
    """At its author a version grows for a reason: 1 for a commit and each repaired slot, 2 for a failed migration."""

    name = "table steps"

    def _change(self, record: Record, event: TableChanged) -> Violation | None:
        if event.author != record.uuid or event.cause in ("published", "recovered"):
            return None
        table = self._tables.by_incarnation[record.uuid]
        for partition, before in table.before.items():
            row = table.rows[partition]
            if problem := _step_problem(before, row, event):
                text = f"{record.member} took partition {partition} to version {row.version}: {problem}"
                return self.violated(text, record)
        return None


def _step_problem(before: PartitionRow | None, row: PartitionRow, event: TableChanged) -> str:
    """Return the mistake in a step from `before` to `row`; empty when the step is correct."""
    grown = row.version - (before.version if before else 0)
    if event.cause == "arranged":
        return "" if before is None or before.replicas == 0 else "it was arranged before"
    if before is None:
        return f"{event.cause} without an arrangement"
    changed = sum(old != new for old, new in zip_longest(before.holders, row.holders))
    if event.cause == "migration":
        if changed and grown != SUCCESS_INCREMENT:
            return f"a commit raised the version by {grown}"
        if not changed and grown != FAILURE_INCREMENT:
            return f"a failure raised the version by {grown}"
        return ""
    return "" if 1 <= grown <= max(1, changed) else f"{changed} repaired slots raised the version by {grown}"


@dataclass(eq=False)
class RowSanity(Invariant):
    """Every row is of one width, names no member twice, and has an owner before it has backups.

    At the master, a member that gets a slot stands on the list and may hold data.
    """

    name = "row"

    _widths: dict[str, int] = field(default_factory=dict)

    def _change(self, record: Record, event: TableChanged) -> Violation | None:
        table = self._tables.by_incarnation[record.uuid]
        for partition in table.before:
            holders = table.rows[partition].holders
            problem = self._problem(record, holders) or self._unexpected_holder(record, event, table, partition)
            if problem:
                text = f"partition {partition} is {self._tables.names(holders)} at {record.member}: {problem}"
                return self.violated(text, record)
        return None

    def _problem(self, record: Record, holders: tuple[str | None, ...]) -> str:
        present = [uuid for uuid in holders if uuid is not None]
        if len(set(present)) < len(present):
            return "an incarnation stands there twice"
        if present and holders[0] is None:
            return "it has backups and no owner"
        width = self._widths.setdefault(record.uuid, len(holders))
        return "" if len(holders) == width else f"other rows are {width} wide"

    def _unexpected_holder(self, record: Record, event: TableChanged, table: IncarnationTable, partition: int) -> str:
        view = self._tables.incarnations.of(record).view
        if event.author != record.uuid or event.cause not in ("arranged", "migration") or view is None:
            return ""
        before = table.before[partition]
        allowed = {member.uuid for member in view.members if not member.lite}
        allowed.update(uuid for uuid in (before.holders if before else ()) if uuid)
        strangers = [uuid for uuid in table.rows[partition].holders if uuid and uuid not in allowed]
        return f"{self._tables.label(strangers[0])} may not hold data" if strangers else ""


class Replicas(Invariant):
    """No migration takes away a replica that is wanted, unless it is marked as unavoidable."""

    name = "replicas"

    def _change(self, record: Record, event: TableChanged) -> Violation | None:
        if event.author != record.uuid or event.cause != "migration":
            return None
        table = self._tables.by_incarnation[record.uuid]
        migrations = self._tables.migrations_by_master.get(record.uuid)
        for partition, before in table.before.items():
            row = table.rows[partition]
            if before is None or row.replicas >= before.replicas:
                continue
            started = migrations.latest.get(partition) if migrations is not None else None
            if started is None or (row.replicas < started[1].replicas_wanted and not started[1].unavoidable):
                text = f"a migration left partition {partition} {row.replicas} of {before.replicas} replicas"
                return self.violated(text, started[0] if started else None, record)
        return None


class LatestTable(Invariant):
    """A new master's table has no partition older than any member of its list has it (Avoid Data Loss on Migration, 1.2).

    Members that are in another cluster by then do not count, for the master does not know that they left: their list is of a
    lineage where the master has never been, or does not hold the master.
    """

    name = "latest table"

    def _recover(self, record: Record, event: TableRecovered) -> Violation | None:
        master = self._tables.incarnations.of(record)
        ours = self._tables.by_incarnation.get(record.uuid)
        for member in master.members:
            follower = self._tables.incarnations.by_uuid.get(member.uuid)
            view = follower.view if follower is not None else None
            is_listed = view is None or any(member.uuid == record.uuid for member in view.members)
            if not is_listed or (view is not None and view.lineage not in master.reached):
                continue
            theirs = self._tables.by_incarnation.get(member.uuid)
            for partition, row in theirs.rows.items() if theirs else ():
                own = ours.rows.get(partition) if ours else None
                if own is None or own.version < row.version:
                    mine = f"{record.member} recovered version {own.version if own else 0} of partition {partition}"
                    text = f"{mine}, {self._tables.label(member.uuid)} has version {row.version}"
                    return self.violated(text, theirs.record if theirs else None, record)
        return None


@dataclass(eq=False)
class GroupReplicas(Invariant):
    """When a master has nothing left to migrate, no group (such as a zone) has two replicas of a partition.

    What members that leave or are to be demoted have still does not count: nothing is planned for them.
    """

    name = "groups"

    _leaving: set[str] = field(default_factory=set)

    def _drain(self, record: Record, event: DrainStarted) -> None:
        members = self._tables.incarnations.of(record).members
        self._leaving.update(member.uuid for member in members if member.address == event.address)

    def _plan(self, record: Record, event: MigrationsPlanned) -> Violation | None:
        table = self._tables.by_incarnation.get(record.uuid)
        migrations = self._tables.migrations_by_master.get(record.uuid)
        if event.planned or table is None or (migrations is not None and migrations.running):
            return None
        master = self._tables.incarnations.of(record)
        leaving = self._leaving.union(member.uuid for member in master.members if member.address in event.without)
        groups = self._groups(master, leaving)
        if len(set(groups.values())) == len(groups) or self._tables.division:
            return None
        if any(word != "other-table" for word, _ in self._tables.unsafety()):
            return None
        for partition, row in table.rows.items():
            staying = (holder for holder in row.holders if holder is not None and holder not in leaving)
            of_holders = Counter(groups.get(holder, holder) for holder in staying)
            group, count = of_holders.most_common(1)[0] if of_holders else ("", 0)
            if count > 1:
                names = self._tables.names(row.holders)
                text = f"{record.member} leaves partition {partition} at {names}, {count} of them in group {group}"
                return self.violated(text, record)
        return None

    def _groups(self, master: IncarnationHistory, leaving: Collection[str]) -> dict[str, str]:
        """Return the group of each member that holds data and stays. Zones are read here once more: the core is not believed."""
        members = self._tables.data_members(master, without=leaving)
        zones = {member.uuid: member.zone or member.address for member in members}
        if master.settings.get("quarterdeck.partition.group.type") == "zone-aware" and len(set(zones.values())) > 1:
            return zones
        groups = self._tables.groups_of(master, without=leaving)
        return {} if any(isinstance(group, Half) for group in groups.values()) else groups
