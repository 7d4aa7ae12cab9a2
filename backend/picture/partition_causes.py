"""What the events of partitions, migrations and data follow from, kind by kind (seed 004)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from quarterdeck.backend.core import events
from quarterdeck.backend.core.data.events import (
    BackupInStep,
    BackupOutOfStep,
    CallFinished,
    CallStarted,
    EntriesMerged,
)
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.partitions import events as told
from quarterdeck.backend.picture.event_trail import Because, Effect, Rule, event_of, first, heard, since
from quarterdeck.backend.picture.silence_causes import silenced

# The table


def _table_changed(effect: Effect, event: told.TableChanged) -> Iterator[Because]:
    if event.cause == "published":
        yield from _table_received(effect, event)
    elif event.cause == "migration":
        partitions = {row[0] for row in event.rows}
        learnt = effect.own(told.MigrationFinished, lambda one: one.partition in partitions)
        decided = effect.own(told.MigrationDecided, lambda one: one.partition in partitions)
        known = [one for one in (learnt, decided) if one is not None]
        if known:
            yield from since(max(known, key=lambda one: one.seq), "that migration has ended so")
    elif event.cause == "repaired":
        yield from since(effect.own(events.ListInstalled), "those who left hold nothing any more")
    elif event.cause == "recovered":
        yield from since(effect.own(told.TableRecoveryStarted), "all tables that are left were compared")
    else:
        yield from since(effect.own(events.ListInstalled), "these are the members to hold the partitions", deeper=False)


def _table_received(effect: Effect, event: told.TableChanged) -> Iterator[Because]:
    author = effect.trail.label_of_life(event.author)
    if not author:
        return

    def has_it(one: told.TableChanged) -> bool:
        return one.table_version <= event.table_version and one.cause != "published"

    yield from heard(effect.of(author, told.TableChanged, has_it), f"{author} published it")


def _partition_lost(effect: Effect, event: told.PartitionLost) -> Iterator[Because]:
    yield from since(effect.own(events.ListInstalled), "who held it is on the list no more")


def _recovery_started(effect: Effect, event: told.TableRecoveryStarted) -> Iterator[Because]:
    yield from since(effect.own(events.ClaimFinished), "it is master now, and migrations may have been under way")


def _recovered(effect: Effect, event: told.TableRecovered) -> Iterator[Because]:
    yield from since(effect.own(told.TableRecoveryStarted), "everybody has answered or left")


# Plans


def _planned(effect: Effect, event: told.MigrationsPlanned) -> Iterator[Because]:
    return _what_the_plan_is_for(effect, event.why)


def _cancelled(effect: Effect, event: told.MigrationsCancelled) -> Iterator[Because]:
    return _what_the_plan_is_for(effect, event.reason)


def _what_the_plan_is_for(effect: Effect, reason: str) -> Iterator[Because]:
    if reason.endswith("wants to leave"):
        yield from since(effect.own(told.DrainStarted), "a member wants to leave")
    elif reason == "a new master leads":
        yield from since(effect.own(told.TableRecovered), "its table is the latest there is")
        if effect.own(told.TableRecovered) is None:
            yield from since(effect.own(events.MasterChanged), "it leads now")
    elif reason == "the partitions are arranged":
        yield from since(effect.own(told.TableChanged, lambda one: one.cause == "arranged"), "they were arranged")
    elif reason.startswith("a migration failed"):
        yield from since(effect.own(told.MigrationDecided, lambda one: not one.committed), "that migration failed")
    elif reason.startswith("the cluster is "):
        yield from since(effect.own(events.ClusterStateChanged), "the state of the cluster changed")
    elif reason.endswith(("that hold data", "joined", "left")):
        yield from since(effect.own(events.ListInstalled), "other members hold data now")


def _drain_finished(effect: Effect, event: told.DrainFinished) -> Iterator[Because]:
    yield from since(effect.own(told.DrainStarted, lambda one: one.address == event.address), "it wanted to leave")


# One migration


def _started(effect: Effect, event: told.MigrationStarted) -> Iterator[Because]:
    yield from since(effect.own(told.MigrationsPlanned, lambda one: bool(one.planned)), "it is part of the plan")


def _step(effect: Effect, event: Any, kind: type, accepts: Callable[[Any], bool] | None = None) -> Record | None:
    """What was said before of the same migration, of a certain kind."""
    said = (one for one in effect.trail.of_migration(event.migration_id, effect.place) if isinstance(one.event, kind))
    return first(said, accepts)


def _migration(effect: Effect, event: Any, kind: type, reason: str) -> Iterator[Because]:
    yield from heard(_step(effect, event, kind), reason)


def _taken_part(effect: Effect, event: told.MigrationAccepted | told.MigrationRejected) -> Iterator[Because]:
    return _migration(effect, event, told.MigrationStarted, "the master began it")


def _copied(effect: Effect, event: told.MigrationCopied) -> Iterator[Because]:
    for accepted in effect.trail.of_migration(event.migration_id, effect.place):
        said = accepted.event
        if isinstance(said, told.MigrationAccepted) and said.endpoint == "destination":
            yield from heard(accepted, "the destination waits for the data")
            return
    yield from _migration(effect, event, told.MigrationStarted, "the master began it")


def _committing(effect: Effect, event: told.MigrationCommitting) -> Iterator[Because]:
    return _migration(effect, event, told.MigrationCopied, "the destination has all the data")


def _decided(effect: Effect, event: told.MigrationDecided) -> Iterator[Because]:
    if event.committed:
        done = _step(effect, event, told.MigrationFinished, lambda one: one.endpoint == "destination")
        if done is not None:
            yield from heard(done, "the destination has committed")
            return
        yield from _migration(effect, event, told.MigrationCommitting, "the destination was asked to commit")
        return
    yield from _migration(effect, event, told.MigrationRejected, "it could not take part")
    begun = _step(effect, event, told.MigrationStarted)
    if begun is not None and isinstance(begun.event, told.MigrationStarted):
        parties = {begun.event.destination, begun.event.owner}
        gone = effect.own(events.MemberRemoved, lambda one: one.address in parties)
        if gone is not None and gone.seq > begun.seq:
            yield from since(gone, "one that took part is gone")
        yield from since(begun, "it had begun")


def _finished(effect: Effect, event: told.MigrationFinished) -> Iterator[Because]:
    decided = _step(effect, event, told.MigrationDecided)
    if decided is not None:
        yield from heard(decided, "the master decided so")
        return

    def settles(one: told.TableRecovered) -> bool:
        return event.migration_id in one.committed_ids or event.migration_id in one.rolled_back_ids

    recovered = effect.anywhere(told.TableRecovered, settles)
    if recovered is not None:
        yield from heard(recovered, "the new master settled it")
        return
    yield from _migration(effect, event, told.MigrationCommitting, "the master asked it to commit")


def _evicted(effect: Effect, event: told.CompletedEvicted) -> Iterator[Because]:
    wanted = set(event.migration_ids)
    yield from since(effect.own(told.MigrationDecided, lambda one: one.migration_id in wanted), "that had ended")


# Data


def _call_finished(effect: Effect, event: CallFinished) -> Iterator[Because]:
    yield from since(effect.own(CallStarted, lambda one: one.call == event.call), "a client asked for it")
    if event.problem:
        protection = effect.own(events.ProtectionChanged)
        if protection is not None and not event_of(events.ProtectionChanged, protection).operating:
            yield from since(protection, "it sees too few members")
    if event.operation == "get" and not event.found and not event.problem:
        yield from _lost_write(effect, event)


def _lost_write(effect: Effect, event: CallFinished) -> Iterator[Because]:
    """What was written under the key, if that was not taken out again, and the loss of its partition."""

    def same_key(one: CallFinished) -> bool:
        same = (one.map, one.key) == (event.map, event.key)
        return same and one.operation in ("put", "remove") and not one.problem

    written = effect.anywhere(CallFinished, same_key)
    lost = effect.anywhere(told.PartitionLost, lambda one: one.partition == event.partition)
    if written is not None and event_of(CallFinished, written).operation == "remove":
        yield from since(written, "the key was taken out")
        return
    if lost is not None and (written is None or lost.at >= written.at):
        yield from since(lost, f"p{event.partition} was lost with all that stood in it")
    yield from since(written, "the key had been written", deeper=False)


def _out_of_step(effect: Effect, event: BackupOutOfStep) -> Iterator[Because]:
    yield from silenced(effect, effect.name(event.owner), "", event.reason)
    partition = event.partition
    changed = effect.own(told.TableChanged, lambda one: any(row[0] == partition for row in one.rows))
    yield from since(changed, "the partition has other holders", deeper=False)


def _in_step(effect: Effect, event: BackupInStep) -> Iterator[Because]:
    yield from since(effect.own(BackupOutOfStep, lambda one: one.partition == event.partition), "it had asked for it")


def _merged(effect: Effect, event: EntriesMerged) -> Iterator[Because]:
    yield from since(effect.own(events.MemberStarted), "it came here in a merge")


PARTITION_RULES: Mapping[type, Rule] = {
    told.TableChanged: _table_changed,
    told.PartitionLost: _partition_lost,
    told.TableRecoveryStarted: _recovery_started,
    told.TableRecovered: _recovered,
    told.MigrationsPlanned: _planned,
    told.MigrationsCancelled: _cancelled,
    told.DrainFinished: _drain_finished,
    told.MigrationStarted: _started,
    told.MigrationAccepted: _taken_part,
    told.MigrationRejected: _taken_part,
    told.MigrationCopied: _copied,
    told.MigrationCommitting: _committing,
    told.MigrationDecided: _decided,
    told.MigrationFinished: _finished,
    told.CompletedEvicted: _evicted,
    CallFinished: _call_finished,
    BackupOutOfStep: _out_of_step,
    BackupInStep: _in_step,
    EntriesMerged: _merged,
}
"""What follows from what, by kind of event."""
