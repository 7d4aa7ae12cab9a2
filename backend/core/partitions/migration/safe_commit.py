"""The safe commit of a migration (Avoid Data Loss on Migration, 2.1).

The destination commits first: it answers, or leaves the cluster. Then the master commits and publishes, and only from that
publication does the source learn that it may clear its data. If the destination is gone, the row stays as it was and its version
goes up by 2, so that a table which the destination may have taken with it can never be mistaken for the cluster's.
"""

from __future__ import annotations

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.partitions.events import FailureCause, MigrationCommitting, MigrationDecided
from quarterdeck.backend.core.partitions.messages import MigrationCommit, MigrationCommitAck
from quarterdeck.backend.core.partitions.migration.migration import CompletedMigration, PartitionMigration
from quarterdeck.backend.core.partitions.state import PartitionedMember, RunningMigration
from quarterdeck.backend.core.partitions.table.learning import learn
from quarterdeck.backend.core.partitions.table.partition_table import VersionedRow
from quarterdeck.backend.core.partitions.table.table_publishing import change, publish_to
from quarterdeck.backend.core.properties import SECOND_US

ASK_AGAIN_US = 1 * SECOND_US


# The master


def begin_commit(state: PartitionedMember, now: int, running: RunningMigration) -> None:
    """Let the destination commit before all others, since the copy is made."""
    running.phase = "committing"
    state.record(now, MigrationCommitting(running.migration.id, running.migration.partition))
    running.latest = state.context.cause


def ask_to_commit(state: PartitionedMember, now: int, running: RunningMigration) -> bool | None:
    """Ask the destination, maybe once more; the answer when it is this master itself.

    There is no limit: only an answer or the destination's departure ends this.
    """
    migration = running.migration
    running.ask_again_us = now + ASK_AGAIN_US
    if migration.destination.uuid == state.uuid:
        return _commit_here(state, now, migration)
    state.send(migration.destination.address, MigrationCommit(migration), running.latest)
    return None


def decide(
    state: PartitionedMember, now: int, running: RunningMigration, committed: bool, cause: FailureCause, reason: str
) -> None:
    """Make the one decision about a migration: change the table, inform the participants at once and the others soon."""
    master_role, migration = state.master_role, running.migration
    decided = CompletedMigration(migration, committed)
    del master_role.running[migration.partition]
    master_role.members_busy = False
    if committed:
        cause, reason = "", ""
    end = MigrationDecided(migration.id, migration.partition, committed, decided.final_version, reason, cause)
    state.record(now, end, state.context.cause or running.latest)
    if not committed:
        master_role.plan_reason = master_role.plan_reason._replace(because=state.context.cause)
    row = _row_after(state, decided)
    change(state, now, [row], [decided], "migration")
    named = [replica for replica in row.replicas if replica is not None]
    if not all(state.members and state.members.holds(replica.address, replica.uuid) for replica in named):
        master_role.repair_due = True  # a member left while nothing could be done about this row
    participants = {migration.destination.uuid, running.owner_uuid}
    if migration.source is not None:
        participants.add(migration.source.uuid)
    publish_to(state, now, participants)


def _row_after(state: PartitionedMember, decided: CompletedMigration) -> VersionedRow:
    table, migration = state.table, decided.migration
    replicas = table.rows[migration.partition]
    # A master that is the destination has the new row already.
    if decided.committed and table.versions[migration.partition] == migration.version:
        replicas = migration.applied_to(replicas)
    return VersionedRow(migration.partition, decided.final_version, replicas)


# The destination


def on_commit(state: PartitionedMember, now: int, sender: Address, order: MigrationCommit) -> None:
    """Commit at this destination, as the master asks. Without the data it refuses, and then can never commit."""
    if sender != state.master or not state.is_listed(sender, order.migration.master.uuid):
        return
    committed = _commit_here(state, now, order.migration)
    state.send(sender, MigrationCommitAck(order.migration.id, committed))


def _commit_here(state: PartitionedMember, now: int, migration: PartitionMigration) -> bool:
    """Commit as destination, if this member waits for just that; whether it is committed, now or before."""
    partitions = state.partitions
    known = partitions.completed.get(migration.id)
    if known is not None:
        return known.committed
    active, table = partitions.active.get(migration.partition), partitions.table
    if active is None or table is None or active.migration.id != migration.id or not active.complete:
        return False
    decided = CompletedMigration(migration, True)
    replicas = migration.applied_to(table.rows[migration.partition])
    row = VersionedRow(migration.partition, decided.final_version, replicas)
    partitions.unlisted.add(migration.id)
    learn(state, now, [row], [decided], author=migration.master.uuid, cause="migration")
    return True
