"""After a merge of clusters: the entries that an incarnation brings along are offered to the winner's partitions (seed
003, Recovering).

Every member of the loser brings what it owned there, and the owners in the winner's cluster merge it by the policy of whoever
brings it. The batches are calls like any other, so none is merged twice, and a member that brings much sends a few at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from quarterdeck.backend.core.data.calls import map_calls
from quarterdeck.backend.core.data.calls.call_results import partition_count
from quarterdeck.backend.core.data.events import EntriesMerged
from quarterdeck.backend.core.data.messages import MergeBatch
from quarterdeck.backend.core.data.partition_store import PartitionStore, partition_of
from quarterdeck.backend.core.data.state import MERGING, MergeEntries, MergeEntry
from quarterdeck.backend.core.membership.state import Membership
from quarterdeck.backend.core.partitions.arrangement.arrangement_request import ask_for_arrangement

MOST_IN_FLIGHT = 4
MOST_ENTRIES = 500
MOST_BYTES = 64 * 1024


def collect(state: Membership) -> MergeEntries | None:
    """What this incarnation, which is about to end, has to bring along: its partitions, and what it has itself brought
    and not placed.

    A partition whose owner is not on the list any more is brought by the first in its row that is.
    """
    stores = [
        store
        for partition, store in state.data.stores.items()
        if store.entries and _is_responsible_for(state, partition)
    ]
    earlier = state.data.merge_entries
    if not stores and earlier is None:
        return None
    entries: Iterator[MergeEntry] = chain.from_iterable(map(_entries_of, stores))
    if earlier is not None:
        entries = chain(_not_offered(earlier), entries)
    return MergeEntries(entries)


def adopt(state: Membership, now: int, merge_entries: MergeEntries | None) -> None:
    """The new life begins with what the former one has collected."""
    if merge_entries is None:
        return
    if state.settings.merge_policy == "discard":
        state.record(now, EntriesMerged("discard", 0, 0, ""))
        return
    state.data.merge_entries = merge_entries


def begin_when_ready(state: Membership, now: int) -> None:
    """The list or the table has changed: once this incarnation has both, it begins to offer."""
    merge_entries = state.data.merge_entries
    if merge_entries is None or merge_entries.begun or not state.joined:
        return
    if state.partitions.table is None:
        ask_for_arrangement(state, now)
        return
    merge_entries.begun = True
    state.timers.set(MERGING, now)


def give_up(state: Membership, now: int, reason: str) -> None:
    """This incarnation ends for good: what it has not offered is lost."""
    merge_entries = state.data.merge_entries
    if merge_entries is not None:
        state.data.merge_entries = None
        state.record(
            now, EntriesMerged(state.settings.merge_policy, merge_entries.offered, merge_entries.taken, reason)
        )


def on_merging_timer(state: Membership, now: int) -> None:
    """Offer the next batches; say so when all is done."""
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
        state.record(now, EntriesMerged(state.settings.merge_policy, merge_entries.offered, merge_entries.taken, ""))


def _next_batch(merge_entries: MergeEntries, policy: str, partitions: int) -> tuple[int, MergeBatch] | None:
    """The next entries that go to one map in one partition, with the partition."""
    first = merge_entries.put_back or next(merge_entries.entries, None)
    merge_entries.put_back = None
    if first is None:
        return None
    map, key, entry = first
    partition = partition_of(map, key, partitions)
    entries = [(key, entry)]
    size = len(key) + len(entry.value)
    while len(entries) < MOST_ENTRIES and size < MOST_BYTES:
        following = next(merge_entries.entries, None)
        if following is None:
            break
        if following[0] != map or partition_of(map, following[1], partitions) != partition:
            merge_entries.put_back = following
            break
        entries.append(following[1:])
        size += len(following[1]) + len(following[2].value)
    return partition, MergeBatch(map, tuple(entries), policy)


def _is_responsible_for(state: Membership, partition: int) -> bool:
    table, members = state.partitions.table, state.members
    if table is None or members is None:
        return False
    here = {member.uuid for member in members.members}
    first = next((one.uuid for one in table.rows[partition] if one is not None and one.uuid in here), None)
    return first == state.uuid


def _entries_of(store: PartitionStore) -> Iterator[MergeEntry]:
    for name, entries in store.maps.items():
        for key, entry in entries.items():
            yield name, key, entry


def _not_offered(merge_entries: MergeEntries) -> Iterator[MergeEntry]:
    for offer in merge_entries.in_flight.values():
        for key, entry in offer.entries:
            yield offer.map, key, entry
    if merge_entries.put_back is not None:
        yield merge_entries.put_back
    yield from merge_entries.entries
