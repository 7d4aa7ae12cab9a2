"""Merging entries: an incarnation offers those that it brings along to the winner's partitions (seed 003, Recovering)."""

from __future__ import annotations

from collections import deque

from quarterdeck.backend.core.data import map_calls
from quarterdeck.backend.core.data.call_results import partition_count
from quarterdeck.backend.core.data.events import EntriesMerged
from quarterdeck.backend.core.data.messages import MergeBatch
from quarterdeck.backend.core.data.partition_store import partition_of
from quarterdeck.backend.core.data.state import MERGING, MemberState, MergeEntries
from quarterdeck.backend.core.partitions.arrangement.repartitioning import ask_for_arrangement

MOST_IN_FLIGHT = 4
MOST_ENTRIES = 500
MOST_BYTES = 64 * 1024


def collect(state: MemberState) -> MergeEntries | None:
    """Return what this incarnation, which is about to end, has to bring along.

    That is its partitions, and what it has itself brought and not placed. A partition whose owner is off the list is brought by
    the first member in its row that is on it.
    """
    held = state.data.stores.items()
    stores = [store for partition, store in held if store.entries and _is_responsible_for(state, partition)]
    earlier = state.data.merge_entries
    if not stores and earlier is None:
        return None
    brought = deque((name, entries) for store in stores for name, entries in store.maps.items())
    if earlier is not None:
        # What the earlier incarnation has not offered, after what it has offered without an answer.
        brought.extendleft(reversed(earlier.brought))
        brought.extendleft((offer.map, dict(offer.entries)) for offer in reversed(earlier.in_flight.values()))
    return MergeEntries(brought)


def adopt(state: MemberState, now: int, merge_entries: MergeEntries | None) -> None:
    """Begin the new incarnation with what the former one has collected."""
    if merge_entries is None:
        return
    if state.settings.merge_policy == "discard":
        state.record(now, EntriesMerged("discard", 0, 0, ""), state.begun)
        return
    state.data.merge_entries = merge_entries


def begin_when_ready(state: MemberState, now: int) -> None:
    """Begin to offer as soon as this incarnation has both a list and a table."""
    merge_entries = state.data.merge_entries
    if merge_entries is None or merge_entries.begun or not state.joined:
        return
    if state.partitions.table is None:
        ask_for_arrangement(state, now)
        return
    merge_entries.begun = True
    state.timers.set(MERGING, now)


def give_up(state: MemberState, now: int, reason: str) -> None:
    """Record as lost what this incarnation has not offered before it ends for good."""
    merge_entries = state.data.merge_entries
    if merge_entries is not None:
        state.data.merge_entries = None
        policy = state.settings.merge_policy
        state.record(now, EntriesMerged(policy, merge_entries.offered, merge_entries.taken, reason))


def on_merging_timer(state: MemberState, now: int) -> None:
    """Offer the next batches; record when all is done."""
    merge_entries = state.data.merge_entries
    if merge_entries is None or state.partitions.table is None:
        return
    while len(merge_entries.in_flight) < MOST_IN_FLIGHT:
        batch = _next_batch(merge_entries, state.settings.merge_policy, partition_count(state))
        if batch is None:
            break
        partition, offer = batch
        merge_entries.batches += 1
        merge_entries.in_flight[merge_entries.batches] = offer
        map_calls.ask_for_merge(state, now, partition, offer, merge_entries.batches)
    if not merge_entries.in_flight:
        state.data.merge_entries = None
        merged = EntriesMerged(state.settings.merge_policy, merge_entries.offered, merge_entries.taken, "")
        state.record(now, merged, state.begun)


def _next_batch(merge_entries: MergeEntries, policy: str, partitions: int) -> tuple[int, MergeBatch] | None:
    brought = merge_entries.brought
    while brought and not brought[0][1]:
        brought.popleft()
    if not brought:
        return None
    map, entries = brought[0]
    key, entry = entries.popitem()
    partition = partition_of(map, key, partitions)
    taken = [(key, entry)]
    size = len(key) + len(entry.value)
    while entries and len(taken) < MOST_ENTRIES and size < MOST_BYTES:
        key, entry = entries.popitem()
        if partition_of(map, key, partitions) != partition:
            entries[key] = entry
            break
        taken.append((key, entry))
        size += len(key) + len(entry.value)
    return partition, MergeBatch(map, tuple(taken), policy)


def _is_responsible_for(state: MemberState, partition: int) -> bool:
    table, members = state.partitions.table, state.members
    if table is None or members is None:
        return False
    holders = (replica.uuid for replica in table.rows[partition] if replica is not None)
    return next((uuid for uuid in holders if uuid in members.uuids), None) == state.uuid
