"""The partition table, migrations, calls of clients, backups and measurements: the rows of their events.

The words of those that come by the thousand are terse.
"""

from __future__ import annotations

from logging import DEBUG, WARNING

from quarterdeck.backend.core.data import events as data
from quarterdeck.backend.core.membership.events import ClaimFinished, ListInstalled, MemberStarted
from quarterdeck.backend.core.partitions import events
from quarterdeck.backend.picture.events.event_row import EventRow, Follows, Mark, filled
from quarterdeck.backend.picture.text.formatting import NameOf, bytes_text, counted, duration_text

NO_HOLDER_TEXT = "–"


def _table_changed(event: events.TableChanged, name_of: NameOf) -> str:
    if len(event.rows) != 1:
        return f"has table v{event.table_version}: {counted(len(event.rows), 'partition')} changed ({event.cause})"
    partition, _, *places = event.rows[0]
    held = ", ".join(name_of(event.holders[place].address) if place >= 0 else NO_HOLDER_TEXT for place in places)
    return f"has table v{event.table_version}: p{partition} is {held} ({event.cause})"


def _lost(event: events.PartitionLost, name_of: NameOf) -> str:
    if event.lost_backups >= events.ALL_LOST:
        return f"loses p{event.partition}: no replica is left, it begins empty"
    backups = f" and {counted(event.lost_backups, 'backup')}" if event.lost_backups else ""
    what = f"p{event.partition} has lost its owner{backups}"
    if event.loses_data:
        return (
            f"{what}: entries of maps with at most {counted(event.lost_backups, 'backup')} are gone, if there were any"
        )
    return f"{what}: no data is lost, a backup takes over" if event.data_lost is False else what


def _recovered(event: events.TableRecovered, name_of: NameOf) -> str:
    answers = ", ".join(f"{name_of(who)} v{theirs}" for who, theirs in event.answered.items()) or "no member"
    committed, rolled_back = len(event.committed_ids), len(event.rolled_back_ids)
    settled = f"; of migrations under way {committed} committed, {rolled_back} rolled back"
    found = f"has recovered the table, v{event.table_version}, from answers of {answers}"
    return found + (settled if committed or rolled_back else "")


def _planned(event: events.MigrationsPlanned, name_of: NameOf) -> str:
    if not event.planned:
        return f"has nothing to migrate: {event.why}"
    clears = sum(planned.type == "CLEAR" for planned in event.planned)
    cleared = f", {counted(clears, 'place')} to clear" if clears else ""
    copies = f"{counted(event.moves, 'replica')} to copy, {event.lower_bound} places to fill at least"
    return f"plans {counted(len(event.planned) - clears, 'migration')} ({copies}{cleared}): {event.why}"


def _started(event: events.MigrationStarted, name_of: NameOf) -> str:
    lowers = ", unavoidably with a replica less meanwhile" if event.unavoidable else ""
    return f"begins p{event.partition} {event.type}: {migration_path_text(event, name_of)}{lowers}"


def replica_name(index: int) -> str:
    """Return the name of the replica with this index: the owner, or a backup by its number."""
    return f"backup {index}" if index else "owner"


def migration_path_text(migration: events.MigrationStarted, name_of: NameOf) -> str:
    """Return the member that takes each replica, and the new role of its holder: ``n4 becomes owner, n1 becomes backup 2``."""
    was = f" (was {replica_name(migration.destination_current)})" if migration.destination_current >= 0 else ""
    arrival = f"{name_of(migration.destination)} becomes {replica_name(migration.destination_new)}{was}"
    if migration.source is None:
        return arrival
    source = name_of(migration.source)
    if migration.source_new >= 0:
        return f"{arrival}, {source} becomes {replica_name(migration.source_new)}"
    return f"{arrival} in place of {source}"


def _change(event: events.MigrationAccepted | events.MigrationFinished) -> str:
    current, new = event.current_replica_index, event.new_replica_index
    if new < 0:
        return f"from {replica_name(current)} to no replica" if current >= 0 else "without a replica"
    if current < 0:
        return f"to {replica_name(new)}"
    return (
        f"from {replica_name(current)} to {replica_name(new)}" if current != new else f"and stays {replica_name(new)}"
    )


