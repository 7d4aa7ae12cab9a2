"""The part of the fold that is about partitions: a member's table, its part in migrations, its backups, what it leads."""

from __future__ import annotations

from quarterdeck.backend.core.data import events as data
from quarterdeck.backend.core.events import Event
from quarterdeck.backend.core.partitions import events
from quarterdeck.backend.picture.fold.belief import BackupBehind, MemberBelief
from quarterdeck.backend.picture.fold.member_data import measured
from quarterdeck.backend.picture.fold.migrations import LEADING_EVENTS, fold_leading
from quarterdeck.backend.picture.fold.table_belief import TableBelief

PARTITION_EVENTS = (
    events.TableChanged, events.MigrationAccepted, events.MigrationFinished, data.BackupOutOfStep, data.BackupInStep,
    data.DataMeasured, *LEADING_EVENTS,
)  # fmt: skip


def fold_partitions(belief: MemberBelief, event: Event, at: int) -> None:
    """Change a belief by one of `PARTITION_EVENTS` that happened to its member."""
    match event:
        case events.TableChanged():
            change_table(belief, event, at)
        case events.MigrationAccepted(migration_id):
            belief.taking_part[migration_id] = event
        case events.MigrationFinished(migration_id):
            belief.taking_part.pop(migration_id, None)
        case data.DataMeasured():
            belief.data = measured(belief.data, event, at, by_map=bool(belief.witnessed_by))
        case data.BackupOutOfStep(partition):
            belief.out_of_step[partition] = BackupBehind(partition, event.owner, event.reason)
        case data.BackupInStep(partition):
            belief.out_of_step.pop(partition, None)
        case _:
            fold_leading(belief.leading, event, at)


def change_table(belief: MemberBelief, event: events.TableChanged, at: int) -> None:
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


def settle_leading(belief: MemberBelief) -> None:
    """End what only a living master does, after a new list, a new master, or the end of an incarnation.

    Only the members on a master's list wait to leave.
    """
    leading = belief.leading
    if not belief.is_master or belief.status not in ("member", "paused"):
        leading.void()
    elif leading.draining:
        leading.draining = {who: since_us for who, since_us in leading.draining.items() if who in belief.listed}
