"""Counting what is asked of the owners of partitions, and of their backups, until it is told (chapter `measure_reports`).

Operations on single keys are counted. What asks for a whole map, its size or its keys, goes to every partition and says
nothing of any of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from quarterdeck.backend.core.data.messages import MergeBatch, OwnerOperation
from quarterdeck.backend.core.data.state import MemberState, OperationCount
from quarterdeck.backend.core.operations import Get, Keys, PutAll, Size

MEASURING = "data-measuring"
"""Name of the timer that tells what was counted. It is set only while there may be something to tell."""

LONGEST_NAME = 200
"""Maps are counted by so many letters of their names at most."""


def count_operations(state: MemberState, now: int, partition: int, operations: Sequence[OwnerOperation]) -> None:
    """Count `operations` that this owner has done on a partition."""
    if not state.settings.measure_interval_us:
        return
    measurements = state.data.measurements
    for operation in operations:
        if isinstance(operation, Size | Keys):
            continue
        of_partition = measurements.partitions.setdefault(partition, OperationCount())
        of_map = measurements.maps.setdefault(operation.map[:LONGEST_NAME], OperationCount())
        if isinstance(operation, Get):
            of_partition.reads += 1
            of_map.reads += 1
        else:
            keys = len(operation.entries) if isinstance(operation, PutAll | MergeBatch) else 1
            of_partition.writes += keys
            of_map.writes += keys
        wake(state, now)


def count_backup_write(state: MemberState, now: int) -> None:
    """Count a write that an owner has sent to this backup."""
    if state.settings.measure_interval_us:
        state.data.measurements.backup_writes += 1
        wake(state, now)


def note_change(state: MemberState, now: int, partition: int) -> None:
    """Note that a replica of the partition came here, went or changed its role."""
    store = state.data.stores.get(partition)
    if (store is not None and store.entries) or any(state.data.measurements.told_totals):
        wake(state, now)


def wake(state: MemberState, now: int) -> None:
    """There may be something to tell one interval from now, if it is not told sooner."""
    interval_us = state.settings.measure_interval_us
    if interval_us and not state.timers.is_set(MEASURING):
        state.data.measurements.since_us = now
        state.timers.set(MEASURING, now + interval_us)