def _decided(event: events.MigrationDecided, name_of: NameOf) -> str:
    decision = "commits" if event.committed else "rolls back"
    why = f": {event.reason}" if event.reason else ""
    return f"{decision} p{event.partition}, now v{event.partition_version}{why}"


def _end_mark(event: events.MigrationDecided) -> Mark:
    return ("✓ p{partition}", "good") if event.committed else ("✗ p{partition}", "warning")


TEXT_SHOWN = 60
"""Letters of a key or a value that a line shows."""


def call_text(call: data.CallFinished) -> str:
    """Return how a call ended: ``put orders k1: was 'a' before (p17, 3 ms)``."""
    asked = f"{call.operation} {call.map} {call.key}"
    if call.problem:
        return f"{asked} failed: {call.problem}; {'nothing was done' if call.untouched else 'it may have been done'}"
    found = _quoted(call.value) if call.found else "not there"
    outcome = found if call.operation == "get" else f"was {found} before"
    return f"{asked}: {outcome} (p{call.partition}, {duration_text(call.took)})"


def _quoted(text: str) -> str:
    return repr(text if len(text) <= TEXT_SHOWN else text[: TEXT_SHOWN - 1] + "…")


def _call_started(event: data.CallStarted, name_of: NameOf) -> str:
    what = f" {_quoted(event.value)}" if event.operation == "put" else ""
    return f"is asked to {event.operation} {event.map} {event.key}{what}"


def _merged(event: data.EntriesMerged, name_of: NameOf) -> str:
    brought = counted(event.offered, "entry", "entries")
    failed = f"; the rest could not be offered: {event.problem}" if event.problem else ""
    return f"brought {brought} into the merge, {event.taken} taken ({event.policy}){failed}"


def _measured(event: data.DataMeasured, name_of: NameOf) -> str:
    reads, writes = sum(measured.reads for measured in event.maps), sum(measured.writes for measured in event.maps)
    stored = f"stores {counted(event.entries, 'entry', 'entries')}, {bytes_text(event.bytes)}"
    lag = f"; {counted(len(event.lagging), 'backup')} behind" if event.lagging else ""
    asked = f"{counted(reads, 'read')} and {counted(writes, 'write')} in {duration_text(event.span)}"
    return f"{stored}, and {event.backup_entries} as a backup; {asked}{lag}"


