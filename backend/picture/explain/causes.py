"""Why something happened: from an event back to what brought it about, link by link, each with its reason.

A record of our own members names the one that brought it about. What no member knows, such as what was done to the network,
is found by rules, and so are the causes in logs of other members and in journals of form 2 and before, whose records name
few. A rule draws a link only where two records name the same thing: a list, a claim, a suspect, a link of the network. The
rules of data and of healing (partial disconnections, merges, edits of join lists, the state of the cluster) are here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import permutations
from typing import NamedTuple

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.causes import RecordId
from quarterdeck.backend.core.data import events as data_events
from quarterdeck.backend.core.events import OperatorAsked, Record
from quarterdeck.backend.core.link_condition import LinkChanged
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.core.partitions import events as partition_events
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.picture.events.catalogue import ROWS
from quarterdeck.backend.picture.explain.event_index import (
    Causes,
    DirectCause,
    Effect,
    EventIndex,
    Rule,
    event_of,
    identity,
    local_cause,
    message_cause,
    request_cause,
)
from quarterdeck.backend.picture.explain.membership_causes import MEMBERSHIP_RULES, causes_of_silence
from quarterdeck.backend.picture.text.formatting import NameOf


def _call_finished(effect: Effect, event: data_events.CallFinished) -> Causes:
    yield from local_cause(effect.own(data_events.CallStarted, call=event.call), "a client asked for it")
    if event.problem:
        protection = effect.own(events.ProtectionChanged)
        if protection is not None and not event_of(events.ProtectionChanged, protection).operating:
            yield from local_cause(protection, "it sees too few members")
    if event.operation == "get" and not event.found and not event.problem:
        yield from _lost_write(effect, event)


def _lost_write(effect: Effect, event: data_events.CallFinished) -> Causes:
    """Yield the writes under the key that no remove undid, and the loss of its partition."""
    done = ("put", "remove")
    written = effect.anywhere(
        data_events.CallFinished, lambda call: call.operation in done and not call.problem, map=event.map, key=event.key
    )
    lost = effect.anywhere(partition_events.PartitionLost, partition=event.partition)
    if written is not None and event_of(data_events.CallFinished, written).operation == "remove":
        yield from local_cause(written, "the key was taken out")
        return
    if lost is not None and (written is None or lost.at >= written.at):
        yield from local_cause(lost, f"p{event.partition} was lost with all that stood in it")
    yield from local_cause(written, "the key had been written", deeper=False)


def _out_of_step(effect: Effect, event: data_events.BackupOutOfStep) -> Causes:
    yield from causes_of_silence(effect, effect.name(event.owner), "", "unknown")
    partition = event.partition
    changed = effect.own(partition_events.TableChanged, lambda table: any(row[0] == partition for row in table.rows))
    yield from local_cause(changed, "the partition has other holders", deeper=False)


# Partial disconnections


def _reported(effect: Effect, event: events.DisconnectionReported) -> Causes:
    reporter = effect.name(event.reporter)
    for suspect in event.suspects:
        raised = effect.of(reporter, events.SuspicionRaised, suspect=suspect)
        yield from message_cause(raised, f"{reporter} suspects {effect.name(suspect)}")
    if not event.suspects:
        cleared = effect.of(reporter, events.SuspicionCleared)
        yield from message_cause(cleared, f"{reporter} suspects no member any more")


# Merges


def _verdict(effect: Effect, event: events.MergeVerdict) -> Causes:
    theirs = effect.at(event.remote, events.ListInstalled)
    there = _listed(theirs) or {event.remote}
    edited = effect.own(events.JoinListChanged, lambda edit: not there.isdisjoint(edit.addresses))
    yield from local_cause(edited, "its join list names a member there")
    mine = effect.own(events.ListInstalled)
    sides = {effect.record.member, *map(effect.name, _listed(mine))}, set(map(effect.name, there))

    def mended(link: LinkChanged) -> bool:
        return link.is_plain and any(link.source in near and link.target in far for near, far in permutations(sides))

    healed = effect.anywhere(LinkChanged, mended)
    if healed is not None and (mine is None or theirs is None or healed.at >= max(mine.at, theirs.at)):
        yield from local_cause(healed, "the two sides reach one another again")
    yield from message_cause(
        theirs, f"{effect.name(event.remote)} leads a cluster of its own", deeper=edited is healed is None
    )


def _listed(installed: Record | None) -> set[Address]:
    if installed is None:
        return set()
    return {member.address for member in event_of(events.ListInstalled, installed).members}


def _member_merging(effect: Effect, event: events.MemberMerging) -> Causes:
    own = effect.own(events.MergeStarted, target=event.target)
    yield from local_cause(own, "it leads its cluster there")
    if own is None:
        led = effect.anywhere(
            events.MergeStarted, lambda merge: any(map(effect.is_own, merge.merging)), target=event.target
        )
        yield from message_cause(led, "its master leads its cluster there")


def _join_list_changed(effect: Effect, event: events.JoinListChanged) -> Causes:
    if effect.is_own(event.author):
        label, since_us = effect.record.member, effect.record.at - REQUEST_US
        yield from request_cause(effect, "set-join-list", target=label, since_us=since_us)
        return
    author = effect.name(event.author)
    edited = effect.of(author, events.JoinListChanged, edition=event.edition)
    yield from message_cause(edited, f"the edit was handed to {author}")


# The state of the cluster, and what was asked for

REQUEST_US = 60 * SECOND_US
"""The age of an operator's request beyond which an event does not follow from it."""


