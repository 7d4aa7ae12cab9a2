"""Learning what the master has decided: the one place where a member's table, its completed list and its migrations change.

Publications, commits and the master's own decisions all go this way: migrations whose end is now known are finished first, then
the rows hold, then the chapters of data learn where this member stands now (Avoid Data Loss on Migration, 1.1 and 2.1).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from quarterdeck.backend.core.partitions.events import Holder, MigrationFinished, TableCause, TableChanged
from quarterdeck.backend.core.partitions.migration.migration import CompletedMigration, MigrationEvent
from quarterdeck.backend.core.partitions.state import PartitionedMember
from quarterdeck.backend.core.partitions.table.partition_table import VersionedRow, index_of, packed


def learn(
    state: PartitionedMember,
    now: int,
    rows: Iterable[VersionedRow],
    decided: Iterable[CompletedMigration],
    *,
    author: str,
    cause: TableCause,
) -> None:
    """Apply rows that are newer than what this member has, and decisions that it did not know. There must be a table."""
    table = state.table
    newer = [row for row in rows if row.version > table.versions[row.partition]]
    indices = {row.partition: index_of(state.uuid, table.rows[row.partition]) for row in newer}
    completed = state.partitions.completed
    news = [end for end in decided if end.migration.id not in completed]
    news += _without_decision(state, newer, {end.migration.id for end in news})
    # A decision may come back after it was evicted here: what it did then must not be done again.
    late = {end.migration.id for end in news if end.final_version <= table.versions[end.migration.partition]}
    for row in newer:
        table.put(row)
        state.partitions.changed_rows.add(row.partition)
    for migration in news:
        completed[migration.migration.id] = migration
        event = _finish(state, now, migration, is_late=migration.migration.id in late)
        if event is not None and migration.committed:
            # The rows may have gone on since: the member passes through the index that the migration gave it.
            indices.setdefault(event.partition, index_of(state.uuid, table.rows[event.partition]))
            _pass_to(state, now, indices, event.partition, event.new_replica_index)
    for partition in indices:
        _pass_to(state, now, indices, partition, index_of(state.uuid, table.rows[partition]))
    if newer:
        compact, digest = packed(newer), f"{table.digest:016x}"
        holders = tuple(Holder(holder.address, holder.uuid) for holder in compact.holders)
        state.record(now, TableChanged(table.version, digest, len(table), holders, compact.rows, author, cause))


def _pass_to(state: PartitionedMember, now: int, indices: dict[int, int], partition: int, index: int) -> None:
    """Let the data of a partition follow this member to another replica index."""
    before, indices[partition] = indices[partition], index
    if index != before:
        state.context.service.placed(now, partition, before, index)


def _without_decision(
    state: PartitionedMember, newer: Sequence[VersionedRow], known: set[str]
) -> list[CompletedMigration]:
    """Return the ends of own migrations that no member reports any more, but that the newer rows show.

    A row that names a destination which lacks data is a repair: nothing was committed without it.
    """
    active = state.partitions.active
    found = []
    for row in newer:
        one = active.get(row.partition)
        if one is not None and one.migration.id not in known:
            arrived = index_of(one.migration.destination.uuid, row.replicas) == one.migration.destination_new
            has_all = one.event.endpoint == "source" or one.complete
            found.append(CompletedMigration(one.migration, arrived and has_all))
    return found


def _finish(state: PartitionedMember, now: int, decided: CompletedMigration, *, is_late: bool) -> MigrationEvent | None:
    """Act on the end of a migration, and return this member's side of it; None if this member takes no part in it.

    `is_late` if its row already held before.
    """
    migration = decided.migration
    service = state.context.service
    active = state.partitions.active.get(migration.partition)
    if active is not None and active.migration.id == migration.id:
        del state.partitions.active[migration.partition]
        event = active.event
    elif decided.committed and not is_late and migration.source is not None and migration.source.uuid == state.uuid:
        # A backup whose place another takes is not asked before; it learns of it here (Hazelcast: one migration).
        indices = migration.source_current, migration.source_new
        event = MigrationEvent(migration.id, migration.partition, "source", *indices)
        service.before(now, event)
    else:
        return None
    if decided.committed:
        service.commit(now, event)
    else:
        service.rollback(now, event)
    indices = event.current_replica_index, event.new_replica_index
    end = MigrationFinished(migration.id, migration.partition, event.endpoint, decided.committed, *indices)
    state.record(now, end)
    return event
