"""The safe commit of a migration, in the four steps of the document (Avoid Data Loss on Migration, 2.1).

1. `begin_commit`: the copy is made. The master prepares the change and changes nothing yet.
2. `ask_destination`: the destination commits first. It answers or leaves the cluster; nothing else ends this step.
3. `decide`, committed: the master changes the row and publishes. Only from that publication does the source learn that it may
   clear its data.
4. `decide`, rolled back: the destination is gone or has no data. The row stays, and its version goes up by 2.

Why by 2:

1. A leads. Partition 0 is BC at version 5 and moves from B to D; A asks D to commit.
2. D commits and has DC at version 6. Its answer is lost, since a cut separates D and E from the others.
3. A removes D and E and rolls back. If that made BC version 6, two rows of version 6 would differ.
4. Clients write to B. The cut heals, E and D come back, and A dies before they have its table.
5. The next master collects BC at 6 and DC at 6, and may take DC: the writes of step 4 are lost.
6. With BC at version 7 the row of D is older than the cluster's, whoever collects them.
"""

from __future__ import annotations

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.partitions.events import FailureCause, MigrationCommitting, MigrationDecided
from quarterdeck.backend.core.partitions.messages import MigrationCommit, MigrationCommitAck
from quarterdeck.backend.core.partitions.migration.migration import CompletedMigration, PartitionMigration
from quarterdeck.backend.core.partitions.migration.replanning import cancel_after_failure
from quarterdeck.backend.core.partitions.state import PartitionedMember, RunningMigration
from quarterdeck.backend.core.partitions.table.learning import learn
from quarterdeck.backend.core.partitions.table.partition_table import VersionedRow
from quarterdeck.backend.core.partitions.table.table_publishing import change, publish_to
from quarterdeck.backend.core.properties import SECOND_US

ASK_AGAIN_US = 1 * SECOND_US


def running_migration(state: PartitionedMember, migration_id: str) -> RunningMigration | None:
    """Return the migration of this id that this master leads; None if it leads none, or recovers the table first."""
    master_role = state.partitions.master_role
    if master_role is None or master_role.recovery is not None:
        return None
    return next((running for running in master_role.running.values() if running.migration.id == migration_id), None)


# 1. The master prepares the change


def begin_commit(state: PartitionedMember, now: int, running: RunningMigration) -> None:
    """Let the destination commit before all others, since the copy is made."""
    running.phase = "committing"
    state.record(now, MigrationCommitting(running.migration.id, running.migration.partition))
    running.latest = state.context.cause
    ask_destination(state, now, running)


# 2. The destination commits


def ask_destination(state: PartitionedMember, now: int, running: RunningMigration) -> None:
    """Ask the destination to commit, maybe once more; or commit here, where this master is the destination."""
    migration = running.migration
    running.ask_again_us = now + ASK_AGAIN_US
    if migration.destination.uuid != state.uuid:
        state.send(migration.destination.address, MigrationCommit(migration), running.latest)
        return
    committed = _commit_as_destination(state, now, migration)
    decide(state, now, running, committed, "commit-refused", "this master could not commit as destination")


def on_commit(state: PartitionedMember, now: int, sender: Address, order: MigrationCommit) -> None:
    """Commit at this destination, as the master asks. Without the data it refuses, and then can never commit."""
    if sender != state.master or not state.is_listed(sender, order.migration.master.uuid):
        return
    committed = _commit_as_destination(state, now, order.migration)
    state.send(sender, MigrationCommitAck(order.migration.id, committed))


def _commit_as_destination(state: PartitionedMember, now: int, migration: PartitionMigration) -> bool:
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


def on_commit_ack(state: PartitionedMember, now: int, sender: Address, ack: MigrationCommitAck) -> None:
    """Decide as the destination has: it has committed, or never will."""
    running = running_migration(state, ack.migration_id)
    if running is not None and running.phase == "committing" and running.migration.destination.address == sender:
        decide(state, now, running, ack.committed, "commit-refused", f"{sender} could not commit")


# 3 and 4. The master decides


def decide(
    state: PartitionedMember, now: int, running: RunningMigration, committed: bool, cause: FailureCause, reason: str
) -> None:
    """Make the one decision about a migration: change the table, inform the participants at once and the others soon."""
    if committed:
        state.master_role.failures = 0
    else:
        cancel_after_failure(state, now, reason)
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