def _state_changed(effect: Effect, event: events.ClusterStateChanged) -> Causes:
    leads = effect.own(events.MasterChanged)
    master = effect.name(event_of(events.MasterChanged, leads).master) if leads is not None else ""
    if master == effect.record.member:
        if event.state == "FROZEN":
            yield from local_cause(effect.own(events.MergeStarted), "it is frozen for the merge")
        elif event.state == "ACTIVE":
            yield from local_cause(effect.own(events.MergeAbandoned), "the merge that it was frozen for is given up")
        yield from request_cause(effect, "change-state", since_us=effect.record.at - REQUEST_US)
        return
    decided = effect.of(master, events.ClusterStateChanged, state=event.state)
    yield from message_cause(decided, f"{master} decided it")
    if decided is None and event.state == "FROZEN":
        yield from message_cause(effect.of(master, events.MergeStarted), f"{master} freezes its cluster for the merge")


RULES: Mapping[type, Rule] = {
    **MEMBERSHIP_RULES,
    data_events.CallFinished: _call_finished,
    data_events.BackupOutOfStep: _out_of_step,
    events.DisconnectionReported: _reported,
    events.MergeVerdict: _verdict,
    events.MemberMerging: _member_merging,
    events.JoinListChanged: _join_list_changed,
    events.ClusterStateChanged: _state_changed,
}
"""By class of events, the function that finds the causes of one."""

MOST_CAUSES = 200
"""The number of links of one chain; links behind them are left out."""


class Cause(NamedTuple):
    """One link of the chain behind an event: `effect` happened because of `record`."""

    record: Record
    reason: str
    effect: Record
    depth: int
    """1 for the direct causes of the event that was asked about."""
    message: bool
    """Whether it took a message from one member to another."""


def causes(records: Iterable[Record] | EventIndex, record: Record, name_of: NameOf = str) -> tuple[Cause, ...]:
    """Return all that led to `record`, as far as `records` reach: each cause once, after what it explains.

    Empty when nothing that was recorded brought it about, or when `record` is not among the records.
    """
    event_index = records if isinstance(records, EventIndex) else EventIndex(records, name_of)
    found: list[Cause] = []
    seen: set[RecordId] = {identity(record)}
    pending = [(record, 1, because) for because in reversed(direct_causes(event_index, record))]
    while pending and len(found) < MOST_CAUSES:
        effect, depth, because = pending.pop()
        if identity(because.record) in seen:
            continue
        seen.add(identity(because.record))
        found.append(Cause(because.record, because.reason, effect, depth, because.message))
        if because.deeper:
            pending += [
                (because.record, depth + 1, cause) for cause in reversed(direct_causes(event_index, because.record))
            ]
    return tuple(found)


def direct_causes(event_index: EventIndex, record: Record) -> list[DirectCause]:
    """Return the direct causes of `record`, the clearest first."""
    place = event_index.place_of(record)
    if place is None:
        return []
    effect, rule = Effect(event_index, place, record), RULES.get(type(record.event))
    found = [*rule(effect, record.event)] if rule is not None else []
    named = event_index.find(record.because)
    if named is None:
        found = found or [*followed(effect)]
    elif all(cause.record is not named for cause in found):
        found.insert(0, _named_cause(effect, named))
    return [cause._replace(message=cause.message and cause.record.member != record.member) for cause in found]


def _named_cause(effect: Effect, named: Record) -> DirectCause:
    """Return the record that the effect names, with the reason that the row of the effect has for it, if it has one."""
    if isinstance(named.event, OperatorAsked):
        return DirectCause(named, f"{named.event.remote} asked for it", deeper=False)
    known = next((cause for cause in ROWS[type(effect.record.event)].follows if cause.kind is type(named.event)), None)
    if known is not None:
        return DirectCause(named, known.reason, True, known.deeper)
    is_own = named.member == effect.record.member
    return DirectCause(named, "that led to it" if is_own else f"{named.member} let it know", True)


def followed(effect: Effect) -> Causes:
    """Yield the causes that its row gives for an event that names no cause."""
    event = effect.record.event
    for kind, reason, deeper, same in ROWS[type(event)].follows:
        if same == "migration_id":
            found = effect.step(kind)
        else:
            found = effect.own(kind, **({same: getattr(event, same)} if same else {}))
        yield from message_cause(found, reason, deeper=deeper)
