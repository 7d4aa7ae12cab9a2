"""The owner sends a whole partition to a backup that is out of step (the backup's side: `replica_sync`).

The partition accepts no writes meanwhile. Little is lost by that, for no write can be confirmed as long as a backup in the row is
out of step; and the copy, made chunk by chunk, is of one moment. If the backup falls silent, writes are accepted again.
"""

from __future__ import annotations

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.data.messages import SyncAck, SyncChunk, SyncRequest
from quarterdeck.backend.core.data.replication import backups
from quarterdeck.backend.core.data.replication.store_transfer import next_chunk
from quarterdeck.backend.core.data.state import MemberState, Outgoing
from quarterdeck.backend.core.partitions.migration.migration import StoreCursor
from quarterdeck.backend.core.partitions.table.partition_table import Replica
from quarterdeck.backend.core.properties import MILLISECOND_US, SECOND_US

SENDING = "replica-sending"
"""Name of the timer that sends chunks again."""

RESEND_US = 500 * MILLISECOND_US
GIVE_UP_US = 5 * SECOND_US
"""After so long without a word from the backup."""


def is_sending(state: MemberState, partition: int) -> bool:
    """Return whether a copy of the partition is under way, so that it accepts no writes."""
    return any(one == partition for one, _ in state.data.outgoing)


def on_sync_request(state: MemberState, now: int, sender: Address, request: SyncRequest) -> None:
    """Begin the copy. A backup that may not have it now asks again."""
    owner_state = state.data.owner_states.get(request.partition)
    receiver = Replica(sender, request.backup)
    if owner_state is None or receiver not in owner_state.row[1:] or state.partitions.is_migrating(request.partition):
        return
    present = state.data.outgoing.get((request.partition, request.backup))
    if present is not None and present.token == request.token:
        return
    outgoing = Outgoing(receiver, request.token, StoreCursor(), give_up_us=now + GIVE_UP_US)
    state.data.outgoing[request.partition, request.backup] = outgoing
    backups.mark_out_of_step(state, now, request.partition, request.backup)
    _send_some(state, now, request.partition, outgoing)


def on_sync_ack(state: MemberState, now: int, sender: Address, ack: SyncAck) -> None:
    """Send the next chunks, since the backup has received some."""
    found = [sent for sent in state.data.outgoing.items() if sent[1].token == ack.token]
    if not found:
        return
    key, outgoing = found[0]
    if ack.done:
        del state.data.outgoing[key]
        return
    acknowledged = [number for number in outgoing.unacknowledged if number <= ack.number]
    for number in acknowledged:
        del outgoing.unacknowledged[number]
    outgoing.give_up_us = now + GIVE_UP_US
    if acknowledged:
        _send_some(state, now, key[0], outgoing)


def stop(state: MemberState, partition: int) -> None:
    """Stop all copies of a partition that migrates, or is not owned here any more."""
    for key in [key for key in state.data.outgoing if key[0] == partition]:
        del state.data.outgoing[key]


def on_table_changed(state: MemberState, now: int) -> None:
    """Stop copies to members that are no backups any more."""
    table = state.table
    for (partition, backup), outgoing in list(state.data.outgoing.items()):
        if outgoing.receiver not in table.rows[partition][1:]:
            del state.data.outgoing[partition, backup]


def on_sending_timer(state: MemberState, now: int) -> None:
    """Send again what was not acknowledged; give up silent backups."""
    for (partition, backup), outgoing in list(state.data.outgoing.items()):
        if outgoing.give_up_us <= now:
            del state.data.outgoing[partition, backup]
        elif outgoing.resend_us <= now:
            for number, payload in outgoing.unacknowledged.items():
                state.send(outgoing.receiver.address, SyncChunk(partition, outgoing.token, number, payload))
            outgoing.resend_us = now + RESEND_US
    _set_timer(state)


def _send_some(state: MemberState, now: int, partition: int, outgoing: Outgoing) -> None:
    store = state.data.stores[partition]
    while not outgoing.exhausted and len(outgoing.unacknowledged) < state.settings.transfer_window_chunks:
        payload = next_chunk(store, outgoing.cursor, state.settings.transfer_chunk_bytes)
        if payload is None:
            outgoing.exhausted = True
            break
        outgoing.unacknowledged[outgoing.next_number] = payload
        state.send(outgoing.receiver.address, SyncChunk(partition, outgoing.token, outgoing.next_number, payload))
        outgoing.next_number += 1
    outgoing.resend_us = now + RESEND_US
    _set_timer(state)


def _set_timer(state: MemberState) -> None:
    due = [min(outgoing.resend_us, outgoing.give_up_us) for outgoing in state.data.outgoing.values()]
    if due:
        state.timers.set(SENDING, min(due))
