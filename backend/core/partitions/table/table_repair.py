"""Repairing the table after members have left.

See Avoid Data Loss on Migration, 1.1; Hazelcast: migration manager and lost partitions.

Only the master repairs, and all others, the first backup too, act on the table that it publishes. A place whose holder is
gone is empty; without its owner, a partition is given to its first backup. Each of these steps raises the partition's version by
one. A partition without any holder waits for the next arrangement, which gives it a new owner that begins with nothing.
"""

from __future__ import annotations

from collections.abc import Set

from quarterdeck.backend.core.cluster_profile import allows_promotions
from quarterdeck.backend.core.partitions.events import ALL_LOST, PartitionLost
from quarterdeck.backend.core.partitions.state import PartitionedMember
from quarterdeck.backend.core.partitions.table.partition_table import Replicas, VersionedRow
from quarterdeck.backend.core.partitions.table.table_publishing import change, publish


def repair(state: PartitionedMember, now: int, present: Set[str]) -> bool:
    """Repair every partition that has no migration running. `present` are the incarnations that may hold data."""
    master_role, table = state.master_role, state.table
    if not allows_promotions(state.standing.state):
        return False
    if table.holders().keys() <= present and None not in map(table.owner, range(len(table))):
        return False
    repaired = []
    for partition, replicas in enumerate(table.rows):
        if partition in master_role.running:
            continue
        row, steps = _repaired(replicas, present)
        if steps:
            repaired.append(VersionedRow(partition, table.versions[partition] + steps, row))
            lost = _lost_backups(replicas, present)
            if lost >= 0:
                state.record(now, PartitionLost(partition, lost), state.listed)
    if repaired:
        change(state, now, repaired, (), "repaired")
        publish(state, now)
    return bool(repaired)


def _repaired(replicas: Replicas, present: Set[str]) -> tuple[Replicas, int]:
    """Return the row without those who are gone, with an owner if any holder is left, and how many steps that takes."""
    row = [replica if replica is not None and replica.uuid in present else None for replica in replicas]
    steps = row.count(None) - replicas.count(None)
    first = next((index for index, replica in enumerate(row) if replica is not None), 0)
    if first:
        row[0], row[first] = row[first], None
        steps += 1
    return tuple(row), steps


def _lost_backups(replicas: Replicas, present: Set[str]) -> int:
    """Return the coldest index before the first that is left, as an event counts them; -1 when the owner is left."""
    for index, replica in enumerate(replicas):
        if replica is not None and replica.uuid in present:
            return index - 1
    return ALL_LOST
