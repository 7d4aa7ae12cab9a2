"""Checks of messages about partitions (chapter `membership.message_checks` says what checks are for)."""

from __future__ import annotations

from collections.abc import Iterable

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.membership.message_checks import (
    MessageCheck,
    address_problem,
    number_problem,
)
from quarterdeck.backend.core.partitions import messages
from quarterdeck.backend.core.partitions.migration.migration import CompletedMigration, PartitionMigration
from quarterdeck.backend.core.partitions.state import PartitionedMember
from quarterdeck.backend.core.partitions.table.partition_table import PackedRows


def _partitions(state: PartitionedMember) -> int:
    """Return how many partitions the table has, or will have."""
    table = state.partitions.table
    return state.settings.partition_count if table is None else len(table)


def _width(state: PartitionedMember) -> int:
    table = state.partitions.table
    return state.settings.backups + 1 if table is None else table.width


def _version_problem(state: PartitionedMember, partition: int, version: int) -> str:
    table = state.partitions.table
    known = None if table is None else table.versions[partition]
    return number_problem(f"version of partition {partition}", version, known)


def _partition_problem(state: PartitionedMember, partition: int) -> str:
    partitions = _partitions(state)
    return "" if 0 <= partition < partitions else f"it names partition {partition} of {partitions}"


def _rows_problem(state: PartitionedMember, rows: PackedRows) -> str:
    columns, holders = _width(state) + 2, len(rows.holders)
    for row in rows.rows:
        if len(row) != columns:
            return f"a row has {len(row) - 2} places, and the table {columns - 2}"
        if why := _partition_problem(state, row[0]) or _version_problem(state, row[0], row[1]):
            return why
        held = [place for place in row[2:] if place != -1]
        if any(not 0 <= place < holders for place in held):
            return f"the row of partition {row[0]} names a holder that is not there"
        if len(set(held)) < len(held):
            return f"the row of partition {row[0]} names a holder twice"
    return address_problem(holder.address for holder in rows.holders)


def _migration_problem(state: PartitionedMember, migration: PartitionMigration) -> str:
    width = _width(state)
    if why := _partition_problem(state, migration.partition):
        return why
    indices = (
        *(migration.source_current, migration.source_new),
        *(migration.destination_current, migration.destination_new),
    )
    if not all(-1 <= index < width for index in indices) or migration.destination_new < 0:
        return "a migration names a replica index that is not there"
    if (migration.source is None) != (migration.source_current < 0):
        return "a migration has a source without a place, or a place without a source"
    participants = (migration.source, migration.destination, migration.master)
    addresses = (replica.address for replica in participants if replica is not None)
    return _version_problem(state, migration.partition, migration.version) or address_problem(addresses)


def _migrations_problem(state: PartitionedMember, migrations: Iterable[PartitionMigration]) -> str:
    return next((why for migration in migrations if (why := _migration_problem(state, migration))), "")


def _without_data(state: PartitionedMember, ended: CompletedMigration) -> bool:
    """Return whether it was committed here, allegedly, before all its data had come."""
    active = state.partitions.active.get(ended.migration.partition)
    if active is None or active.migration.id != ended.migration.id or active.event.endpoint == "source":
        return False
    return ended.committed and not active.complete


def _table_update(state: PartitionedMember, sender: Address, update: messages.TableUpdate) -> str:
    table = state.partitions.table
    partitions = state.settings.partition_count if table is None else len(table)
    if update.partitions != partitions:
        return f"its table has {update.partitions} partitions, and not {partitions}"
    if not -1 <= update.since <= update.number or not -1 <= update.evicted_through <= update.number:
        return "its numbers of changes are not in order"
    decided = [ended for _, ended in update.completed]
    why = (
        number_problem("number of changes", update.number)
        or _rows_problem(state, update.rows)
        or _migrations_problem(state, (ended.migration for ended in decided))
    )
    if not why and any(_without_data(state, ended) for ended in decided):
        return "it says that this member has committed a migration whose data has not come"
    return why


def _table_answer(state: PartitionedMember, sender: Address, answer: messages.TableAnswer) -> str:
    ended = (completed.migration for completed in answer.completed)
    return _rows_problem(state, answer.rows) or _migrations_problem(state, (*ended, *answer.active))


def _of_migration(
    state: PartitionedMember,
    sender: Address,
    message: messages.MigrationRequest | messages.MigrationCommit | messages.MigrationChunk,
) -> str:
    return _migration_problem(state, message.migration)


PARTITION_MESSAGE_CHECKS: dict[type, MessageCheck] = {
    messages.TableUpdate: _table_update,
    messages.TableAnswer: _table_answer,
    messages.MigrationRequest: _of_migration,
    messages.MigrationCommit: _of_migration,
    messages.MigrationChunk: _of_migration,
}
"""The checks of the kinds of messages that can be wrong by themselves."""
