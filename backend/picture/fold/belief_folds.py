"""The effect of each kind of event on the belief of its member.

It is the part of the fold that needs nothing of other members.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from quarterdeck.backend.core.data import events as data
from quarterdeck.backend.core.events import Event
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.core.partitions import events as partition_events
from quarterdeck.backend.core.witnessed import events as witnessed
from quarterdeck.backend.picture.fold.belief import (
    BackupBehind,
    MemberBelief,
    Obstacle,
    Resolved,
    SearchPlan,
    Silence,
    Suspected,
    Unusable,
    VerdictOn,
    WaitsForLinks,
    WitnessConnection,
)
from quarterdeck.backend.picture.fold.member_data import measured
from quarterdeck.backend.picture.fold.migrations import LEADING_EVENTS, fold_leading
from quarterdeck.backend.picture.fold.table_belief import TableBelief

# Its list, its suspicions, its claims


MEMBERSHIP_EVENTS = (
    events.HeartbeatLate, events.SuspicionRaised, events.SuspicionCleared, events.MasterChanged, events.ClaimStarted,
    events.ClaimFinished, events.ClaimAbandoned, events.SettingsChanged, events.MemberStopped, events.JoinFailed,
)  # fmt: skip


def fold_membership(belief: MemberBelief, event: Event, at: int) -> None:
    """Change a belief by one of `MEMBERSHIP_EVENTS` that happened to its member."""
    match event:
        case events.HeartbeatLate(address):
            if event.over:
                belief.silences.pop(address, None)
            elif address not in belief.suspicions:
                belief.silences[address] = Silence(at - event.silence, event.timeout)
        case events.SuspicionRaised(suspect, uuid, reason):
            belief.suspicions[suspect] = Suspected(suspect, uuid, reason, at)
            belief.silences.pop(suspect, None)
        case events.SuspicionCleared(suspect):
            belief.suspicions.pop(suspect, None)
        case events.MasterChanged(master):
            belief.master = master
            settle_leading(belief)
        case events.ClaimStarted() | events.ClaimFinished() | events.ClaimAbandoned():
            belief.claiming = isinstance(event, events.ClaimStarted)
        case events.SettingsChanged(properties):
            belief.settings = {**(belief.settings or {}), **properties}
        case events.MemberStopped() | events.JoinFailed():
            belief.claiming = False
            if belief.status != "killed":
                belief.status = "stopped"
            settle_leading(belief)


# Partial disconnections, merges, the join list, the state of the cluster


HEALING_EVENTS = (
    events.DisconnectionReported, events.DisconnectionResolved, events.MemberHeldBack, events.JoinDelayed,
    events.MergeVerdict, events.NotMerging, events.MergeStarted, events.MergeAbandoned, events.MemberMerging,
    events.SearchPlanned, events.AddressesRemembered, events.AddressUnusable, events.JoinListChanged,
    events.ClusterStateChanged, events.ProtectionChanged,
)  # fmt: skip


def fold_healing(belief: MemberBelief, event: Event, at: int) -> None:
    """Change a belief by one of `HEALING_EVENTS` that happened to its member."""
    match event:
        case events.NotMerging(reason, remote):
            belief.obstacles.pop(remote, None)  # the latest stands last
            if reason:
                belief.obstacles[remote] = Obstacle(remote, reason, event.cause, event.silent)
        case events.MergeVerdict(remote, decision, rule, why):
            # What was in the way is so no more, unless it is recorded again.
            belief.verdicts[remote] = VerdictOn(remote, decision, rule, why, at)
            belief.obstacles.pop(remote, None)
            if decision != "local-merges":
                belief.obstacles[remote] = Obstacle(remote, why, "verdict")
        case events.DisconnectionReported(reporter, suspects):
            if suspects:
                belief.reports[reporter] = suspects
            else:  # it withdraws the report before
                belief.reports.pop(reporter, None)
        case events.DisconnectionResolved(keep, remove):
            belief.resolution = Resolved(keep, remove, event.exact, event.why, at)
            belief.reports.clear()
            for address in remove:  # they have to prove links before they come back; to whom is known when they ask
                belief.held_back.setdefault(address, ())
        case events.MemberHeldBack(address, missing):
            belief.held_back[address] = missing
        case events.JoinDelayed(master, missing):
            belief.delay = WaitsForLinks(master, missing, at + event.wait)
        case events.MergeStarted():
            belief.merging = event.target
            belief.obstacles.clear()
        case events.MergeAbandoned(target, reason):
            # No reason of the core's own follows before the next search, so this is the reason until then.
            belief.merging = None
            belief.obstacles[target] = Obstacle(target, reason, event.cause)
        case events.MemberMerging():  # the incarnation ends, and the process goes on
            belief.claiming, belief.merging = False, event.target
            if belief.status == "member":
                belief.status = "joining"
            settle_leading(belief)
        case events.SearchPlanned():
            belief.search = SearchPlan(at + event.wait, event.every)
        case events.AddressesRemembered(addresses):
            belief.remembered.update(dict.fromkeys(addresses, at))
            for address in event.forgotten:
                belief.remembered.pop(address, None)
        case events.AddressUnusable():  # until a member there is on the list
            belief.unusable[event.address] = Unusable(event.cause, event.reason)
        case events.JoinListChanged(addresses):
            belief.join_list, belief.join_list_edition = addresses, event.edition
            belief.join_list_author = event.author
        case events.ClusterStateChanged(state):
            if state != belief.cluster_state:
                belief.cluster_state, belief.cluster_state_since_us = state, at
        case events.ProtectionChanged():
            belief.operating, belief.needed = event.operating, event.needed


# Its table, its part in migrations, its backups, what it leads


PARTITION_EVENTS = (
    partition_events.TableChanged, partition_events.MigrationAccepted, partition_events.MigrationFinished,
    data.BackupOutOfStep, data.BackupInStep, data.DataMeasured, *LEADING_EVENTS,
)  # fmt: skip


def fold_partitions(belief: MemberBelief, event: Event, at: int) -> None:
    """Change a belief by one of `PARTITION_EVENTS` that happened to its member."""
    match event:
        case partition_events.TableChanged():
            change_table(belief, event, at)
        case partition_events.MigrationAccepted(migration_id):
            belief.taking_part[migration_id] = event
        case partition_events.MigrationFinished(migration_id):
            belief.taking_part.pop(migration_id, None)
        case data.DataMeasured():
            belief.data = measured(belief.data, event, at, by_map=bool(belief.witnessed_by))
        case data.BackupOutOfStep(partition):
            belief.out_of_step[partition] = BackupBehind(partition, event.owner, event.reason)
        case data.BackupInStep(partition):
            belief.out_of_step.pop(partition, None)
        case _:
            fold_leading(belief.leading, event, at)


def change_table(belief: MemberBelief, event: partition_events.TableChanged, at: int) -> None:
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


# What a witness reports


WITNESS_EVENTS = (
    witnessed.MemberWitnessed, witnessed.OwnersTold, witnessed.ConnectionChanged, witnessed.MemberMeasured,
)  # fmt: skip


def fold_witness(belief: MemberBelief, event: Event, at: int) -> None:
    """Change a belief by one of `WITNESS_EVENTS` that is about its member."""
    match event:
        case witnessed.MemberMeasured():
            belief.metrics, belief.metrics_us = event, at
        case witnessed.OwnersTold():
            _take_owners(belief, event, at)
        case witnessed.ConnectionChanged(state, reason):
            belief.connection = WitnessConnection(state, reason, at)
        case witnessed.MemberWitnessed(sources, tells):
            belief.witnessed_by, belief.untold = sources, witnessed.ASPECTS.difference(tells)


def _take_owners(belief: MemberBelief, event: witnessed.OwnersTold, at: int) -> None:
    """Take a table of owners: one holder for each partition, and no version. `MemberBelief.shows` excludes backups then."""
    if event.state_stamp != belief.state_stamp:
        belief.state_stamp, belief.stamp_since_us = event.state_stamp, at
    if belief.table is not None and (belief.table.digest, belief.table.partitions) == (event.digest, len(event.owners)):
        return  # only the stamp is new
    rows = tuple((partition, 0, place) for partition, place in enumerate(event.owners))
    table = partition_events.TableChanged(
        0, event.digest, len(event.owners), event.holders, rows, belief.uuid, "published"
    )
    change_table(belief, table, at)


FOLDS: dict[type, Callable[[MemberBelief, Any, int], None]] = {
    **dict.fromkeys(MEMBERSHIP_EVENTS, fold_membership),
    **dict.fromkeys(HEALING_EVENTS, fold_healing),
    **dict.fromkeys(PARTITION_EVENTS, fold_partitions),
    **dict.fromkeys(WITNESS_EVENTS, fold_witness),
}
"""The effect of a member's own event on its belief, by kind; called with belief, event and time."""


