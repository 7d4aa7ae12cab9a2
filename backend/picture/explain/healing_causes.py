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


def _held_back(effect: Effect, event: events.MemberHeldBack) -> Causes:
    label = effect.name(event.address)
    settled = effect.own(events.DisconnectionResolved, lambda one: event.address in one.remove)
    yield from local_cause(settled, f"{label} had to go for links that were down")
    yield from message_cause(effect.of(label, events.MasterChanged), f"{label} wants in", deeper=settled is None)


def _join_delayed(effect: Effect, event: events.JoinDelayed) -> Causes:
    held = effect.at(event.master, events.MemberHeldBack, lambda one: effect.is_own(one.address))
    yield from message_cause(held, f"{effect.name(event.master)} holds it back")


def _reported(effect: Effect, event: events.DisconnectionReported) -> Causes:
    reporter = effect.name(event.reporter)
    for suspect in event.suspects:
        accused = effect.event_index.by(reporter, events.SuspicionRaised, effect.place)
        raised = next(
            (raised for raised in accused if event_of(events.SuspicionRaised, raised).suspect == suspect), None
        )
        yield from message_cause(raised, f"{reporter} suspects {effect.name(suspect)}")
    if not event.suspects:
        yield from message_cause(
            effect.of(reporter, events.SuspicionCleared), f"{reporter} suspects no member any more"
        )


def _resolved(effect: Effect, event: events.DisconnectionResolved) -> Causes:
    before = effect.own(events.DisconnectionResolved)
    reporters: set[Address] = set()
    for report in effect.all_own(events.DisconnectionReported):
        if before is not None and report.seq < before.seq:
            return
        said = event_of(events.DisconnectionReported, report)
        if said.reporter not in reporters and said.suspects:
            concerns = said.reporter in event.remove or any(suspect in event.remove for suspect in said.suspects)
            if concerns:
                yield from local_cause(report, f"{effect.name(said.reporter)} cannot reach some of them")
        reporters.add(said.reporter)


# Merges


def _verdict(effect: Effect, event: events.MergeVerdict) -> Causes:
    theirs = effect.at(event.remote, events.ListInstalled)
    there = _listed(theirs) or {event.remote}
    edited = effect.own(events.JoinListChanged, lambda one: not there.isdisjoint(one.addresses))
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


def _not_merging(effect: Effect, event: events.NotMerging) -> Causes:
    if event.cause == "verdict":
        verdict = effect.own(events.MergeVerdict, lambda one: one.remote == event.remote)
        yield from local_cause(verdict, "that is what it found")
    elif event.remote is not None:
        abandoned = effect.own(events.MergeAbandoned, lambda one: one.target == event.remote)
        if event.cause != "links-missing":  # for which it gives up before it begins
            yield from local_cause(abandoned, "it had begun, and gave up")
    elif not event.reason:
        before = effect.own(events.NotMerging)
        edited = effect.own(events.JoinListChanged, lambda one: one.edition > 0)
        if before is not None and edited is not None and edited.at >= before.at:
            yield from local_cause(edited, "its join list was edited")


def _merge_started(effect: Effect, event: events.MergeStarted) -> Causes:
    decided = effect.own(events.MergeVerdict, lambda one: one.remote == event.target and one.decision == "local-merges")
    yield from local_cause(decided, "it is the one that has to go")
    theirs = effect.at(
        event.target, events.MergeVerdict, lambda one: effect.is_own(one.remote) and one.decision == "remote-merges"
    )
    yield from message_cause(theirs, f"{effect.name(event.target)} found the same", deeper=decided is None)


def _member_merging(effect: Effect, event: events.MemberMerging) -> Causes:
    own = effect.own(events.MergeStarted, lambda one: one.target == event.target)
    yield from local_cause(own, "it leads its cluster there")
    if own is None:
        led = effect.anywhere(
            events.MergeStarted, lambda one: one.target == event.target and any(map(effect.is_own, one.merging))
        )
        yield from message_cause(led, "its master leads its cluster there")


def _join_list_changed(effect: Effect, event: events.JoinListChanged) -> Causes:
    if effect.is_own(event.author):
        label, since_us = effect.record.member, effect.record.at - REQUEST_US
        yield from request_cause(effect, "set-join-list", target=label, since_us=since_us)
        return
    author = effect.name(event.author)
    edited = effect.of(author, events.JoinListChanged, lambda one: one.edition == event.edition)
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
    decided = effect.of(master, events.ClusterStateChanged, lambda one: one.state == event.state)
    yield from message_cause(decided, f"{master} decided it")
    if decided is None and event.state == "FROZEN":
        yield from message_cause(effect.of(master, events.MergeStarted), f"{master} freezes its cluster for the merge")


HEALING_RULES: Mapping[type, Rule] = {
    events.DisconnectionReported: _reported,
    events.DisconnectionResolved: _resolved,
    events.MemberHeldBack: _held_back,
    events.JoinDelayed: _join_delayed,
    events.MergeVerdict: _verdict,
    events.NotMerging: _not_merging,
    events.MergeStarted: _merge_started,
    events.MemberMerging: _member_merging,
    events.JoinListChanged: _join_list_changed,
    events.ClusterStateChanged: _state_changed,
}
"""By class of events, what finds the causes of one."""
