"""The fold of migrations: the plan, the running ones, and their ends.

See Avoid Data Loss on Migration, 2 and 3.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from copy import copy
from itertools import chain
from typing import Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from quarterdeck.backend.core import events
from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.partitions import events as partition_events
from quarterdeck.backend.core.partitions.events import ALL_LOST, MigrationStarted, PlannedMigration
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.core.witnessed.events import ReplicaMigrated

WINDOW_S = 10
"""Seconds that the pace is taken over."""


class MigrationRate(NamedTuple):
    """What happened in a second, on average over the window."""

    migrations: float
    bytes: float


class _Second(NamedTuple):
    second: int
    migrations: int
    bytes: int


class MigrationRates:
    """Counts by whole seconds, so that thousands of migrations cost no more room than ten."""

    def __init__(self) -> None:
        self._seconds: deque[_Second] = deque(maxlen=WINDOW_S + 1)

    def fork(self) -> MigrationRates:
        """Return the same rates, to go their own way from here."""
        twin = MigrationRates()
        twin._seconds = self._seconds.copy()
        return twin

    def count(self, at_us: int, *, migrations: int = 0, size: int = 0) -> None:
        second = at_us // SECOND_US
        if self._seconds and self._seconds[-1].second >= second:
            last = self._seconds[-1]
            self._seconds[-1] = last._replace(migrations=last.migrations + migrations, bytes=last.bytes + size)
        else:
            self._seconds.append(_Second(second, migrations, size))

    def at(self, now_us: int) -> MigrationRate:
        """Return the pace over the last `WINDOW_S` seconds, or since the first that was counted in them."""
        now = now_us // SECOND_US
        counted = [second for second in self._seconds if now - WINDOW_S < second.second <= now]
        if not counted:
            return MigrationRate(0.0, 0.0)
        length_s = max(1, min(WINDOW_S, now - counted[0].second + 1))
        return MigrationRate(
            sum(second.migrations for second in counted) / length_s, sum(second.bytes for second in counted) / length_s
        )


ENDED_KEPT = 100
"""Ended migrations of each kind that are remembered; all of them are counted."""

BEGUN_KEPT = 1_000
"""Migrations whose end was not recorded; more than that have lost their master without a word of it."""

SAME_LOSS_US = 10_000_000
"""A partition that is lost again within this time is the same loss, reported by another member."""

Phase = Literal["copying", "committing"]


class SeenMigration(NamedTuple):
    """A migration under way. Bytes and chunks are not known before all are copied."""

    begun: MigrationStarted
    since_us: int
    phase: Phase = "copying"


class CopiedData(NamedTuple):
    """What the owner copied for a migration, and how long that took."""

    chunks: int
    bytes: int
    took_us: int


class EndedMigration(NamedTuple):
    """How a migration ended, when, after how long, and who recorded it."""

    begun: MigrationStarted
    committed: bool
    reason: str
    at_us: int
    took_us: int
    leader: str
    copied: CopiedData | None
    """What was copied for it, if that was recorded."""


class WitnessedMigration(NamedTuple):
    """A migration of which only the end was recorded, when, and by which member."""

    migrated: ReplicaMigrated
    at_us: int
    teller: str


class PartitionLoss(NamedTuple):
    """A partition that lost data, when, and which member recorded it."""

    partition: int
    at_us: int
    leader: str
    lost_backups: int = ALL_LOST
    """Maps with at most so many backups lost entries."""


class Recovery(Struct, frozen=True):
    """The search of a new master for the latest table."""

    asked: tuple[Address, ...]
    since_us: int


class MigrationsLed(Struct):
    """What a member records of migrations while it leads them. All but the counts is void once it leads no more."""

    planned: dict[int, tuple[PlannedMigration, ...]] = {}
    """What has not begun, by partition, in the order of the plan."""
    waiting: int = 0
    """How many migrations `planned` holds."""
    running: dict[str, SeenMigration] = {}
    """By id, the longest running first."""
    ever_planned: bool = False
    planned_count: int = 0
    """How many migrations the latest plan with anything to do had."""
    moves: int = 0
    lower_bound: int = 0
    """Replicas that the latest plan with anything to do copies, and how many any plan would have to."""
    why: str = ""
    """What that plan is for; after it was dropped, why it was."""
    cancelled: int = 0
    """How many of the latest plan were dropped."""
    done: int = 0
    failed: int = 0
    """How many were committed and rolled back in this incarnation."""
    recovering: Recovery | None = None
    draining: dict[Address, int] = {}
    """Members that wait to leave, and since when."""

    def queue(self) -> Iterator[PlannedMigration]:
        """Yield what has not begun."""
        return chain.from_iterable(self.planned.values())

    @property
    def busy(self) -> bool:
        """Whether there is anything left to do."""
        return bool(self.waiting or self.running or self.recovering or self.draining)

    def fork(self) -> MigrationsLed:
        """Return the same, to go its own way from here."""
        return replace(self, planned=dict(self.planned), running=dict(self.running), draining=dict(self.draining))

    def void(self) -> None:
        """Drop the queue, since the member leads no more; how the running ones end is for the next master to find out."""
        if self.busy:
            self.planned, self.waiting, self.recovering = {}, 0, None
            self.running.clear()
            self.draining.clear()


class MigrationHistory:
    """The migrations that ended, and the partitions that were lost, whichever master led and whatever became of it since."""

    def __init__(self) -> None:
        self.done: deque[EndedMigration] = deque(maxlen=ENDED_KEPT)
        self.failed: deque[EndedMigration] = deque(maxlen=ENDED_KEPT)
        self.lost: deque[PartitionLoss] = deque(maxlen=ENDED_KEPT)
        self.witnessed: deque[WitnessedMigration] = deque(maxlen=ENDED_KEPT)
        """Those of which only the end was recorded. Each of these four has the latest last."""
        self.done_count = self.failed_count = self.lost_count = 0
        self.rates = MigrationRates()
        self.copied: dict[str, CopiedData] = {}
        """What was copied for the migrations under way, by id."""
        self._begun: dict[str, tuple[MigrationStarted, int]] = {}

    def fork(self) -> MigrationHistory:
        """Return the same history, to go its own way from here."""
        twin = copy(self)
        twin.done, twin.failed, twin.lost = self.done.copy(), self.failed.copy(), self.lost.copy()
        twin.witnessed = self.witnessed.copy()
        twin.rates, twin.copied, twin._begun = self.rates.fork(), dict(self.copied), dict(self._begun)
        return twin

    def take(self, record: Record) -> None:
        """Take in one record of a kind of `HISTORY_EVENTS`."""
        match record.event:
            case MigrationStarted() as begun:
                self._begun[begun.migration_id] = begun, record.at
                if len(self._begun) > BEGUN_KEPT:
                    forgotten = next(iter(self._begun))
                    del self._begun[forgotten]
                    self.copied.pop(forgotten, None)
            case partition_events.MigrationCopied(migration_id, _, chunks, size, took):
                self.rates.count(record.at, size=size)
                if migration_id in self._begun:
                    self.copied[migration_id] = CopiedData(chunks, size, took)
            case partition_events.MigrationDecided(migration_id, _, committed, _, reason):
                self._end(migration_id, record, committed, reason)
            case partition_events.TableRecovered(_, _, committed_ids, rolled_back_ids):
                for migration_id in committed_ids:
                    self._end(migration_id, record, True, "the new master found it committed")
                for migration_id in rolled_back_ids:
                    self._end(migration_id, record, False, "its master was gone before the commit")
            case ReplicaMigrated() as migrated:
                self.witnessed.append(WitnessedMigration(migrated, record.at, record.member))
                self._count(record.at, migrated.succeeded)
            case partition_events.PartitionLost(partition) as loss if loss.loses_data:
                lost = PartitionLoss(partition, record.at, record.member, loss.lost_backups)
                self._lose(lost, loss.data_lost is not None)

    def _lose(self, loss: PartitionLoss, witnessed: bool) -> None:
        """Count a loss; one that is `witnessed` only once, for every member of Hazelcast reports it."""
        same = (loss.partition, loss.leader)
        known = (earlier for earlier in reversed(self.lost) if (earlier.partition, earlier.leader) == same)
        if not witnessed or all(loss.at_us - earlier.at_us > SAME_LOSS_US for earlier in known):
            self.lost.append(loss)
            self.lost_count += 1

    def _end(self, migration_id: str, record: Record, committed: bool, reason: str) -> None:
        """Nothing is known of one whose beginning was not seen, or whose end was recorded before."""
        if migration_id not in self._begun:
            return
        begun, since_us = self._begun.pop(migration_id)
        copied = self.copied.pop(migration_id, None)
        ended = EndedMigration(begun, committed, reason, record.at, record.at - since_us, record.member, copied)
        (self.done if committed else self.failed).append(ended)
        self._count(record.at, committed)

    def _count(self, at_us: int, committed: bool) -> None:
        self.rates.count(at_us, migrations=1)
        self.done_count += committed
        self.failed_count += not committed


LEADING_EVENTS = (
    MigrationStarted, partition_events.MigrationCommitting, partition_events.MigrationDecided,
    partition_events.MigrationsPlanned, partition_events.MigrationsCancelled, partition_events.TableRecoveryStarted,
    partition_events.TableRecovered, partition_events.DrainStarted, partition_events.DrainFinished,
)  # fmt: skip


def fold_leading(leading: MigrationsLed, event: events.Event, at: int) -> None:
    """Change what a member leads by one of `LEADING_EVENTS`."""
    match event:
        case MigrationStarted(migration_id, partition):
            leading.running[migration_id] = SeenMigration(event, at)
            queue = leading.planned.get(partition)
            if queue is not None:  # it is the first of its partition
                leading.waiting -= 1
                leading.planned[partition] = queue[1:]
                if len(queue) == 1:
                    del leading.planned[partition]
        case partition_events.MigrationCommitting(migration_id):
            running = leading.running.get(migration_id)
            if running is not None:
                leading.running[migration_id] = running._replace(phase="committing")
        case partition_events.MigrationDecided(migration_id):
            leading.running.pop(migration_id, None)
            leading.done += event.committed
            leading.failed += not event.committed
        case partition_events.MigrationsPlanned():
            _take_plan(leading, event)
        case partition_events.MigrationsCancelled(remaining, reason):
            leading.planned, leading.waiting = {}, 0
            leading.cancelled, leading.why = remaining, reason
        case partition_events.TableRecoveryStarted(asked):
            leading.recovering = Recovery(asked, at)
        case partition_events.TableRecovered():
            leading.recovering = None
        case partition_events.DrainStarted(address):
            leading.draining.setdefault(address, at)
        case partition_events.DrainFinished(address):
            leading.draining.pop(address, None)


def _take_plan(leading: MigrationsLed, event: partition_events.MigrationsPlanned) -> None:
    """Take a plan. A place that is only cleared is no migration: only the table shows when its turn comes."""
    leading.planned, leading.waiting, leading.cancelled = {}, 0, 0
    leading.ever_planned = True
    if not event.planned:
        return  # the plan before is what has led here
    leading.moves, leading.lower_bound, leading.why = event.moves, event.lower_bound, event.why
    for migration in event.planned:
        if migration.type != "CLEAR":
            leading.planned[migration.partition] = (*leading.planned.get(migration.partition, ()), migration)
            leading.waiting += 1
    leading.planned_count = leading.waiting


HISTORY_EVENTS = frozenset((
    MigrationStarted, partition_events.MigrationCopied, partition_events.MigrationDecided,
    partition_events.TableRecovered, partition_events.PartitionLost, ReplicaMigrated,
))  # fmt: skip
"""What a `MigrationHistory` listens to."""
