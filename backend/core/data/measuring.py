"""What a member reports about its data: entries, bytes and operations by map and by partition, and backups that lag.

Operations on single keys are counted, at owners and their backups. What asks for a whole map, its size or its keys, goes to
every partition and says nothing about any of them. A report comes once an interval
(`quarterdeck.data.measure.interval.seconds`), and holds only what has changed: a member that is asked nothing reports nothing,
and of a great table only the partitions in use are reported.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.data.events import BackupLag, DataMeasured, MapMeasured
from quarterdeck.backend.core.data.messages import MergeBatch, OwnerOperation
from quarterdeck.backend.core.data.state import Measurements, MemberState, OperationCount
from quarterdeck.backend.core.operations import Get, Keys, PutAll, Size
from quarterdeck.backend.core.properties import MILLISECOND_US

MEASURING = "data-measuring"
"""Name of the timer of the next report. It is set only while there may be something to report."""

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
    if (store is not None and store.entries) or any(state.data.measurements.reported_totals):
        wake(state, now)


def wake(state: MemberState, now: int) -> None:
    """Report one interval from now at the latest, as there may be something to report."""
    interval_us = state.settings.measure_interval_us
    if interval_us and not state.timers.is_set(MEASURING):
        state.data.measurements.since_us = now
        state.timers.set(MEASURING, now + interval_us)


ON_ITS_WAY_US = 100 * MILLISECOND_US
"""A write that a backup has not confirmed for so long lags; a younger one is on its way."""

MOST_PARTITIONS = 500
MOST_MAPS = 200
"""What one event holds."""

MOST_LAGGING = 50
"""So many backups are named, those that lag most."""

EVERYTHING_EVERY = 100
"""Each time after so many reports, a member reports all that it stores, changed or not, for listeners that missed the
beginning.
"""

NONE = OperationCount()

Totals = tuple[int, int, int, int]
"""Entries and bytes as an owner, then as a backup."""


class _Lag(NamedTuple):
    """Of one backup."""

    partitions: int
    writes: int
    oldest_us: int
    """When the oldest write was made."""


def on_measuring_timer(state: MemberState, now: int) -> None:
    """Report what has changed, and look again as long as some write is not confirmed."""
    measurements = state.data.measurements
    totals, maps = _stored(state)
    since_us = now - ON_ITS_WAY_US
    behind = {  # how many writes not every backup has confirmed for too long; they are the first in the log
        partition: sum(written_us <= since_us for written_us in owner_state.written_us)
        for partition, owner_state in state.data.owner_states.items()
    }
    lags = _lags(state, behind)
    rows = _changed_partitions(state, now, behind)
    changed_maps = _changed_maps(measurements, maps)
    lagging = tuple((backup, *lag) for backup, lag in lags.items())
    news = totals != (measurements.reported_totals or (0, 0, 0, 0)) or lagging != measurements.reported_lagging
    if news or rows or changed_maps or measurements.backup_writes:
        shown = tuple(BackupLag(who, one.partitions, one.writes, now - one.oldest_us) for who, one in lags.items())
        _record(state, now, totals, changed_maps, rows, shown[:MOST_LAGGING])
    measurements.reported_totals, measurements.reported_lagging = totals, lagging
    measurements.partitions, measurements.maps, measurements.backup_writes = {}, {}, 0
    if any(owner_state.log for owner_state in state.data.owner_states.values()):
        measurements.since_us = now
        state.timers.set(MEASURING, now + state.settings.measure_interval_us)


def _stored(state: MemberState) -> tuple[Totals, dict[str, tuple[int, int]]]:
    """Return all that is stored here, and by map what is owned: entries and bytes."""
    entries = size = backup_entries = backup_bytes = 0
    maps: dict[str, tuple[int, int]] = {}
    for partition, store in state.data.stores.items():
        if partition not in state.data.owner_states:
            backup_entries += store.entries
            backup_bytes += store.bytes
            continue
        entries += store.entries
        size += store.bytes
        for name, held in store.maps.items():
            shown = name[:LONGEST_NAME]
            before = maps.get(shown, (0, 0))
            maps[shown] = (before[0] + len(held), before[1] + store.map_bytes[name])
    return (entries, size, backup_entries, backup_bytes), maps


def _lags(state: MemberState, behind: dict[int, int]) -> dict[Address, _Lag]:
    found: dict[Address, _Lag] = {}
    for partition, count in behind.items():
        if not count:
            continue
        owner_state = state.data.owner_states[partition]
        here: dict[Address, tuple[int, int]] = {}
        for place in range(count):
            for holder in state.counted_backups(owner_state.row):
                if owner_state.confirmed.get(holder.uuid, -1) < owner_state.log[place].stamp.number:
                    writes, oldest_us = here.get(holder.address, (0, owner_state.written_us[place]))
                    here[holder.address] = (writes + 1, oldest_us)
        for backup, (writes, oldest_us) in here.items():
            before = found.get(backup, _Lag(0, 0, oldest_us))
            found[backup] = _Lag(before.partitions + 1, before.writes + writes, min(before.oldest_us, oldest_us))
    return dict(sorted(found.items(), key=lambda one: (-one[1].writes, one[0])))


def _changed_partitions(state: MemberState, now: int, behind: dict[int, int]) -> list[tuple[int, ...]]:
    everything = _is_everything(state.data.measurements)
    measurements, reported = state.data.measurements, state.data.measurements.reported_partitions
    rows: list[tuple[int, ...]] = []
    for partition, owner_state in state.data.owner_states.items():
        store, count = state.data.stores[partition], measurements.partitions.get(partition, NONE)
        lag = (behind[partition], owner_state.written_us[0]) if behind[partition] else ()
        standing = (store.entries, store.bytes, *lag)
        if count is not NONE or standing != reported.get(partition, (0, 0)) or (everything and store.entries):
            age = (lag[0], now - lag[1]) if lag else ()
            rows.append((partition, store.entries, store.bytes, count.reads, count.writes, *age))
            reported[partition] = standing
    for partition in [partition for partition in reported if partition not in state.data.owner_states]:
        del reported[partition]
        rows.append((partition,))
    return sorted(rows)


def _changed_maps(measurements: Measurements, maps: dict[str, tuple[int, int]]) -> list[MapMeasured]:
    changed = []
    everything = _is_everything(measurements)
    for name in sorted(maps.keys() | measurements.reported_maps.keys() | measurements.maps.keys()):
        count, standing = measurements.maps.get(name, NONE), maps.get(name, (0, 0))
        if (
            count is not NONE
            or standing != measurements.reported_maps.get(name, (0, 0))
            or (everything and standing[0])
        ):
            changed.append(MapMeasured(name, *standing, count.reads, count.writes))
    measurements.reported_maps = maps
    return changed


def _is_everything(measurements: Measurements) -> bool:
    return measurements.report_count % EVERYTHING_EVERY == 0


def _record(
    state: MemberState,
    now: int,
    totals: Totals,
    maps: list[MapMeasured],
    rows: list[tuple[int, ...]],
    lagging: tuple[BackupLag, ...],
) -> None:
    measurements = state.data.measurements
    measurements.report_count += 1
    span, backup_writes = now - measurements.since_us, measurements.backup_writes
    while True:
        shown = tuple(maps[:MOST_MAPS]), tuple(rows[:MOST_PARTITIONS])
        state.record(now, DataMeasured(span, *totals, backup_writes, *shown, lagging))
        maps, rows, backup_writes = maps[MOST_MAPS:], rows[MOST_PARTITIONS:], 0
        if not maps and not rows:
            break