# What a new list, and a new incarnation, make of it


def settle_with_list(belief: MemberBelief) -> None:
    """Drop the parts that a new list makes void. A list ends every wait to be let in, and only masters judge."""
    belief.delay = None
    if belief.unusable:
        belief.unusable = {who: why for who, why in belief.unusable.items() if who not in belief.listed}
    if belief.held_back:
        belief.held_back = {who: missing for who, missing in belief.held_back.items() if who not in belief.listed}
    if belief.reports:
        listed = belief.listed
        still = {
            who: tuple(suspect for suspect in them if suspect in listed)
            for who, them in belief.reports.items()
            if who in listed
        }
        belief.reports = {who: them for who, them in still.items() if them}
    if not belief.is_master:
        belief.held_back.clear()
        belief.reports.clear()
        belief.obstacles.clear()
        belief.merging = None
        belief.search = None
    elif belief.obstacles:  # those that have come in are no other cluster any more
        belief.obstacles = {who: why for who, why in belief.obstacles.items() if who not in belief.listed}


def inherit(belief: MemberBelief, before: MemberBelief) -> None:
    """Take over the parts that outlive a merge: edits of the join list, remembered addresses, and the trouble of the journal."""
    belief.journal_failure = before.journal_failure
    belief.join_list_edition, belief.join_list_author = before.join_list_edition, before.join_list_author
    belief.remembered = dict(before.remembered)


def settle_leading(belief: MemberBelief) -> None:
    """End what only a living master does, after a new list, a new master, or the end of an incarnation.

    Only the members on a master's list wait to leave.
    """
    leading = belief.leading
    if not belief.is_master or belief.status not in ("member", "paused"):
        leading.void()
    elif leading.draining:
        leading.draining = {who: since_us for who, since_us in leading.draining.items() if who in belief.listed}


def inherit_witness(belief: MemberBelief, before: MemberBelief) -> None:
    """Know a new incarnation from the same sources as the one before, until they say otherwise."""
    belief.witnessed_by, belief.untold, belief.connection = before.witnessed_by, before.untold, before.connection
