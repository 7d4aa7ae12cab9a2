"""Which chapter of data handles which message and which timer, and how data follows lists, tables and incarnations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.data import call_results, map_calls, map_owner, measuring, merging_entries, messages
from quarterdeck.backend.core.data.replication import anti_entropy, backups, replica_sending, replica_sync
from quarterdeck.backend.core.data.state import MERGING, MemberState

DATA_MESSAGE_HANDLERS: dict[type, Callable[[MemberState, int, Address, Any], None]] = {
    messages.MapCall: map_owner.on_map_call,
    messages.MapAnswer: call_results.on_map_answer,
    messages.BackupWrite: backups.on_backup_write,
    messages.BackupCheck: backups.on_backup_check,
    messages.BackupAck: backups.on_backup_ack,
    messages.BackupStale: backups.on_backup_stale,
    messages.SyncRequest: replica_sending.on_sync_request,
    messages.SyncChunk: replica_sync.on_sync_chunk,
    messages.SyncAck: replica_sending.on_sync_ack,
}
"""Which handler answers which message."""

DATA_TIMER_HANDLERS: dict[str, tuple[Callable[[MemberState, int], None], ...]] = {
    call_results.CALLS: (map_calls.on_calls_timer,),
    call_results.READY: (map_calls.on_ready_timer,),
    backups.BACKUPS: (backups.on_backups_timer,),
    replica_sync.SYNC: (replica_sync.on_sync_timer,),
    replica_sending.SENDING: (replica_sending.on_sending_timer,),
    anti_entropy.ANTI_ENTROPY: (anti_entropy.on_anti_entropy_timer,),
    MERGING: (merging_entries.on_merging_timer,),
    measuring.MEASURING: (measuring.on_measuring_timer,),
}
"""Which handlers answer which timer, in order."""


def on_table_changed(state: MemberState, now: int) -> None:
    """React to another table (there is one), after every `placed` that follows from it."""
    replica_sync.on_table_changed(state, now)
    replica_sending.on_table_changed(state, now)
    backups.on_rows_changed(state, now, state.partitions.changed_rows)
    map_calls.on_table_changed(state, now)
    merging_entries.begin_when_ready(state, now)
    state.partitions.changed_rows.clear()


def on_list_changed(state: MemberState, now: int) -> None:
    """React to another member list."""
    anti_entropy.on_list_changed(state, now)
    merging_entries.begin_when_ready(state, now)


def on_incarnation_end(state: MemberState, now: int, reason: str, *, for_good: bool) -> None:
    """End all calls with a problem, since this incarnation is about to end, `for_good` unless it merges into another cluster."""
    map_calls.end_all(state, now, reason)
    if for_good:
        merging_entries.give_up(state, now, reason)
