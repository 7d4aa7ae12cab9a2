"""Events of partitions, migrations and data as one line of plain English each. Those that come by the thousand are terse."""

from __future__ import annotations

from quarterdeck.backend.core.data import events as data
from quarterdeck.backend.core.data.events import DataEvent
from quarterdeck.backend.core.partitions import events as told
from quarterdeck.backend.core.partitions.events import MigrationStarted, PartitionEvent
from quarterdeck.backend.picture.amounts import bytes_text, counted, duration_text
from quarterdeck.backend.picture.naming import NameOf, names_text

TEXT_SHOWN = 60
"""Letters of a key or a value that a line shows."""

NOBODY_TEXT = "–"


def tell_partition_or_data(event: PartitionEvent | DataEvent, name_of: NameOf) -> str:
    """What happened, without when and to whom."""
    match event:
        case told.TableChanged(version, _, _, holders, rows, _, cause):
            if len(rows) == 1:
                partition, _, *places = rows[0]
                held = ", ".join(name_of(holders[place].address) if place >= 0 else NOBODY_TEXT for place in places)
                return f"has table v{version}: p{partition} is {held} ({cause})"
            return f"has table v{version}: {counted(len(rows), 'partition')} changed ({cause})"
        case told.PartitionLost(partition, lost_backups):
            if lost_backups >= told.ALL_LOST:
                return f"loses p{partition}: no replica is left, it begins empty"
            return f"p{partition} has lost its owner" + (f" and backups up to {lost_backups}" if lost_backups else "")
        case told.TableRecoveryStarted(asked):
            return f"recovers the table: asks {names_text(asked, name_of)} for theirs"
        case told.TableRecovered(version, answered, committed, rolled_back):
            answers = ", ".join(f"{name_of(who)} v{theirs}" for who, theirs in answered.items()) or "nobody"
            settled = f"; of migrations under way {len(committed)} committed, {len(rolled_back)} rolled back"
            return f"has recovered the table, v{version}, from answers of {answers}" + (
                settled if committed or rolled_back else ""
            )
        case told.CompletedEvicted(migration_ids):
            return f"all members know the end of {counted(len(migration_ids), 'migration')}"
        case told.DrainStarted(address):
            return f"moves all data off {name_of(address)}, which wants to leave"
        case told.DrainFinished(address, reason):
            return f"lets {name_of(address)} leave: {reason or 'nothing is left on it'}"
        case _:
            return _tell_migration(event, name_of)


def _tell_migration(event: PartitionEvent | DataEvent, name_of: NameOf) -> str:
    match event:
        case told.MigrationsPlanned(planned, moves, lower_bound, why):
            if not planned:
                return f"has nothing to migrate: {why}"
            clears = sum(one.type == "CLEAR" for one in planned)
            cleared = f", {counted(clears, 'place')} to clear" if clears else ""
            copies = f"{counted(moves, 'replica')} to copy, {lower_bound} places to fill at least"
            return f"plans {counted(len(planned) - clears, 'migration')} ({copies}{cleared}): {why}"
        case told.MigrationsCancelled(remaining, reason):
            return f"drops {counted(remaining, 'planned migration')}: {reason}"
        case MigrationStarted(_, partition, kind):
            lowers = ", unavoidably with a replica less meanwhile" if event.unavoidable else ""
            return f"begins p{partition} {kind}: {way_text(event, name_of)}{lowers}"
        case told.MigrationAccepted(_, partition, endpoint, current, new):
            return f"takes part in p{partition} as {endpoint} {change_text(current, new)}"
        case told.MigrationRejected(_, partition, endpoint, reason):
            return f"takes no part in p{partition} as {endpoint}: {reason}"
        case told.MigrationCopied(_, partition, chunks, size, took):
            return f"copied p{partition}: {bytes_text(size)}, {counted(chunks, 'chunk')}, {duration_text(took)}"
        case told.MigrationCommitting(_, partition):
            return f"asks for the commit of p{partition}"
        case told.MigrationDecided(_, partition, committed, version, reason):
            decided = "commits" if committed else "rolls back"
            return f"{decided} p{partition}, now v{version}" + (f": {reason}" if reason else "")
        case told.MigrationFinished(_, partition, endpoint, committed, current, new):
            ended = change_text(current, new) if committed else "without a change"
            return f"is done with p{partition} as {endpoint} {ended}"
        case _:
            return _tell_data(event, name_of)


def _tell_data(event: PartitionEvent | DataEvent, name_of: NameOf) -> str:
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
        case _:
            return type(event).__name__  # an event newer than this reader


def call_text(call: data.CallFinished) -> str:
    """How a call ended: ``put orders k1: was 'a' before (p17, 3 ms)``."""
    asked = f"{call.operation} {call.map} {call.key}"
    if call.problem:
        return f"{asked} failed: {call.problem}; {'nothing was done' if call.untouched else 'it may have been done'}"
    found = quoted(call.value) if call.found else "not there"
    told = found if call.operation == "get" else f"was {found} before"
    return f"{asked}: {told} (p{call.partition}, {duration_text(call.took)})"


def way_text(migration: MigrationStarted, name_of: NameOf) -> str:
    """Who comes to which replica index, and what becomes of the one there: ``n4 to 0, n1 goes to 2``."""
    came = f" from {migration.destination_current}" if migration.destination_current >= 0 else ""
    arrival = f"{name_of(migration.destination)}{came} to {migration.destination_new}"
    if migration.source is None:
        return arrival
    went = f" to {migration.source_new}" if migration.source_new >= 0 else ""
    return f"{arrival}, {name_of(migration.source)} goes{went}"


def change_text(current: int, new: int) -> str:
    """A member's change of replica index."""
    return f"{current if current >= 0 else NOBODY_TEXT} → {new if new >= 0 else NOBODY_TEXT}"


def quoted(text: str) -> str:
    """A key or a value, cut short."""
    return repr(text if len(text) <= TEXT_SHOWN else text[: TEXT_SHOWN - 1] + "…")
