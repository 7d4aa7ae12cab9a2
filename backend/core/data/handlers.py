"""Which chapter of partitions or of data handles which message and which timer, and how data follows lists and tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.data import call_results, map_calls, map_owner, measuring, merging_entries, messages
from quarterdeck.backend.core.data.replication import anti_entropy, backups, replica_sending, replica_sync
from quarterdeck.backend.core.data.state import MERGING, MemberState
from quarterdeck.backend.core.membership.handlers import MEMBERSHIP_TIMER_HANDLERS
from quarterdeck.backend.core.membership.messages import Leave
from quarterdeck.backend.core.partitions import graceful_shutdown, lite_members
from quarterdeck.backend.core.partitions import messages as partition_messages
from quarterdeck.backend.core.partitions.arrangement import repartitioning
from quarterdeck.backend.core.partitions.migration import migration_queue, migration_transfer, safe_commit
from quarterdeck.backend.core.partitions.table import table_publishing, table_recovery

MESSAGE_HANDLERS: dict[type, Callable[[MemberState, int, Address, Any], None]] = {
    Leave: graceful_shutdown.on_goodbye,
    partition_messages.ArrangeRequest: repartitioning.on_arrange_request,
    partition_messages.TableUpdate: table_publishing.on_table_update,
    partition_messages.TableAck: table_publishing.on_ack,
    partition_messages.TableFetch: table_recovery.on_table_fetch,
    partition_messages.TableAnswer: table_recovery.on_table_answer,
    partition_messages.MigrationRequest: migration_transfer.on_request,
    partition_messages.MigrationReport: migration_queue.on_report,
    partition_messages.MigrationChunk: migration_transfer.on_chunk,
    partition_messages.MigrationChunkAck: migration_transfer.on_chunk_ack,
    partition_messages.MigrationCommit: safe_commit.on_commit,
    partition_messages.MigrationCommitAck: migration_queue.on_commit_ack,
    partition_messages.ShutdownRequest: graceful_shutdown.on_shutdown_request,
    partition_messages.ShutdownGranted: graceful_shutdown.on_shutdown_granted,
    partition_messages.LiteChangeRequest: lite_members.on_request,
    partition_messages.LiteChangeRefusal: lite_members.on_refusal,
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
"""Which handler answers which message, whatever the member is doing. Membership has rules for its own, by that."""

TIMER_HANDLERS: dict[str, tuple[Callable[[MemberState, int], None], ...]] = {
    **MEMBERSHIP_TIMER_HANDLERS,
    repartitioning.ARRANGE: (repartitioning.on_arrange_timer,),
    table_publishing.TABLE: (table_publishing.on_table_timer,),
    table_recovery.RECOVERY: (table_recovery.on_recovery_timer,),
    migration_queue.MIGRATIONS: (migration_queue.on_migrations_timer,),
    migration_transfer.TRANSFER: (migration_transfer.on_transfer_timer,),
    graceful_shutdown.DRAIN: (graceful_shutdown.on_drain_timer,),
    lite_members.LITE_CHANGE: (lite_members.on_lite_change_timer,),
    lite_members.DEMOTIONS: (lite_members.on_demotions_timer,),
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
    """React to another table, which there is now, after every `placed` that follows from it."""
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
