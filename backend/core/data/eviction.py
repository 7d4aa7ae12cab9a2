"""The owner makes room for a write, or refuses it (Hazelcast: eviction).

Limits of maps count what the member owns; those of the member all that it holds, as a backup, too. A map with the policy LRU
gives up the entries that were used longest ago, first in the partition that is written, then in the other partitions of this
owner. Its backups learn of that as of any removal; they decide nothing themselves. A backup that is full says so whenever it
confirms something, and the owner then lets the partitions that it keeps grow no more. What a merge brings and what migrates is
never refused: it was acknowledged.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.data.events import EntriesEvicted
from quarterdeck.backend.core.data.messages import MergeBatch
from quarterdeck.backend.core.data.partition_store import ENTRY_MEMORY, PartitionStore, entry_bytes, key_bytes
from quarterdeck.backend.core.data.replication import backups, replica_sending
from quarterdeck.backend.core.data.state import MemberState, entries_held, memory_used, why_no_room
from quarterdeck.backend.core.map_limits import MapLimit, limit_of
from quarterdeck.backend.core.operations import Get, Put, PutAll

LONG_ANSWER_BYTES = 64 * 1024
"""Replicas keep the last answer to each caller; a longer one counts as something to store."""

Changed = dict[tuple[str, str], None]
"""Maps and keys that a call has written, each once."""


class Amount(NamedTuple):
    """Of entries and their keys and values."""

    entries: int
    bytes: int


def why_refused(state: MemberState, partition: int, operation: Put | PutAll) -> str:
    """Return why the owner does not store what is asked; empty when there is room, or can be made."""
    store, map = state.data.stores[partition], operation.map
    grown, kept = _growth(store, operation)
    if grown.entries <= 0 and grown.bytes <= 0 and not kept:
        return ""
    limit = limit_of(state.settings.map_limits, map)
    owned = _owned(state, map) if limit is not None else Amount(0, 0)
    if limit is not None and (why := _why_over(limit, Amount(0, 0) if limit.evicts else owned, grown)):
        return f"the map {map} is full: {why}"
    free = owned if limit is not None and limit.evicts else Amount(0, 0)
    memory = grown.bytes + kept + ENTRY_MEMORY * grown.entries
    freed_memory = free.bytes + ENTRY_MEMORY * free.entries
    if why := why_no_room(state, grown.entries - free.entries, memory - freed_memory):
        return why
    full = _full_backups(state, partition)
    if full and not (free.entries and _can_free(state, partition, map, grown)):
        backups.send_checks(state, {address: [backups.checked(state, partition)] for address in full})
        return f"a backup of the partition is full: {', '.join(full)}"
    return ""


def after_use(
    state: MemberState, now: int, partition: int, operation: Get | Put | PutAll | MergeBatch, changed: Changed
) -> None:
    """Note which entries of a map that evicts were used last; after a write, give up others until all is within its limits."""
    limit = limit_of(state.settings.map_limits, operation.map)
    if limit is None or not limit.evicts:
        return
    store, used = state.data.stores[partition], _keys(operation)
    for key in used:
        if store.find(operation.map, key) is not None:
            store.move_to_end(operation.map, key)
    if not isinstance(operation, Get):
        _make_room(state, now, partition, limit, operation.map, used, changed)


def _make_room(
    state: MemberState, now: int, partition: int, limit: MapLimit, map: str, written: Collection[str], changed: Changed
) -> None:
    """Give up entries until the map and this member are within their limits, those in the written partition first."""
    excess = _excess(state, limit, map)
    if _full_backups(state, partition):
        entries = state.data.stores[partition].maps.get(map, {})
        size = sum(entry_bytes(key, entries[key]) for key in written if key in entries)
        excess = Amount(max(excess.entries, len(written)), max(excess.bytes, size))
    for place in _places(state, partition):
        if excess.entries <= 0 and excess.bytes <= 0:
            return
        freed = _evict(state, now, place, map, excess, written if place == partition else ())
        if not freed:
            continue
        excess = Amount(excess.entries - len(freed), excess.bytes - sum(freed.values()))
        gone = dict.fromkeys((map, key) for key in freed)
        if place == partition:
            changed.update(gone)
        else:
            backups.write(state, now, place, tuple(gone), "", 0, ())


def _growth(store: PartitionStore, operation: Put | PutAll) -> tuple[Amount, int]:
    """Return by how much the store grows, and how long the answer is that is kept, if it is long."""
    wanted = {operation.key: operation.value} if isinstance(operation, Put) else dict(operation.entries)
    entries = size = kept = 0
    for key, value in wanted.items():
        before = store.find(operation.map, key)
        if before is None:
            entries += 1
            size += key_bytes(key) + len(value)
        else:
            size += len(value) - len(before.value)
            kept = len(before.value) if isinstance(operation, Put) else 0
    return Amount(entries, size), kept if kept > LONG_ANSWER_BYTES else 0


def _why_over(limit: MapLimit, owned: Amount, grown: Amount) -> str:
    if limit.entries and grown.entries > 0 and owned.entries + grown.entries > limit.entries:
        return f"a member may own {limit.entries} entries of it (max-size)"
    if limit.bytes and grown.bytes > 0 and owned.bytes + grown.bytes > limit.bytes:
        return f"a member may own {limit.bytes} bytes of it (max-bytes)"
    return ""


def _excess(state: MemberState, limit: MapLimit, map: str) -> Amount:
    owned, settings = _owned(state, map), state.settings
    entries = owned.entries - limit.entries if limit.entries else 0
    size = owned.bytes - limit.bytes if limit.bytes else 0
    if settings.member_most_entries:
        entries = max(entries, entries_held(state) - settings.member_most_entries)
    if settings.member_most_bytes:
        size = max(size, memory_used(state) - settings.member_most_bytes)
    return Amount(entries, size)


def _owned(state: MemberState, map: str) -> Amount:
    stores = [state.data.stores[partition] for partition in state.data.owner_states]
    return Amount(sum(store.size(map) for store in stores), sum(store.map_bytes.get(map, 0) for store in stores))


def _full_backups(state: MemberState, partition: int) -> list[Address]:
    if not state.data.full_backups:
        return []
    row = state.data.owner_states[partition].row
    return [backup.address for backup in state.counted_backups(row) if backup.uuid in state.data.full_backups]


def _can_free(state: MemberState, partition: int, map: str, grown: Amount) -> bool:
    """Whether so much of the map can be given up at the full backups of the partition."""
    full = set(_full_backups(state, partition))
    stores = [
        state.data.stores[place] for place in _places(state, partition) if full <= set(_full_backups(state, place))
    ]
    entries, size = sum(store.size(map) for store in stores), sum(store.map_bytes.get(map, 0) for store in stores)
    return entries >= grown.entries and size >= grown.bytes


def _places(state: MemberState, partition: int) -> Iterator[int]:
    """Yield the partition, then the others of this owner that can be written now: first where the same backups are full."""
    yield partition
    full = set(_full_backups(state, partition))
    others = [place for place in state.data.owner_states if place != partition]
    for place in sorted(others, key=lambda one: (not full <= set(_full_backups(state, one)), one < partition, one)):
        if place not in state.partitions.active and not replica_sending.is_sending(state, place):
            yield place


def _evict(
    state: MemberState, now: int, partition: int, map: str, excess: Amount, written: Collection[str]
) -> dict[str, int]:
    """Remove as many entries as need be, those used longest ago first, but none that was just written; return their sizes."""
    store = state.data.stores[partition]
    freed: dict[str, int] = {}
    size = 0
    for key, entry in store.maps.get(map, {}).items():
        if len(freed) >= excess.entries and size >= excess.bytes:
            break
        if key not in written:
            freed[key] = entry_bytes(key, entry)
            size += freed[key]
    for key in freed:
        store.remove(map, key)
    if freed:
        state.record(now, EntriesEvicted(partition, map, tuple(freed)))
    return freed


def _keys(operation: Get | Put | PutAll | MergeBatch) -> Collection[str]:
    return dict.fromkeys(
        (operation.key,) if isinstance(operation, Get | Put) else (key for key, _ in operation.entries)
    )
