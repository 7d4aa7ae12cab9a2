"""The partition tables of all members and the migrations of all masters, as the records of a run show them.

See Avoid Data Loss on Migration. Shared by the invariants about partitions and by the expectations of scenarios. Everything
comes from the records.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from quarterdeck.backend.core.data.events import EntriesMerged
from quarterdeck.backend.core.events import ProcessKilled, Record
from quarterdeck.backend.core.membership.events import ListInstalled, MemberMerging, MemberStopped
from quarterdeck.backend.core.membership.views.identity import Member
from quarterdeck.backend.core.partitions import events as partition_events
from quarterdeck.backend.core.partitions.arrangement.member_groups import groups_of
from quarterdeck.backend.invariants.event_rules import EventRules
from quarterdeck.backend.invariants.incarnations import IncarnationHistory, RunIncarnations
from quarterdeck.backend.picture.fold.belief import Unsafety


class PartitionRow(NamedTuple):
    """One partition as an incarnation knows it: its holders by replica index, None for an empty slot."""

    version: int
    holders: tuple[str | None, ...]

    @property
    def replicas(self) -> int:
        return sum(holder is not None for holder in self.holders)


class Imbalance(NamedTuple):
    """The replica index at which the members' shares differ most, and by how much."""

    replica_index: int
    difference: int
    spare_groups: int
    """Groups of members that may hold data beyond the groups that one row takes."""


@dataclass(slots=True, eq=False)
class IncarnationTable:
    """The table of one incarnation."""

    rows: dict[int, PartitionRow] = field(default_factory=dict)
    before: dict[int, PartitionRow | None] = field(default_factory=dict)
    """The former content of the rows that changed last; None for rows without a former content."""
    partitions: int = 0
    version: int = 0
    digest: str = ""
    author: str = ""
    record: Record | None = None
    """The last change."""


@dataclass(slots=True, eq=False)
class MasterMigrations:
    """The actions of one incarnation as a master."""

    planned: dict[int, int] = field(default_factory=dict)
    """By partition, how many migrations are in the queue and not begun."""
    running: dict[int, tuple[Record, partition_events.MigrationStarted]] = field(default_factory=dict)
    """By partition, the migration that is begun and not decided."""
    latest: dict[int, tuple[Record, partition_events.MigrationStarted]] = field(default_factory=dict)
    """By partition, the migration that was begun last."""


