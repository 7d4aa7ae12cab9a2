"""What healing follows from, kind by kind: partial disconnections, merges, edits of join lists, the state of the cluster.

Partial Member Disconnection Resolution and Split-brain Recovery Improvements; see `causes`.
"""

from __future__ import annotations

from collections.abc import Mapping

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.link_condition import LinkChanged
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.picture.explain.event_index import (
    Causes,
    Effect,
    Rule,
    event_of,
    local_cause,
    message_cause,
    request_cause,
)

# Partial disconnections


def _reported(effect: Effect, event: events.DisconnectionReported) -> Causes:
    reporter = effect.name(event.reporter)
    for suspect in event.suspects:
        raised = effect.of(reporter, events.SuspicionRaised, suspect=suspect)
        yield from message_cause(raised, f"{reporter} suspects {effect.name(suspect)}")
    if not event.suspects:
        yield from message_cause(
            effect.of(reporter, events.SuspicionCleared), f"{reporter} suspects no member any more"
        )


# Merges


def _verdict(effect: Effect, event: events.MergeVerdict) -> Causes:
    theirs = effect.at(event.remote, events.ListInstalled)
    there = _listed(theirs) or {event.remote}
    edited = effect.own(events.JoinListChanged, lambda edit: not there.isdisjoint(edit.addresses))
    yield from local_cause(edited, "its join list names a member there")
    mine = effect.own(events.ListInstalled)
    here = {effect.record.member, *map(effect.name, _listed(mine))}
    healed = _healed_between(effect, here, set(map(effect.name, there)))
    if healed is not None and (mine is None or theirs is None or healed.at >= max(mine.at, theirs.at)):
        yield from local_cause(healed, "the two sides reach one another again")
    yield from message_cause(
        theirs, f"{effect.name(event.remote)} leads a cluster of its own", deeper=edited is healed is None
    )


def _listed(installed: Record | None) -> set[Address]:
    if installed is None:
        return set()
    return {member.address for member in event_of(events.ListInstalled, installed).members}


def _healed_between(effect: Effect, here: set[str], there: set[str]) -> Record | None:

    def mended(link: LinkChanged) -> bool:
        joins = (link.source in here and link.target in there) or (link.source in there and link.target in here)
        return joins and link.is_plain

    return effect.anywhere(LinkChanged, mended)


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
"""What an operator asked for longer ago has led to nothing, or to something else."""


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


HEALING_RULES: Mapping[type, Rule] = {
    events.DisconnectionReported: _reported,
    events.MergeVerdict: _verdict,
    events.MemberMerging: _member_merging,
    events.JoinListChanged: _join_list_changed,
    events.ClusterStateChanged: _state_changed,
}
"""By class of events, what finds the causes of one."""
