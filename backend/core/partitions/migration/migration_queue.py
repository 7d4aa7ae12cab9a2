"""The master's queue of migrations (Avoid Data Loss on Migration, 3; Hazelcast: migration manager).

Migrations of one partition are done in their order, one after the other; those of different partitions at the same time, as long
as no member, sending or receiving, takes part in more than ``hazelcast.partition.max.parallel.migrations``. When anything fails
or the members change, what has not begun is cancelled and planned anew; what runs is brought to its end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Set
from itertools import islice

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.causes import Reason
from quarterdeck.backend.core.cluster_profile import allows_migrations
from quarterdeck.backend.core.membership.views.identity import Member
from quarterdeck.backend.core.partitions.events import MigrationStarted
from quarterdeck.backend.core.partitions.messages import MigrationReport, MigrationRequest
from quarterdeck.backend.core.partitions.migration.migration import PartitionMigration
from quarterdeck.backend.core.partitions.migration.migration_planner import MigrationStep
from quarterdeck.backend.core.partitions.migration.migration_transfer import begin_copy
from quarterdeck.backend.core.partitions.migration.replanning import cancel
from quarterdeck.backend.core.partitions.migration.safe_commit import (
    ask_destination,
    begin_commit,
    decide,
    running_migration,
)
from quarterdeck.backend.core.partitions.state import MasterRole, PartitionedMember, RunningMigration
from quarterdeck.backend.core.partitions.table.partition_table import Replica, VersionedRow
from quarterdeck.backend.core.partitions.table.table_publishing import change, publish_to
from quarterdeck.backend.core.properties import MILLISECOND_US, SECOND_US

MIGRATIONS = "migrations"
"""Name of the timer that asks again, gives up, and begins what had to wait."""

ASK_AGAIN_US = 1 * SECOND_US
SOON_US = 20 * MILLISECOND_US
LOOK_AHEAD = 256
"""So many partitions of the queue are looked at for one whose members are not busy."""


def start_next(state: PartitionedMember, now: int) -> None:
    """Begin whatever may begin now."""
    master_role = state.master_role
    if not master_role.queue or master_role.members_busy or not _may_begin(state):
        return
    master_role.members_busy = True  # whatever may begin begins now; the rest, when something has ended
    holders = {member.uuid: Replica(member.address, member.uuid) for member in _members(state)}
    running = master_role.running.values()
    busy = Counter(uuid for run in running for uuid in {run.owner_uuid, run.migration.destination.uuid})
    most = state.settings.parallel_migrations
    full = {uuid for uuid, migrations in busy.items() if migrations >= most}
    for partition, steps in list(islice(master_role.queue.items(), LOOK_AHEAD)):
        if partition in master_role.running or steps[0].destination in full:
            continue
        if not _clear_places(state, now, master_role, partition):
            master_role.members_busy = False  # one that was not looked at has come nearer
            continue
        destination = steps[0].destination
        if destination in full:
            continue
        owner = state.table.owner(partition)
        if owner is None or destination is None or destination not in holders:
            why = f"partition {partition} is not as it was when its migration was planned"
            cancel(state, now, Reason("partition-changed", why))
            break
        if now < master_role.next_start_us:
            master_role.members_busy = False
            break
        if owner.uuid not in full:
            busy.update((owner.uuid, destination))
            full.update(uuid for uuid in (owner.uuid, destination) if busy[uuid] >= most)
            master_role.next_start_us = now + state.settings.migration_interval_us
            _start(state, now, partition, owner, holders)


def on_report(state: PartitionedMember, now: int, sender: Address, report: MigrationReport) -> None:
    """Note that the owner has copied, or cannot."""
    running = running_migration(state, report.migration_id)
    if running is not None and running.owner == sender and running.phase == "copying":
        _apply_report(state, now, running, report)


def look_at_own_copies(state: PartitionedMember, now: int) -> None:
    """Apply the outcome of copies that this master itself sends: it gets no reports of them."""
    master_role = state.master_role
    for running in list(master_role.running.values()):
        active = state.partitions.active.get(running.migration.partition)
        if running.phase != "copying" or running.owner_uuid != state.uuid or active is None or active.sending is None:
            continue
        if active.sending.finished or active.sending.problem:
            _apply_report(state, now, running, MigrationReport(running.migration.id, active.sending.problem))


def on_migrations_timer(state: PartitionedMember, now: int) -> None:
    """Ask again where an answer is missing; end copies that take too long."""
    master_role = state.partitions.master_role
    if master_role is None:
        return
    for running in list(master_role.running.values()):
        if running.phase == "copying" and running.deadline_us <= now:
            decide(state, now, running, False, "copy-too-slow", "the copy took too long")
        elif running.ask_again_us <= now:
            if running.phase == "copying":
                _ask_to_copy(state, now, running)
            else:
                ask_destination(state, now, running)


def give_up_on(state: PartitionedMember, now: int, present: Set[str]) -> None:
    """After a change of the list: end the migrations whose participants are gone, as far as that decides them (2.1).

    One that is being committed is decided by its destination alone.
    """
    master_role = state.master_role
    for running in list(master_role.running.values()):
        destination = running.migration.destination
        if destination.uuid not in present:
            decide(state, now, running, False, "participant-left", f"{destination.address} has left")
        elif running.phase == "copying" and running.owner_uuid not in present:
            decide(state, now, running, False, "participant-left", f"{running.owner} has left")


def plan_timer(state: PartitionedMember, now: int) -> None:
    """Set the timer to what comes first."""
    master_role = state.partitions.master_role
    due: list[int] = []
    if master_role is not None and master_role.recovery is None:
        for run in master_role.running.values():
            due.append(min(run.ask_again_us, run.deadline_us) if run.phase == "copying" else run.ask_again_us)
        if master_role.wants_plan and not master_role.running and state.admission is None:
            due.append(master_role.not_before_us)
        elif master_role.queue and not master_role.members_busy and _may_begin(state):
            due.append(master_role.next_start_us)
    if due:
        state.timers.set(MIGRATIONS, max(now, min(due)))
    else:
        state.timers.clear(MIGRATIONS)


def _may_begin(state: PartitionedMember) -> bool:
    """Return whether migrations may begin. The cluster's state must allow it, and every joiner know of its admission."""
    return state.admission is None and allows_migrations(state.standing.state)