PARTITIONS = (
    EventRow(
        events.TableChanged, _table_changed, "faint", DEBUG, mark=("t{table_version}", "faint"), part="frequent",
        follows=(Follows(ListInstalled, "these are the members to hold the partitions", deeper=False),),
    ),
    EventRow(
        events.PartitionLost, _lost, "bad", WARNING, mark=("∅ p{partition}", "bad"), mark_weight=7, part="frequent",
        follows=(Follows(ListInstalled, "who held it is on the list no more"),),
    ),
    EventRow(
        events.TableRecoveryStarted, "recovers the table: asks {asked:names} for theirs", "warning", mark=("t?", "warning"),
        follows=(Follows(ClaimFinished, "it is master now, and migrations may have been under way"),),
    ),
    EventRow(
        events.TableRecovered, _recovered, "good", mark=("t{table_version} ok", "good"), decides=3,
        follows=(Follows(events.TableRecoveryStarted, "every member has answered or left"),),
    ),
    EventRow(
        events.CompletedEvicted,
        lambda event, _: f"all members know the end of {counted(len(event.migration_ids), 'migration')}", "faint", DEBUG,
        part="frequent", follows=(Follows(events.MigrationDecided, "that had ended"),),
    ),
    EventRow(
        events.DrainStarted, "moves all data off {address:name}, which wants to leave", "strong",
        mark=("drain {address:name}", "strong"), external=True,
    ),
    EventRow(
        events.DrainFinished,
        lambda event, name_of: f"lets {name_of(event.address)} leave: {event.reason or 'nothing is left on it'}", "good",
        mark=("free {address:name}", "good"), follows=(Follows(events.DrainStarted, "it wanted to leave", same="address"),),
    ),
    EventRow(
        events.MigrationsPlanned, _planned, "strong", mark=lambda event: (f"plan {len(event.planned)}", "strong"), decides=1,
        follows=(Follows(ListInstalled, "other members hold data now"),),
    ),
    EventRow(
        events.MigrationsCancelled,
        lambda event, _: f"drops {counted(event.remaining, 'planned migration')}: {event.reason}", "warning", decides=2,
        follows=(Follows(ListInstalled, "other members hold data now"),),
    ),
    EventRow(
        events.MigrationStarted, _started, level=DEBUG, mark=("▷ p{partition}", "plain"), part="frequent",
        follows=(Follows(events.MigrationsPlanned, "it is part of the plan"),),
    ),
    EventRow(
        events.MigrationAccepted,
        lambda event, _: f"accepts the migration of p{event.partition} as {event.endpoint}, {_change(event)}", "faint", DEBUG,
        mark=("· p{partition}", "faint"), part="frequent",
        follows=(Follows(events.MigrationStarted, "the master began it", same="migration_id"),),
    ),
    EventRow(
        events.MigrationRejected, "rejects the migration of p{partition} as {endpoint}: {reason}", "warning", DEBUG,
        mark=("✗ p{partition}", "warning"), part="frequent",
        follows=(Follows(events.MigrationStarted, "the master began it", same="migration_id"),),
    ),
    EventRow(
        events.MigrationCopied,
        lambda event, name_of: filled(
            f"copied p{{partition}}: {{bytes:bytes}}, {counted(event.chunks, 'chunk')}, {{took:duration}}", event, name_of
        ),
        "faint", DEBUG, mark=("▶ p{partition}", "plain"), mark_weight=3, part="frequent",
        follows=(Follows(events.MigrationAccepted, "the destination waits for the data", same="migration_id"),),
    ),
    EventRow(
        events.MigrationCommitting, "asks for the commit of p{partition}", "faint", DEBUG,
        mark=("◇ p{partition}", "plain"), part="frequent",
        follows=(Follows(events.MigrationCopied, "the destination has all the data", same="migration_id"),),
    ),
    EventRow(
        events.MigrationDecided, _decided, lambda event: "plain" if event.committed else "warning", DEBUG,
        mark=_end_mark, mark_weight=4, part="frequent",
        follows=(
            Follows(events.MigrationRejected, "it could not take part", same="migration_id"),
            Follows(events.MigrationCommitting, "the destination was asked to commit", same="migration_id"),
            Follows(events.MigrationStarted, "it had begun", same="migration_id"),
        ),
    ),
    EventRow(
        events.MigrationFinished,
        lambda event, _: f"ends the migration of p{event.partition} as {event.endpoint}, "
        + (_change(event) if event.committed else "without a change"),
        "faint", DEBUG, mark=lambda event: (f"{'✓' if event.committed else '✗'} p{event.partition}", "plain"),
        part="frequent",
        follows=(
            Follows(events.MigrationDecided, "the master decided so", same="migration_id"),
            Follows(events.MigrationCommitting, "the master asked it to commit", same="migration_id"),
        ),
    ),
    EventRow(data.CallStarted, _call_started, "faint", DEBUG, mark=None, part="frequent", external=True),
    EventRow(
        data.CallFinished, lambda event, _: call_text(event), lambda event: "warning" if event.problem else "plain",
        DEBUG, mark=None, part="frequent",
    ),
    EventRow(
        data.BackupOutOfStep, "its backup of p{partition} is out of step with {owner:name}: {reason}", "warning", DEBUG,
    ),
    EventRow(
        data.BackupInStep,
        lambda event, name_of: filled("its backup of p{partition} is in step with {owner:name} again: ", event, name_of)
        + f"{counted(event.entries, 'entry', 'entries')}, {bytes_text(event.bytes)}",
        "good", DEBUG, part="detail", follows=(Follows(data.BackupOutOfStep, "it had asked for it", same="partition"),),
    ),
    EventRow(
        data.EntriesMerged, _merged, "strong", follows=(Follows(MemberStarted, "it came here in a merge"),),
    ),
    EventRow(
        data.EntriesEvicted,
        lambda event, _: f"evicts {counted(len(event.keys), 'entry', 'entries')} of {event.map} from p{event.partition}"
        " to make room",
        "faint", DEBUG, mark=None, part="frequent", external=True,
    ),
    EventRow(data.DataMeasured, _measured, "faint", DEBUG, mark=None, part="measurement", external=True),
)  # fmt: skip
