"""Events of partitions, migrations and data as one line of plain English each. Those that come by the thousand are terse."""

from __future__ import annotations

from quarterdeck.backend.core.data import events as data
from quarterdeck.backend.core.data.events import DataEvent
from quarterdeck.backend.core.partitions import events as partition_events
from quarterdeck.backend.core.partitions.events import MigrationStarted, PartitionEvent
from quarterdeck.backend.picture.text.formatting import NameOf, bytes_text, counted, duration_text, names_text

TEXT_SHOWN = 60
"""Letters of a key or a value that a line shows."""

NOBODY_TEXT = "–"


def describe_partition_or_data(event: PartitionEvent | DataEvent, name_of: NameOf) -> str:
    """Describe what happened, without when and to whom."""
    match event:
        case partition_events.TableChanged(version, _, _, holders, rows, _, cause):
            if len(rows) == 1:
                partition, _, *places = rows[0]
                held = ", ".join(name_of(holders[place].address) if place >= 0 else NOBODY_TEXT for place in places)
                return f"has table v{version}: p{partition} is {held} ({cause})"
            return f"has table v{version}: {counted(len(rows), 'partition')} changed ({cause})"
        case partition_events.PartitionLost(partition, lost_backups):
            if lost_backups >= partition_events.ALL_LOST:
                return f"loses p{partition}: no replica is left, it begins empty"
            return f"p{partition} has lost its owner" + (f" and backups up to {lost_backups}" if lost_backups else "")
        case partition_events.TableRecoveryStarted(asked):
            return f"recovers the table: asks {names_text(asked, name_of)} for theirs"
        case partition_events.TableRecovered(version, answered, committed, rolled_back):
            answers = ", ".join(f"{name_of(who)} v{theirs}" for who, theirs in answered.items()) or "nobody"
            settled = f"; of migrations under way {len(committed)} committed, {len(rolled_back)} rolled back"
            return f"has recovered the table, v{version}, from answers of {answers}" + (
                settled if committed or rolled_back else ""
            )
        case partition_events.CompletedEvicted(migration_ids):
            return f"all members know the end of {counted(len(migration_ids), 'migration')}"
        case partition_events.DrainStarted(address):
            return f"moves all data off {name_of(address)}, which wants to leave"
        case partition_events.DrainFinished(address, reason):
            return f"lets {name_of(address)} leave: {reason or 'nothing is left on it'}"
        case _:
            return _describe_migration(event, name_of)


def _describe_migration(event: PartitionEvent | DataEvent, name_of: NameOf) -> str:
    match event:
        case partition_events.MigrationsPlanned(planned, moves, lower_bound, why):
            if not planned:
                return f"has nothing to migrate: {why}"
            clears = sum(one.type == "CLEAR" for one in planned)
            cleared = f", {counted(clears, 'place')} to clear" if clears else ""
            copies = f"{counted(moves, 'replica')} to copy, {lower_bound} places to fill at least"
            return f"plans {counted(len(planned) - clears, 'migration')} ({copies}{cleared}): {why}"
        case partition_events.MigrationsCancelled(remaining, reason):
            return f"drops {counted(remaining, 'planned migration')}: {reason}"
        case MigrationStarted(_, partition, kind):
            lowers = ", unavoidably with a replica less meanwhile" if event.unavoidable else ""
            return f"begins p{partition} {kind}: {migration_path_text(event, name_of)}{lowers}"
        case partition_events.MigrationAccepted(_, partition, endpoint, current, new):
            return f"takes part in p{partition} as {endpoint} {change_text(current, new)}"
        case partition_events.MigrationRejected(_, partition, endpoint, reason):
            return f"takes no part in p{partition} as {endpoint}: {reason}"
        case partition_events.MigrationCopied(_, partition, chunks, size, took):
            return f"copied p{partition}: {bytes_text(size)}, {counted(chunks, 'chunk')}, {duration_text(took)}"
        case partition_events.MigrationCommitting(_, partition):
            return f"asks for the commit of p{partition}"
        case partition_events.MigrationDecided(_, partition, committed, version, reason):
            decided = "commits" if committed else "rolls back"
            return f"{decided} p{partition}, now v{version}" + (f": {reason}" if reason else "")
        case partition_events.MigrationFinished(_, partition, endpoint, committed, current, new):
            ended = change_text(current, new) if committed else "without a change"
            return f"is done with p{partition} as {endpoint} {ended}"
        case _:
            return _describe_data(event, name_of)


