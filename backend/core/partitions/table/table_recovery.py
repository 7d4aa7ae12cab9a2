"""The search of a new master for the most recent table (Avoid Data Loss on Migration, 1.2 and 2.2; Hazelcast: master change).

It asks every member for its table, its completed migrations and those whose end it does not know, and decides nothing before each
has answered or left. Of every partition the latest version counts. What any destination has committed is committed; all other
migrations under way are rolled back, though a row may show the destination there, to which a repair has given a lost partition.
Then it publishes, and only then it plans.
"""

from __future__ import annotations

from collections import OrderedDict

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.partitions.events import TableRecovered, TableRecoveryStarted
from quarterdeck.backend.core.partitions.messages import TableAnswer, TableFetch
from quarterdeck.backend.core.partitions.migration.migration import CompletedMigration, PartitionMigration
from quarterdeck.backend.core.partitions.state import MasterRole, PartitionedMember, Partitions, TableRecovery
from quarterdeck.backend.core.partitions.table.partition_table import (
    VersionedRow,
    empty_table,
    index_of,
    packed,
    unpacked,
)
from quarterdeck.backend.core.partitions.table.table_publishing import change, publish
from quarterdeck.backend.core.properties import SECOND_US

RECOVERY = "table recovery"
"""Name of the timer that asks again."""

ASK_AGAIN_US = 1 * SECOND_US


# The new master


def begin_recovery(state: PartitionedMember, now: int, master_role: MasterRole) -> None:
    """Ask all members. `is_settled` says when the answers are complete."""
    waiting = {address: peer.uuid for address, peer in state.peers.items()}
    master_role.recovery = TableRecovery(state.next_token(), waiting, state.listed)
    table = state.partitions.table
    if table is not None:
        state.record(now, TableRecoveryStarted(tuple(waiting)))
        master_role.recovery.started = state.context.cause
        master_role.recovery.rows, master_role.recovery.completed = _all_known(state.partitions)
        state.partitions.early.clear()
    _ask(state, now, master_role.recovery)


def is_settled(state: PartitionedMember, recovery: TableRecovery) -> bool:
    """Whether each of those asked has answered or left."""
    for address, uuid in list(recovery.waiting.items()):
        if not state.is_listed(address, uuid):
            del recovery.waiting[address]
    return not recovery.waiting


def on_table_answer(state: PartitionedMember, now: int, sender: Address, answer: TableAnswer) -> None:
    """Add what one member knows."""
    master_role = state.partitions.master_role
    recovery = master_role.recovery if master_role is not None else None
    if recovery is None or recovery.token != answer.token:
        return
    uuid = recovery.waiting.pop(sender, None)
    if uuid is None:
        return
    version = 0
    for row in unpacked(answer.rows):
        version += row.version
        known = recovery.rows.get(row.partition)
        if known is None or row.version > known.version:
            recovery.rows[row.partition] = row
    recovery.completed.update((migration.migration.id, migration) for migration in answer.completed)
    recovery.active.update((held.id, held) for held in answer.active)
    recovery.uncommitted.update(held.id for held in answer.active if held.destination.uuid == uuid)
    recovery.answered[sender] = version
    if not recovery.waiting:
        state.timers.set(RECOVERY, now)  # nothing is sent yet, but there is something to do


def on_recovery_timer(state: PartitionedMember, now: int) -> None:
    """Ask those again who have not answered."""
    master_role = state.partitions.master_role
    if master_role is not None and master_role.recovery is not None:
        _ask(state, now, master_role.recovery)


def conclude_recovery(state: PartitionedMember, now: int, master_role: MasterRole, recovery: TableRecovery) -> None:
    """Decide on the table and on every migration under way, and publish."""
    partitions = state.partitions
    master_role.recovery = None
    state.context.act_for(recovery.started)
    state.timers.clear(RECOVERY)
    if not recovery.rows:
        return  # partitions were never used so far
    if partitions.table is None:
        width = len(next(iter(recovery.rows.values())).replicas)
        partitions.table = empty_table(max(recovery.rows) + 1, width)
        partitions.wants_arrangement = False
    known = recovery.completed | partitions.completed
    own = {migration.migration.id: migration.migration for migration in partitions.active.values()}
    active = recovery.active | own
    uncommitted = recovery.uncommitted | {held.id for held in own.values() if held.destination.uuid == state.uuid}
    ends = [
        CompletedMigration(held, held.id not in uncommitted and _has_arrived(held, recovery.rows[held.partition]))
        for held in active.values()
        if held.id not in known
    ]
    for end in (*known.values(), *ends):
        row = recovery.rows[end.migration.partition]
        if not end.committed and row.version < end.final_version:  # raise it to one that no success can have
            recovery.rows[row.partition] = VersionedRow(row.partition, end.final_version, row.replicas)
    decided = (*known.values(), *ends)
    committed = tuple(ended.migration.id for ended in decided if ended.committed and ended.migration.id in active)
    rolled_back = tuple(ended.migration.id for ended in decided if not ended.committed and ended.migration.id in active)
    change(state, now, recovery.rows.values(), decided, "recovered")
    master_role.changed_at = OrderedDict.fromkeys(recovery.rows, master_role.changes)
    state.record(now, TableRecovered(partitions.table.version, recovery.answered, committed, rolled_back))
    master_role.plan_reason = master_role.plan_reason._replace(because=state.context.cause)
    publish(state, now)


def _has_arrived(migration: PartitionMigration, row: VersionedRow) -> bool:
    """Return whether the latest row shows that a migration was committed whose end no member knows."""
    index = index_of(migration.destination.uuid, row.replicas)
    return row.version > migration.version and index == migration.destination_new


def _ask(state: PartitionedMember, now: int, recovery: TableRecovery) -> None:
    if recovery.waiting:
        state.send_all(tuple(recovery.waiting), TableFetch(recovery.token), recovery.started)
        state.timers.set(RECOVERY, now + ASK_AGAIN_US)


# All others


def on_table_fetch(state: PartitionedMember, now: int, sender: Address, fetch: TableFetch) -> None:
    """Answer the master. Nothing of an earlier master counts from now on, as it is no longer this member's master."""
    partitions = state.partitions
    if sender != state.master or state.members is None:
        return
    rows, completed = _all_known(partitions)
    active = tuple(migration.migration for migration in partitions.active.values())
    state.send(sender, TableAnswer(fetch.token, packed(rows.values()), tuple(completed.values()), active))


def _all_known(partitions: Partitions) -> tuple[dict[int, VersionedRow], dict[str, CompletedMigration]]:
    """Return the latest rows and the completed migrations, those included that wait for a publication before them."""
    rows = {row.partition: row for row in partitions.table.all_rows()} if partitions.table is not None else {}
    completed = dict(partitions.completed)
    for update in partitions.early.values():
        completed.update((one.migration.id, one) for _, one in update.completed)
        for row in unpacked(update.rows):
            if row.partition not in rows or row.version > rows[row.partition].version:
                rows[row.partition] = row
    return rows, completed
