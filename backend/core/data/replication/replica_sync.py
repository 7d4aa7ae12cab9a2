"""A backup that is out of step copies its whole partition from the owner (Hazelcast: anti-entropy).

The owner's side is `replica_sending`. A few partitions are copied at a time, and none that is migrating here. The copy is staged
beside the present replica, and replaces it when it is complete, if the replica has not changed meanwhile: then the copy is out of
date.
"""

from __future__ import annotations

import msgspec

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.data import measuring
from quarterdeck.backend.core.data.events import BackupInStep, BackupOutOfStep, OutOfStepCause
from quarterdeck.backend.core.data.messages import BackupAck, SyncAck, SyncChunk, SyncRequest
from quarterdeck.backend.core.data.replication.store_transfer import Staging
from quarterdeck.backend.core.data.state import Incoming, MemberState, is_full
from quarterdeck.backend.core.partitions.table.partition_table import Replica, index_of
from quarterdeck.backend.core.properties import MILLISECOND_US, SECOND_US

SYNC = "replica-sync"
"""Name of the timer that asks again."""

ASK_AGAIN_US = 2 * SECOND_US
"""After so long without a new chunk."""

LOOK_AGAIN_US = 200 * MILLISECOND_US
"""While what is wanted cannot be begun."""


def request_copy(state: MemberState, now: int, partition: int, cause: OutOfStepCause, reason: str) -> None:
    """Ask the owner, if it is known, for a whole copy of the partition."""
    owner = _owner(state, partition)
    if owner is None or partition in state.data.stale or partition in state.data.incoming:
        return
    state.data.stale[partition] = None
    if partition not in state.data.out_of_step:
        state.record(now, BackupOutOfStep(partition, owner.address, reason, cause))
        state.data.out_of_step[partition] = state.latest_record
    _begin_some(state, now)


def confirm_in_step(state: MemberState, now: int, partition: int, owner: Address) -> None:
    """Record that this backup has all that its owner has, whatever has brought it: a copy, a migration, or a comparison."""
    because = state.data.out_of_step.pop(partition, None)
    if because is not None:
        store = state.data.stores[partition]
        state.record(now, BackupInStep(partition, owner, store.entries, store.bytes), because)


def on_migrated_here(state: MemberState, now: int, partition: int) -> None:
    """Note that a migration has brought the whole partition; its owner accepted no writes meanwhile."""
    owner = _owner(state, partition)
    if owner is not None:
        confirm_in_step(state, now, partition, owner.address)


def on_equal(state: MemberState, now: int, partition: int, owner: Address) -> None:
    """Note that the owner has found this replica equal to its own. A copy that is wanted is not affected."""
    if partition not in state.data.stale and partition not in state.data.incoming:
        confirm_in_step(state, now, partition, owner)


def end_copies(state: MemberState, partition: int) -> None:
    """Drop the whole copy of a partition that migrates, or whose owner has changed. It may still be out of step."""
    state.data.stale.pop(partition, None)
    state.data.incoming.pop(partition, None)


def forget(state: MemberState, partition: int) -> None:
    """Forget a partition that is no backup here any more."""
    end_copies(state, partition)
    state.data.out_of_step.pop(partition, None)


def on_table_changed(state: MemberState, now: int) -> None:
    """End copies from former owners; the new owners will look after their backups."""
    for partition, incoming in list(state.data.incoming.items()):
        if _owner(state, partition) != incoming.owner:
            end_copies(state, partition)
    _begin_some(state, now)


def on_sync_chunk(state: MemberState, now: int, sender: Address, chunk: SyncChunk) -> None:
    """Stage the next chunk. The sender of a copy that is not wanted any more is asked to end it."""
    incoming = state.data.incoming.get(chunk.partition)
    if incoming is None or incoming.token != chunk.token:
        state.send(sender, SyncAck(chunk.partition, chunk.token, chunk.number, True))
        return
    if chunk.number == incoming.received:
        incoming.received += 1
        incoming.ask_again_us = now + ASK_AGAIN_US
        try:
            complete = incoming.staging.receive(chunk.payload, state.data.stores.get(chunk.partition))
        except (msgspec.DecodeError, ValueError) as problem:
            end_copies(state, chunk.partition)
            request_copy(state, now, chunk.partition, "copy-damaged", f"the last copy was damaged: {problem}")
            return
        if complete:
            _finish(state, now, chunk.partition, incoming)
    done = chunk.partition not in state.data.incoming
    state.send(sender, SyncAck(chunk.partition, chunk.token, incoming.received - 1, done))


def on_sync_timer(state: MemberState, now: int) -> None:
    """Ask again under a new token where nothing comes, after those that wait; begin what can begin now."""
    for partition, incoming in list(state.data.incoming.items()):
        if incoming.ask_again_us <= now:
            del state.data.incoming[partition]
            state.data.stale[partition] = None
    _begin_some(state, now)


def _finish(state: MemberState, now: int, partition: int, incoming: Incoming) -> None:
    data, staged = state.data, incoming.staging.store
    del data.incoming[partition]
    if data.last_stamp(partition) == incoming.began_with:
        if staged is not None:
            data.stores[partition] = staged
            measuring.note_change(state, now, partition)
        confirm_in_step(state, now, partition, incoming.owner.address)
        position = (partition, data.stores[partition].stamp)
        state.send(incoming.owner.address, BackupAck(state.uuid, (position,), (), is_full(state)))
    _begin_some(state, now)


def _begin_some(state: MemberState, now: int) -> None:
    data = state.data
    for partition in list(data.stale):
        owner = _owner(state, partition)
        if owner is None:
            del data.stale[partition]
        elif len(data.incoming) < state.settings.parallel_replications and not state.partitions.is_migrating(partition):
            del data.stale[partition]
            _ask(state, now, partition, owner)
    due = [incoming.ask_again_us for incoming in data.incoming.values()]
    if data.stale:
        due.append(now + LOOK_AGAIN_US)
    if due:
        state.timers.set(SYNC, min(due))


def _ask(state: MemberState, now: int, partition: int, owner: Replica) -> None:
    token = state.next_token()
    began_with = state.data.last_stamp(partition)
    state.data.incoming[partition] = Incoming(owner, token, began_with, Staging(), ask_again_us=now + ASK_AGAIN_US)
    state.send(owner.address, SyncRequest(state.uuid, partition, token))


def _owner(state: MemberState, partition: int) -> Replica | None:
    table = state.partitions.table
    if table is None or partition not in state.data.stores:
        return None
    row = table.rows[partition]
    return row[0] if index_of(state.uuid, row) > 0 else None