def _describe_data(event: PartitionEvent | DataEvent, name_of: NameOf) -> str:
    match event:
        case data.CallStarted(_, operation, map, key, value):
            what = f" {quoted(value)}" if operation == "put" else ""
            return f"is asked to {operation} {map} {key}{what}"
        case data.CallFinished():
            return call_text(event)
        case data.BackupOutOfStep(partition, owner, reason):
            return f"its backup of p{partition} is out of step with {name_of(owner)}: {reason}"
        case data.BackupInStep(partition, owner, entries, size):
            took = f"{counted(entries, 'entry', 'entries')}, {bytes_text(size)}"
            return f"its backup of p{partition} is in step with {name_of(owner)} again: {took}"
        case data.EntriesMerged(policy, offered, taken, problem):
            brought = counted(offered, "entry", "entries")
            failed = f"; the rest could not be offered: {problem}" if problem else ""
            return f"brought {brought} into the merge, {taken} taken ({policy}){failed}"
        case data.DataMeasured():
            return measured_text(event)
        case _:
            return type(event).__name__  # an event newer than this reader


def measured_text(event: data.DataMeasured) -> str:
    """Describe what a member stores and was asked: ``stores 3 entries, 30 B, and 2 as a backup; 5 reads and 4 writes in 1 s``."""
    reads, writes = sum(one.reads for one in event.maps), sum(one.writes for one in event.maps)
    stored = f"stores {counted(event.entries, 'entry', 'entries')}, {bytes_text(event.bytes)}"
    lag = f"; {counted(len(event.lagging), 'backup')} behind" if event.lagging else ""
    asked = f"{counted(reads, 'read')} and {counted(writes, 'write')} in {duration_text(event.span)}"
    return f"{stored}, and {event.backup_entries} as a backup; {asked}{lag}"


def call_text(call: data.CallFinished) -> str:
    """How a call ended: ``put orders k1: was 'a' before (p17, 3 ms)``."""
    asked = f"{call.operation} {call.map} {call.key}"
    if call.problem:
        return f"{asked} failed: {call.problem}; {'nothing was done' if call.untouched else 'it may have been done'}"
    found = quoted(call.value) if call.found else "not there"
    partition_events = found if call.operation == "get" else f"was {found} before"
    return f"{asked}: {partition_events} (p{call.partition}, {duration_text(call.took)})"


def migration_path_text(migration: MigrationStarted, name_of: NameOf) -> str:
    """Who comes to which replica index, and what becomes of the one there: ``n4 to 0, n1 goes to 2``."""
    came = f" from {migration.destination_current}" if migration.destination_current >= 0 else ""
    arrival = f"{name_of(migration.destination)}{came} to {migration.destination_new}"
    if migration.source is None:
        return arrival
    went = f" to {migration.source_new}" if migration.source_new >= 0 else ""
    return f"{arrival}, {name_of(migration.source)} goes{went}"


def change_text(current: int, new: int) -> str:
    """Describe a member's change of replica index."""
    return f"{current if current >= 0 else NOBODY_TEXT} → {new if new >= 0 else NOBODY_TEXT}"


def quoted(text: str) -> str:
    """Return a key or a value, cut short."""
    return repr(text if len(text) <= TEXT_SHOWN else text[: TEXT_SHOWN - 1] + "…")
