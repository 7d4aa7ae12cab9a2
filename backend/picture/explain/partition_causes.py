"""What the events of partitions, migrations and data follow from, kind by kind (Avoid Data Loss on Migration)."""

from __future__ import annotations

from collections.abc import Mapping

from quarterdeck.backend.core.data import events as data_events
from quarterdeck.backend.core.events import Event
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.core.partitions import events as partition_events
from quarterdeck.backend.picture.explain.event_index import (
    Accepts,
    Causes,
    Effect,
    Rule,
    event_of,
    local_cause,
    message_cause,
)
from quarterdeck.backend.picture.explain.suspicion_causes import causes_of_silence

# The table


def _table_changed(effect: Effect, event: partition_events.TableChanged) -> Causes:
    if event.cause == "published":
        yield from _table_received(effect, event)
    elif event.cause == "migration":
        partitions = {row[0] for row in event.rows}
        learnt = effect.own(partition_events.MigrationFinished, lambda one: one.partition in partitions)
        decided = effect.own(partition_events.MigrationDecided, lambda one: one.partition in partitions)
        known = [record for record in (learnt, decided) if record is not None]
        if known:
            yield from local_cause(max(known, key=lambda record: record.seq), "that migration has ended so")
    elif event.cause == "repaired":
        yield from local_cause(effect.own(events.ListInstalled), "those who left hold nothing any more")
    elif event.cause == "recovered":
        yield from local_cause(
            effect.own(partition_events.TableRecoveryStarted), "all tables that are left were compared"
        )
    else:
        yield from local_cause(
            effect.own(events.ListInstalled), "these are the members to hold the partitions", deeper=False
        )


def _table_received(effect: Effect, event: partition_events.TableChanged) -> Causes:
    author = effect.event_index.label_of_incarnation(event.author)
    if not author:
        return

    def has_it(one: partition_events.TableChanged) -> bool:
        return one.table_version <= event.table_version and one.cause != "published"

    yield from message_cause(effect.of(author, partition_events.TableChanged, has_it), f"{author} published it")


# Plans


PLAN_CAUSES: Mapping[partition_events.PlanCause, tuple[type[Event], str, Accepts | None]] = {
    "member-leaves": (partition_events.DrainStarted, "a member wants to leave", None),
    "new-master": (partition_events.TableRecovered, "its table is the latest there is", None),
    "arranged": (partition_events.TableChanged, "they were arranged", lambda one: one.cause == "arranged"),
    "migration-failed": (partition_events.MigrationDecided, "that migration failed", lambda one: not one.committed),
    "state-changed": (events.ClusterStateChanged, "the state of the cluster changed", None),
    "members-changed": (events.ListInstalled, "other members hold data now", None),
}
"""What a plan is for, or why it is dropped: which event, why, and which of its kind."""


def _plan(effect: Effect, event: partition_events.MigrationsPlanned | partition_events.MigrationsCancelled) -> Causes:
    if event.cause in PLAN_CAUSES:
        kind, reason, accepts = PLAN_CAUSES[event.cause]
        found = effect.own(kind, accepts)
        yield from local_cause(found, reason)
        if found is None and event.cause == "new-master":
            yield from local_cause(effect.own(events.MasterChanged), "it leads now")


# One migration


def _started(effect: Effect, event: partition_events.MigrationStarted) -> Causes:
    yield from local_cause(
        effect.own(partition_events.MigrationsPlanned, lambda one: bool(one.planned)), "it is part of the plan"
    )


def _copied(effect: Effect, event: partition_events.MigrationCopied) -> Causes:
    accepted = effect.step(partition_events.MigrationAccepted, lambda one: one.endpoint == "destination")
    yield from message_cause(accepted, "the destination waits for the data")
    if accepted is None:
        yield from message_cause(effect.step(partition_events.MigrationStarted), "the master began it")


