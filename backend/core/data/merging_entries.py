"""After a merge of clusters: the entries that a life brings along are offered to the winner's partitions (seed 003, Recovering).

Every member of the loser brings what it owned there, and the owners in the winner's cluster merge it by the policy of whoever
brings it. The batches are calls like any other, so none is merged twice, and a member that brings much sends a few at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import chain

from quarterdeck.backend.core.data import map_calls
from quarterdeck.backend.core.data.events import EntriesMerged
from quarterdeck.backend.core.data.map_answers import partition_count
from quarterdeck.backend.core.data.messages import MergeEntries
from quarterdeck.backend.core.data.operations import Answer
from quarterdeck.backend.core.data.partition_store import PartitionStore, partition_of
from quarterdeck.backend.core.data.state import Brought, BroughtEntry
from quarterdeck.backend.core.membership.state import Membership
from quarterdeck.backend.core.partitions.arranging import ask_for_arrangement

MERGING = "merging-entries"
"""Name of the timer that offers the next batches."""

MOST_IN_FLIGHT = 4
MOST_ENTRIES = 500
MOST_BYTES = 64 * 1024


def collect(state: Membership) -> Brought | None:
    """What this life, which is about to end, has to bring along: its partitions, and what it has itself brought and not placed.

    A partition whose owner is not on the list any more is brought by the first in its row that is.
    """
    stores = [
        store for partition, store in state.data.stores.items() if store.entries and _speaks_for(state, partition)
    ]
    earlier = state.data.brought
    if not stores and earlier is None:
        return None
    entries: Iterator[BroughtEntry] = chain.from_iterable(map(_entries_of, stores))
    if earlier is not None:
        entries = chain(_unplaced(earlier), entries)
    return Brought(entries)


def bring(state: Membership, now: int, brought: Brought | None) -> None:
    """The new life begins with what the former one has collected."""
    if brought is None:
        return
    if state.settings.merge_policy == "discard":
        state.note(now, EntriesMerged("discard", 0, 0, ""))
        return
    state.data.brought = brought


def look(state: Membership, now: int) -> None:
    """The list or the table has changed: once this life has both, it begins to offer."""
    brought = state.data.brought
    if brought is None or brought.begun or not state.joined:
        return
    if state.partitions.table is None:
        ask_for_arrangement(state, now)
        return
    brought.begun = True
    state.timers.set(MERGING, now)


def give_up(state: Membership, now: int, reason: str) -> None:
    """This life ends for good: what it has not offered is lost."""
    brought = state.data.brought
    if brought is not None:
        state.data.brought = None
        state.note(now, EntriesMerged(state.settings.merge_policy, brought.offered, brought.taken, reason))


def on_merging_timer(state: Membership, now: int) -> None:
    """Offer the next batches; say so when all is done."""
    brought = state.data.brought
    if brought is None or state.partitions.table is None:
        return
    while len(brought.in_flight) < MOST_IN_FLIGHT:
        batch = _next_batch(brought, state.settings.merge_policy, partition_count(state))
        if batch is None:
            break
        partition, offer = batch
        brought.batches += 1
        brought.in_flight[brought.batches] = offer
        map_calls.ask_for_merge(state, now, partition, offer, partial(_on_merged, brought.batches))
    if not brought.in_flight:
        state.data.brought = None
        state.note(now, EntriesMerged(state.settings.merge_policy, brought.offered, brought.taken, ""))


def _on_merged(batch: int, state: Membership, now: int, answer: Answer) -> None:
    brought = state.data.brought
    if brought is not None and batch in brought.in_flight:
        brought.offered += len(brought.in_flight.pop(batch).entries)
        brought.taken += answer.size
        state.timers.set(MERGING, now)


def _next_batch(brought: Brought, policy: str, partitions: int) -> tuple[int, MergeEntries] | None:
    """The next entries that go to one map in one partition, with the partition."""
    first = brought.put_back or next(brought.entries, None)
    brought.put_back = None
    if first is None:
        return None
    map, key, entry = first
    partition = partition_of(map, key, partitions)
    entries = [(key, entry)]
    size = len(key) + len(entry.value)
    while len(entries) < MOST_ENTRIES and size < MOST_BYTES:
        following = next(brought.entries, None)
        if following is None:
            break
        if following[0] != map or partition_of(map, following[1], partitions) != partition:
            brought.put_back = following
            break
        entries.append(following[1:])
        size += len(following[1]) + len(following[2].value)
    return partition, MergeEntries(map, tuple(entries), policy)


def _speaks_for(state: Membership, partition: int) -> bool:
    table, members = state.partitions.table, state.members
    if table is None or members is None:
        return False
    here = {member.uuid for member in members.members}
    first = next((one.uuid for one in table.rows[partition] if one is not None and one.uuid in here), None)
    return first == state.uuid


def _entries_of(store: PartitionStore) -> Iterator[BroughtEntry]:
    for name, entries in store.maps.items():
        for key, entry in entries.items():
            yield name, key, entry


def _unplaced(brought: Brought) -> Iterator[BroughtEntry]:
    for offer in brought.in_flight.values():
        for key, entry in offer.entries:
            yield offer.map, key, entry
    if brought.put_back is not None:
        yield brought.put_back
    yield from brought.entries