def _members(state: PartitionedMember) -> tuple[Member, ...]:
    return state.members.members if state.members is not None else ()


def _clear_places(state: PartitionedMember, now: int, master_role: MasterRole, partition: int) -> bool:
    """Empty places in the table as planned, without migrations. Return whether anything of the partition is left to be done."""
    table = state.table
    while partition in master_role.queue and master_role.queue[partition][0].type == "CLEAR":
        step = _next_step(master_role, partition)
        replicas = list(table.rows[partition])
        cleared = replicas[step.source_current]
        replicas[step.source_current] = None
        row = VersionedRow(partition, table.versions[partition] + 1, tuple(replicas))
        change(state, now, [row], (), "repaired")
        owner = table.owner(partition)
        publish_to(state, now, [replica.uuid for replica in (cleared, owner) if replica is not None])
    return partition in master_role.queue


def _next_step(master_role: MasterRole, partition: int) -> MigrationStep:
    steps = master_role.queue[partition]
    step = steps.popleft()
    if not steps:
        del master_role.queue[partition]
    return step


def _start(state: PartitionedMember, now: int, partition: int, owner: Replica, holders: Mapping[str, Replica]) -> None:
    table, master_role = state.table, state.master_role
    step = _next_step(master_role, partition)
    row = table.rows[partition]
    assert step.destination is not None
    migration = PartitionMigration(
        id=state.next_token(),
        partition=partition,
        type=step.type,
        version=table.versions[partition],
        source=row[step.source_current] if step.source_current >= 0 else None,
        source_current=step.source_current,
        source_new=step.source_new,
        destination=holders[step.destination],
        destination_current=step.destination_current,
        destination_new=step.destination_new,
        master=Replica(state.address, state.uuid),
        unavoidable=step.unavoidable,
    )
    running = RunningMigration(migration, owner.address, owner.uuid, now + state.settings.migration_timeout_us)
    master_role.running[partition] = running
    state.record(
        now,
        MigrationStarted(
            migration_id=migration.id,
            partition=migration.partition,
            type=migration.type,
            partition_version=migration.version,
            source=migration.source.address if migration.source is not None else None,
            source_current=migration.source_current,
            source_new=migration.source_new,
            destination=migration.destination.address,
            destination_current=migration.destination_current,
            destination_new=migration.destination_new,
            owner=running.owner,
            available=len(row) - row.count(None),
            replicas_wanted=master_role.replicas_wanted,
            unavoidable=migration.unavoidable,
        ),
        master_role.planned,
    )
    running.latest = state.context.cause
    _ask_to_copy(state, now, running)


def _ask_to_copy(state: PartitionedMember, now: int, running: RunningMigration) -> None:
    running.ask_again_us = now + ASK_AGAIN_US
    if running.owner_uuid != state.uuid:
        state.send(running.owner, MigrationRequest(running.migration), running.latest)
        return
    report = begin_copy(state, now, state.address, running.migration)
    if report is not None:
        _apply_report(state, now, running, report)


def _apply_report(state: PartitionedMember, now: int, running: RunningMigration, report: MigrationReport) -> None:
    if report.retry and allows_migrations(state.standing.state):
        running.ask_again_us = now + SOON_US
        plan_timer(state, now)
    elif report.problem:
        decide(state, now, running, False, "copy-refused", report.problem)
    else:
        begin_commit(state, now, running)
