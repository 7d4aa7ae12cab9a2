"""The part of the fold that is about partitions: a member's table, its part in migrations, its backups, what it leads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from quarterdeck.backend.core import events
from quarterdeck.backend.core.data import events as data
from quarterdeck.backend.core.partitions import events as partition_events
from quarterdeck.backend.picture.fold.belief import BackupBehind, MemberBelief
from quarterdeck.backend.picture.fold.member_data import measured
from quarterdeck.backend.picture.fold.migrations import LEADING_FOLDS
from quarterdeck.backend.picture.fold.table_belief import TableBelief


def on_table_changed(belief: MemberBelief, event: partition_events.TableChanged, at: int) -> None:
    """Take the changes of a member's partition table."""
    if belief.table is None:
        belief.table = TableBelief(belief.writer)
    elif belief.table.writer is not belief.writer:
        belief.table = belief.table.fork(belief.writer)
    belief.table.take(event, at)
    if belief.out_of_step:  # only a backup can be behind its owner
        belief.out_of_step = {
            partition: behind
            for partition, behind in belief.out_of_step.items()
            if any(holder and holder.uuid == belief.uuid for holder in belief.table.row(partition)[1:])
        }


def _on_migration_accepted(belief: MemberBelief, event: partition_events.MigrationAccepted, at: int) -> None:
    belief.taking_part[event.migration_id] = event


def _on_backup_out_of_step(belief: MemberBelief, event: data.BackupOutOfStep, at: int) -> None:
    belief.out_of_step[event.partition] = BackupBehind(event.partition, event.owner, event.reason)


def _on_data_measured(belief: MemberBelief, event: data.DataMeasured, at: int) -> None:
    belief.data = measured(belief.data, event, at, by_map=bool(belief.witnessed_by))


def _on_leaders_event(belief: MemberBelief, event: events.Event, at: int) -> None:
    """Fold an event about migrations that only masters record."""
    LEADING_FOLDS[type(event)](belief.leading, event, at)


PARTITION_FOLDS: dict[type, Callable[[MemberBelief, Any, int], object]] = {
    partition_events.TableChanged: on_table_changed,
    partition_events.MigrationAccepted: _on_migration_accepted,
    partition_events.MigrationFinished: lambda belief, event, at: belief.taking_part.pop(event.migration_id, None),
    data.BackupOutOfStep: _on_backup_out_of_step,
    data.BackupInStep: lambda belief, event, at: belief.out_of_step.pop(event.partition, None),
    data.DataMeasured: _on_data_measured,
    **dict.fromkeys(LEADING_FOLDS, _on_leaders_event),
}
"""What each kind of event does to the belief of the member that it happened to; called with belief, event and time."""


def settle_leading(belief: MemberBelief) -> None:
    """End what only a living master does, after a new list, a new master, or the end of an incarnation.

    Only the members on a master's list wait to leave.
    """
    leading = belief.leading
    if not belief.is_master or belief.status not in ("member", "paused"):
        leading.void()
    elif leading.draining:
        leading.draining = {who: since_us for who, since_us in leading.draining.items() if who in belief.listed}
