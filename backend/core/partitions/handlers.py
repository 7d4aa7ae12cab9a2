"""Which chapter of partitions answers which message and which timer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.membership.messages import Leave
from quarterdeck.backend.core.partitions import graceful_shutdown, lite_members, messages
from quarterdeck.backend.core.partitions.arrangement import repartitioning
from quarterdeck.backend.core.partitions.migration import migration_queue, migration_transfer, safe_commit
from quarterdeck.backend.core.partitions.state import PartitionedMember
from quarterdeck.backend.core.partitions.table import table_publishing, table_recovery

PARTITION_MESSAGE_HANDLERS: dict[type, Callable[[PartitionedMember, int, Address, Any], None]] = {
    Leave: graceful_shutdown.on_goodbye,
    messages.ArrangeRequest: repartitioning.on_arrange_request,
    messages.TableUpdate: table_publishing.on_table_update,
    messages.TableAck: table_publishing.on_ack,
    messages.TableFetch: table_recovery.on_table_fetch,
    messages.TableAnswer: table_recovery.on_table_answer,
    messages.MigrationRequest: migration_transfer.on_request,
    messages.MigrationReport: migration_queue.on_report,
    messages.MigrationChunk: migration_transfer.on_chunk,
    messages.MigrationChunkAck: migration_transfer.on_chunk_ack,
    messages.MigrationCommit: safe_commit.on_commit,
    messages.MigrationCommitAck: safe_commit.on_commit_ack,
    messages.ShutdownRequest: graceful_shutdown.on_shutdown_request,
    messages.ShutdownGranted: graceful_shutdown.on_shutdown_granted,
    messages.LiteChangeRequest: lite_members.on_request,
    messages.LiteChangeRefusal: lite_members.on_refusal,
}
"""Which handler answers which message."""

PARTITION_TIMER_HANDLERS: dict[str, tuple[Callable[[PartitionedMember, int], None], ...]] = {
    repartitioning.ARRANGE: (repartitioning.on_arrange_timer,),
    table_publishing.TABLE: (table_publishing.on_table_timer,),
    table_recovery.RECOVERY: (table_recovery.on_recovery_timer,),
    migration_queue.MIGRATIONS: (migration_queue.on_migrations_timer,),
    migration_transfer.TRANSFER: (migration_transfer.on_transfer_timer,),
    graceful_shutdown.DRAIN: (graceful_shutdown.on_drain_timer,),
    lite_members.LITE_CHANGE: (lite_members.on_lite_change_timer,),
    lite_members.DEMOTIONS: (lite_members.on_demotions_timer,),
}
"""Which handler answers which timer."""
