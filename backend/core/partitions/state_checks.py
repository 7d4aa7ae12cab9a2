"""What holds of a member's partitions between two steps."""

from __future__ import annotations

from collections.abc import Iterator

from quarterdeck.backend.core.partitions.state import PartitionedMember


def partition_faults(state: PartitionedMember) -> Iterator[str]:
    """Yield what does not hold of the table, the migrations, and what the master leads."""
    partitions, table = state.partitions, state.partitions.table
    if (partitions.master_role is not None) != state.is_master:
        yield "it keeps what only a master keeps, and is none; or it is one, and does not"
    if partitions.changed_rows:
        yield "the chapters of data have not learned of changed rows"
    if table is None:
        if partitions.active:
            yield "it takes part in a migration without a table"
        return
    if table.version != sum(table.versions):
        yield f"the table is at version {table.version}, and its rows at {sum(table.versions)}"
    if any(index != active.migration.partition for index, active in partitions.active.items()):
        yield "a migration stands under another partition"
    if any(active.migration.id in partitions.completed for active in partitions.active.values()):
        yield "a migration that has ended is under way"
    if partitions.master_role is not None:
        running = partitions.master_role.running
        copying = {partition: one for partition, one in running.items() if one.phase == "copying"}
        if any(one.migration.version != table.versions[partition] for partition, one in copying.items()):
            yield "a row has changed under a migration that runs"
