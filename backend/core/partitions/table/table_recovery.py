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
    _make_table_if_there_is_none(partitions, recovery)
    under_way = recovery.active | {held.migration.id: held.migration for held in partitions.active.values()}
    decided = _decide_each(state, recovery, under_way)
    _raise_rolled_back(recovery, decided)
    change(state, now, recovery.rows.values(), decided, "recovered")
    master_role.changed_at = OrderedDict.fromkeys(recovery.rows, master_role.changes)
    ended = [end for end in decided if end.migration.id in under_way]
    committed = tuple(end.migration.id for end in ended if end.committed)
    rolled_back = tuple(end.migration.id for end in ended if not end.committed)
    state.record(now, TableRecovered(state.table.version, recovery.answered, committed, rolled_back))
    master_role.plan_reason = master_role.plan_reason._replace(because=state.context.cause)
    publish(state, now)


def _make_table_if_there_is_none(partitions: Partitions, recovery: TableRecovery) -> None:
    if partitions.table is None:
        width = len(next(iter(recovery.rows.values())).replicas)
        partitions.table = empty_table(max(recovery.rows) + 1, width)
        partitions.wants_arrangement = False


def _decide_each(
    state: PartitionedMember, recovery: TableRecovery, under_way: dict[str, PartitionMigration]
) -> list[CompletedMigration]:
    """Return the end of every migration: as any member knows it, else committed if the destination has, else rolled back.

    A later row with the destination in place proves nothing while the destination takes part still:

    1. A leads. Partition 0 is D at version 5 and moves from D to B; B has a part of the copy.
    2. D dies. A rolls back: version 7. It empties the place of D, 8, and gives the lost partition to B, 9.
    3. Two publications say so. The second one, with the row B at version 9, reaches B first, and the first one is lost.
    4. A dies. B, the next master, sees itself in place at a later version, as if it had committed.
    5. But it takes part still, so it has not: the migration is rolled back, and the part of the copy goes.
    """
    known = recovery.completed | state.partitions.completed
    own = state.partitions.active.values()
    uncommitted = {held.migration.id for held in own if held.migration.destination.uuid == state.uuid}
    uncommitted |= recovery.uncommitted
    ends = [
        CompletedMigration(held, held.id not in uncommitted and _has_arrived(held, recovery.rows[held.partition]))
        for held in under_way.values()
        if held.id not in known
    ]
    return [*known.values(), *ends]


def _raise_rolled_back(recovery: TableRecovery, decided: list[CompletedMigration]) -> None:
    """Raise each row of a migration that was rolled back to a version that no commit of it can have."""
    for end in decided:
        row = recovery.rows[end.migration.partition]
        if not end.committed and row.version < end.final_version:
            recovery.rows[row.partition] = VersionedRow(row.partition, end.final_version, row.replicas)


def _has_arrived(migration: PartitionMigration, row: VersionedRow) -> bool:
    """Return whether the latest row shows that a migration was committed whose end no member knows.

    1. A leads. Partition 0 is BC at version 5 and moves from B to D. D commits and has DC at version 6; A decides so.
    2. A cut separates B before it hears of that. A removes B, all others acknowledge DC, and all forget the migration.
    3. The cut heals. A dies before C has the list without B, and C becomes master: only B has the migration, as under way.
    4. The row has D in place at a version above 5, so the migration was committed. B may not end it in another way than D.
    """
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