def _decided(effect: Effect, event: partition_events.MigrationDecided) -> Causes:
    if event.committed:
        done = effect.step(partition_events.MigrationFinished, lambda one: one.endpoint == "destination")
        if done is not None:
            yield from message_cause(done, "the destination has committed")
            return
        yield from message_cause(
            effect.step(partition_events.MigrationCommitting), "the destination was asked to commit"
        )
        return
    yield from message_cause(effect.step(partition_events.MigrationRejected), "it could not take part")
    begun = effect.step(partition_events.MigrationStarted)
    if begun is not None and isinstance(begun.event, partition_events.MigrationStarted):
        parties = {begun.event.destination, begun.event.owner}
        gone = effect.own(events.MemberRemoved, lambda one: one.address in parties)
        if gone is not None and gone.seq > begun.seq:
            yield from local_cause(gone, "one that took part is gone")
        yield from local_cause(begun, "it had begun")


def _finished(effect: Effect, event: partition_events.MigrationFinished) -> Causes:
    decided = effect.step(partition_events.MigrationDecided)
    if decided is not None:
        yield from message_cause(decided, "the master decided so")
        return

    def settles(one: partition_events.TableRecovered) -> bool:
        return event.migration_id in one.committed_ids or event.migration_id in one.rolled_back_ids

    recovered = effect.anywhere(partition_events.TableRecovered, settles)
    if recovered is not None:
        yield from message_cause(recovered, "the new master settled it")
        return
    yield from message_cause(effect.step(partition_events.MigrationCommitting), "the master asked it to commit")


def _evicted(effect: Effect, event: partition_events.CompletedEvicted) -> Causes:
    wanted = set(event.migration_ids)
    yield from local_cause(
        effect.own(partition_events.MigrationDecided, lambda one: one.migration_id in wanted), "that had ended"
    )


# Data


def _call_finished(effect: Effect, event: data_events.CallFinished) -> Causes:
    yield from local_cause(
        effect.own(data_events.CallStarted, lambda one: one.call == event.call), "a client asked for it"
    )
    if event.problem:
        protection = effect.own(events.ProtectionChanged)
        if protection is not None and not event_of(events.ProtectionChanged, protection).operating:
            yield from local_cause(protection, "it sees too few members")
    if event.operation == "get" and not event.found and not event.problem:
        yield from _lost_write(effect, event)


def _lost_write(effect: Effect, event: data_events.CallFinished) -> Causes:
    """Yield what was written under the key, if that was not taken out again, and the loss of its partition."""

    def same_key(one: data_events.CallFinished) -> bool:
        same = (one.map, one.key) == (event.map, event.key)
        return same and one.operation in ("put", "remove") and not one.problem

    written = effect.anywhere(data_events.CallFinished, same_key)
    lost = effect.anywhere(partition_events.PartitionLost, lambda one: one.partition == event.partition)
    if written is not None and event_of(data_events.CallFinished, written).operation == "remove":
        yield from local_cause(written, "the key was taken out")
        return
    if lost is not None and (written is None or lost.at >= written.at):
        yield from local_cause(lost, f"p{event.partition} was lost with all that stood in it")
    yield from local_cause(written, "the key had been written", deeper=False)


def _out_of_step(effect: Effect, event: data_events.BackupOutOfStep) -> Causes:
    yield from causes_of_silence(effect, effect.name(event.owner), "", "unknown")
    partition = event.partition
    changed = effect.own(partition_events.TableChanged, lambda one: any(row[0] == partition for row in one.rows))
    yield from local_cause(changed, "the partition has other holders", deeper=False)


PARTITION_RULES: Mapping[type, Rule] = {
    partition_events.TableChanged: _table_changed,
    partition_events.MigrationsPlanned: _plan,
    partition_events.MigrationsCancelled: _plan,
    partition_events.MigrationStarted: _started,
    partition_events.MigrationCopied: _copied,
    partition_events.MigrationDecided: _decided,
    partition_events.MigrationFinished: _finished,
    partition_events.CompletedEvicted: _evicted,
    data_events.CallFinished: _call_finished,
    data_events.BackupOutOfStep: _out_of_step,
}
"""By class of events, what finds the causes of one."""