class PartitionTables(EventRules):
    """All tables, by incarnation. `incarnations` must be shown each record before."""

    def __init__(self, incarnations: RunIncarnations) -> None:
        self.incarnations = incarnations
        self.by_incarnation: dict[str, IncarnationTable] = {}
        self.migrations_by_master: dict[str, MasterMigrations] = {}
        self.newest: dict[int, PartitionRow] = {}
        """The latest row of each partition that any incarnation of the cluster has had, while that is undivided."""
        self.divided = ""
        """Why the members are not, or were not always, one undivided cluster; empty while they are."""
        self.division = ""
        """Why they are not one undivided cluster now. It ends when all are one again, whose data is safe and merged."""
        self.before_change: list[Callable[[], None]] = []
        """Functions called before a record changes whether data is safe."""
        self.reunited: list[Callable[[], None]] = []
        """Called when a division has ended."""
        self._roots: dict[str, str] = {}
        self._gone: set[str] = set()
        self.bringing: dict[str, str] = {}
        """The incarnations that bring entries along from the cluster that they have left, with their labels."""

    @property
    def in_use(self) -> bool:
        return bool(self.by_incarnation)

    def alive(self) -> Iterator[IncarnationHistory]:
        """Return the incarnations that are members of a cluster and have not ended."""
        known = self.incarnations.by_uuid.values()
        return (member for member in known if member.view is not None and member.uuid not in self._gone)

    def why_not_safe(self) -> str:
        """Return what keeps the data from being safe now, in words; empty when nothing does.

        It is safe when one master leads, nothing is planned or running, every row is as full as it can be with holders that
        live, and all members have the master's table. A cluster without a table has nothing to lose.
        """
        return next((reason for _, reason in self.unsafety()), "")

    def unsafety(self) -> Iterator[tuple[Unsafety, str]]:
        """Yield all that keeps the data from being safe now, each in a word and in words."""
        alive = {incarnation.uuid: incarnation for incarnation in self.alive()}
        masters = self._masters()
        if len(masters) != 1:
            yield "several-masters", f"{len(masters)} members lead"
            return
        master = masters[0]
        if reason := self._why_not_led(master):
            yield "migrating", reason
        if reason := self._why_not_alike(master, alive):
            yield "other-table", reason
        if reason := self._why_not_full(master, alive):
            yield "replica-missing", reason

    def imbalance(self, *, within_groups: bool = False) -> Imbalance | None:
        """Return how unevenly the one master's table spreads replicas over the members that may hold data; None without a table.

        Groups of one size share alike. Where they differ in size, members may be compared `within_groups` only.
        """
        master = self.one_master()
        table = self.by_incarnation.get(master.uuid) if master is not None else None
        if master is None or table is None or not table.rows:
            return None
        groups: dict[str, list[str]] = {}
        for uuid, group in self.groups_of(master).items():
            groups.setdefault(group, []).append(uuid)
        alike = len({len(members) for members in groups.values()}) <= 1
        compared = list(groups.values())
        if alike or not within_groups:
            compared = [[uuid for members in groups.values() for uuid in members]]
        width = min(len(next(iter(table.rows.values())).holders), len(groups))
        worst = Imbalance(0, 0, len(groups) - width)
        for index in range(width):
            counts = Counter(row.holders[index] for row in table.rows.values())
            for members in compared:
                shares = [counts[uuid] for uuid in members]
                if max(shares) - min(shares) > worst.difference:
                    worst = Imbalance(index, max(shares) - min(shares), len(groups) - width)
        return worst

    def one_master(self) -> IncarnationHistory | None:
        """Return the only master among the running incarnations; None when none or several lead."""
        masters = self._masters()
        return masters[0] if len(masters) == 1 else None

    def is_without_table(self) -> bool:
        """Return whether one master leads and no living member has a table: data was never used, or not since all began anew."""
        return self.one_master() is not None and all(member.uuid not in self.by_incarnation for member in self.alive())

    def has_left_off(self, uuid: str, first: ListInstalled, members: Container[str]) -> bool:
        """Return whether these members have replaced the first list of an incarnation by one without it already."""
        views = (other.view for other in self.alive() if other.uuid in members and other.view is not None)
        newest = max(views, key=lambda view: view.version, default=first)
        return newest.version > first.version and all(member.uuid != uuid for member in newest.members)

    def is_gone(self, uuid: str) -> bool:
        return uuid in self._gone

    def label(self, uuid: str) -> str:
        incarnation = self.incarnations.by_uuid.get(uuid)
        return incarnation.label if incarnation is not None else uuid

    def names(self, holders: Iterable[str | None]) -> str:
        """Return the holders of a row by replica index, for people."""
        return ", ".join("-" if uuid is None else self.label(uuid) for uuid in holders)

    # Why it is not safe

    def _why_not_led(self, master: IncarnationHistory) -> str:
        migrations = self.migrations_by_master.get(master.uuid)
        if migrations is None:
            return ""
        if migrations.running:
            return f"{len(migrations.running)} migrations are running"
        if migrations.planned:
            return f"{sum(migrations.planned.values())} migrations are planned"
        return ""

    def _why_not_alike(self, master: IncarnationHistory, alive: Mapping[str, IncarnationHistory]) -> str:
        ours = self.by_incarnation.get(master.uuid)
        for uuid, incarnation in alive.items():
            theirs = self.by_incarnation.get(uuid)
            if (theirs and (theirs.version, theirs.digest)) != (ours and (ours.version, ours.digest)):
                return f"{incarnation.label} has another table than its master {master.label}"
        return ""

    def _why_not_full(self, master: IncarnationHistory, alive: Mapping[str, IncarnationHistory]) -> str:
        table = self.by_incarnation.get(master.uuid)
        if table is None:
            return ""
        groups = len(set(self.groups_of(master).values()))
        for partition, row in table.rows.items():
            for holder in row.holders:
                if holder is not None and holder not in alive:
                    return f"{self.label(holder)} holds partition {partition} and does not run"
            if row.replicas < min(len(row.holders), groups):
                return f"partition {partition} has {row.replicas} replicas"
        return ""

    def _masters(self) -> list[IncarnationHistory]:
        return [member for member in self.alive() if member.view is not None and member.view.master == member.address]

    def data_members(self, master: IncarnationHistory, without: Collection[str] = ()) -> list[Member]:
        return [member for member in master.members if not member.lite and member.uuid not in without]

    def groups_of(self, master: IncarnationHistory, without: Collection[str] = ()) -> dict[str, str]:
        """Return the groups of the members that may hold data: no group has two replicas of a partition.

        There are none where a journal names groups that cannot be read: then nothing is known of them.
        """
        data = self.data_members(master, without)
        kind, patterns = (master.settings.get(f"quarterdeck.partition.{name}", "") for name in ("group.type", "groups"))
        try:
            return groups_of(data, kind, patterns)
        except ValueError:
            return {}

    # What the records show

    def _notice(self) -> None:
        for look in self.before_change:
            look()

    def _change(self, record: Record, event: partition_events.TableChanged) -> None:
        table = self.by_incarnation.get(record.uuid)
        if table is None:
            table = self.by_incarnation[record.uuid] = IncarnationTable()
        table.before = {}
        for partition, version, *places in event.rows:
            row = PartitionRow(version, tuple(None if place < 0 else event.holders[place].uuid for place in places))
            table.before[partition] = table.rows.get(partition)
            table.rows[partition] = row
            newest = self.newest.get(partition)
            # A master that arranges anew has not heard of an arrangement before, and no member is left that has.
            # A master that repairs may come to a version that died with a master before it was published.
            is_anew = event.cause == "arranged" or (event.cause == "repaired" and newest and newest.version == version)
            if newest is None or newest.version < version or is_anew:
                self.newest[partition] = row
        table.version, table.digest, table.author = event.table_version, event.digest, event.author
        table.partitions, table.record = event.partitions, record
        self._look_whether_one()

    def _plan(self, record: Record, event: partition_events.MigrationsPlanned) -> None:
        self._notice()
        migrations = self.migrations_by_master.setdefault(record.uuid, MasterMigrations())
        migrations.planned = dict(Counter(move.partition for move in event.planned if move.destination is not None))
        self._look_whether_one()

    def _cancel(self, record: Record, event: partition_events.MigrationsCancelled) -> None:
        self.migrations_by_master.setdefault(record.uuid, MasterMigrations()).planned.clear()

    def _start(self, record: Record, event: partition_events.MigrationStarted) -> None:
        self._notice()
        migrations = self.migrations_by_master.setdefault(record.uuid, MasterMigrations())
        migrations.running[event.partition] = migrations.latest[event.partition] = record, event
        left = migrations.planned.pop(event.partition, 0) - 1
        if left > 0:
            migrations.planned[event.partition] = left

    def _decide(self, record: Record, event: partition_events.MigrationDecided) -> None:
        migrations = self.migrations_by_master.setdefault(record.uuid, MasterMigrations())
        migrations.running.pop(event.partition, None)
        self._look_whether_one()

    def _install(self, record: Record, event: ListInstalled) -> None:
        self._notice()
        incarnation = self.incarnations.of(record)
        before = incarnation.before
        if before is None:
            self._roots.setdefault(event.lineage, event.lineage)
        elif before.lineage != event.lineage:
            self._roots.setdefault(event.lineage, self._roots.get(before.lineage, before.lineage))
        if self.division:
            self._look_whether_one()
        elif len(set(self._roots.values())) > 1:
            self._divide(f"{record.member} began or joined a second cluster")
        elif before is not None:
            here = {member.uuid for member in event.members}
            for member in before.members:
                if member.uuid not in here and self._goes_on(member.uuid):
                    self._divide(f"{record.member} left {self.label(member.uuid)} off its list, which lived on")
            if before.lineage != event.lineage and incarnation.is_author_of(event):
                self._look_for_unknown(record, event, here)
        elif self.has_left_off(record.uuid, event, self.incarnations.by_uuid):
            self._divide(f"{record.member} begins with a list that was replaced by one without it")

    def _look_for_unknown(self, record: Record, event: ListInstalled, here: set[str]) -> None:
        """Note the division where a claimant leaves off members of its cluster of which it has never heard."""
        root = self._roots[event.lineage]
        for other in self.alive():
            lineage = other.view.lineage if other.view is not None else ""
            if other.uuid not in here and self._roots.get(lineage, lineage) == root:
                self._divide(f"{record.member} began a list without {other.label}, of which it had not heard")

    def _divide(self, why: str) -> None:
        self.division = self.division or why
        self.divided = self.divided or why

    def _look_whether_one(self) -> None:
        """End the division if nothing is left of it: one list holds all who live, and their data is safe."""
        if not self.division or self.bringing:
            return
        alive = {incarnation.uuid: incarnation for incarnation in self.alive()}
        view = next((member.view for member in alive.values()), None)
        if view is None or {member.uuid for member in view.members} != alive.keys():
            return
        version = view.lineage, view.version
        if any(found.view is None or (found.view.lineage, found.view.version) != version for found in alive.values()):
            return
        if self.why_not_safe():
            return
        self.division = ""
        self._roots = {view.lineage: view.lineage}
        table = self.by_incarnation.get(next(iter(alive)))
        self.newest = dict(table.rows) if table is not None else {}
        for look in self.reunited:
            look()

    def _goes_on(self, uuid: str) -> bool:
        incarnation = self.incarnations.by_uuid.get(uuid)
        return incarnation is not None and not incarnation.ended

    def _stop(self, record: Record, event: MemberStopped) -> None:
        self._end(record.uuid)

    def _merge(self, record: Record, event: MemberMerging) -> None:
        self._notice()
        self._divide(f"{record.member} merges into another cluster")
        if event.brings_entries is not False:
            self.bringing[event.next_uuid] = record.member
        self._end(record.uuid)

    def _brought(self, record: Record, event: EntriesMerged) -> None:
        self.bringing.pop(record.uuid, None)
        self._look_whether_one()

    def _kill(self, record: Record, event: ProcessKilled) -> None:
        # Also what would have become of it, had it not been killed while it merged.
        self.bringing = {uuid: label for uuid, label in self.bringing.items() if label != event.target}
        self._end(self.incarnations.ended_by(record))

    def _end(self, uuid: str) -> None:
        self._notice()
        self._gone.add(uuid)
        self.bringing.pop(uuid, None)
        self._look_whether_one()
