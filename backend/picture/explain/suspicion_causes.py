"""Why a member is distrusted: what the operator or the network did to it, or what was said to the one that distrusts it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.events import (
    DisconnectionResolved,
    ExplicitSuspicionReceived,
    LinkChanged,
    MasterChanged,
    MemberStarted,
    MemberStopped,
    ProcessKilled,
    ProcessPaused,
    ProcessResumed,
    Record,
    SuspicionRaised,
)
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.picture.explain.event_index import DirectCause, Effect, local_cause, message_cause

SECONDS = re.compile(r" for (\d+(?:\.\d+)?) s\b")
"""How long the silence lasted, as a reason tells it."""

TELLING_KINDS = {"no heartbeat": "heartbeat", "no master confirmation": "master-confirmation"}
"""What reason misses which kind of message; only a link that drops that kind explains it."""


def causes_of_suspicion(effect: Effect, address: Address, uuid: str, reason: str) -> Iterator[DirectCause]:
    """Why the member that tells `effect` holds the incarnation `uuid` at `address` for dead, given the `reason` that it tells."""
    label = effect.name(address)
    if reason.startswith("it is disconnected from"):
        settled = effect.own(DisconnectionResolved, lambda one: address in one.remove)
        yield from local_cause(settled, f"it decided that {label} has to go")
    elif reason.startswith("a new life of"):
        newer = effect.at(address, MemberStarted)
        if newer is not None and newer.uuid != uuid:
            yield from message_cause(newer, f"{label} lives anew at the same address, so the life before is over")
    elif reason == "it asked to be suspected":
        asked = effect.own(ExplicitSuspicionReceived, lambda one: one.sender == address and one.heeded)
        yield from local_cause(asked, f"{label} asked for it")
    elif reason == "it said goodbye":
        yield from message_cause(_end_of(effect, label, uuid), f"{label} said goodbye")
    elif reason == "it leads a cluster of its own":
        yield from message_cause(effect.at(address, MasterChanged), f"{label} leads a cluster of its own")
    elif " reports: " in reason:
        watcher, _, finding = reason.partition(" reports: ")
        noticed = effect.at(Address(watcher), SuspicionRaised, lambda one: one.suspect == address)
        yield from message_cause(noticed, f"{effect.name(Address(watcher))} watches {label} and reported it")
        if noticed is None:
            yield from causes_of_silence(effect, label, uuid, finding, effect.name(Address(watcher)))
    else:
        yield from causes_of_silence(effect, label, uuid, reason)


def causes_of_silence(effect: Effect, label: str, uuid: str, reason: str, observer: str = "") -> Iterator[DirectCause]:
    """Why `observer` does not hear `label`: its end, its pause, or the link between the two.

    `observer` is the one that tells `effect` unless given. Only what lasted into the silence that `reason` tells of counts.
    """
    observer = observer or effect.record.member
    told = SECONDS.search(reason)
    begun_us = effect.record.at - round(float(told[1]) * SECOND_US if told else 0) - SECOND_US // 10
    ended = _end_of(effect, label, uuid)
    if ended is not None:
        yield from local_cause(
            ended, f"{label} {'was killed' if isinstance(ended.event, ProcessKilled) else 'had stopped'}"
        )
        return
    paused = effect.anywhere(ProcessPaused, lambda one: one.target == label)
    if paused is not None and _lasted(effect, paused, begun_us):
        yield from local_cause(paused, f"{label} was frozen")
        return
    wanted = next((kind for start, kind in TELLING_KINDS.items() if reason.startswith(start)), "")
    for source, target in ((label, observer), (observer, label)):
        changed = _bad_link(effect, source, target, begun_us, wanted)
        if changed is not None:
            yield from local_cause(changed, f"what {source} sends to {target} did not arrive, or not in time")
            return


def _end_of(effect: Effect, label: str, uuid: str) -> Record | None:
    """What ended the incarnation `uuid` of `label`, if it is over."""
    goodbye = effect.of(label, MemberStopped)
    if goodbye is not None and goodbye.uuid == uuid:
        return goodbye
    killed = effect.anywhere(ProcessKilled, lambda one: one.target == label)
    if killed is None:
        return None
    born = next((one for one in effect.event_index.by(label, MemberStarted, effect.place) if one.uuid == uuid), None)
    return killed if born is None or _comes_before(effect, born, killed) else None


def _lasted(effect: Effect, paused: Record, begun_us: int) -> bool:
    """Whether the pause was still on when the silence began, or began in it."""
    target = paused.event.target if isinstance(paused.event, ProcessPaused) else ""
    resumed = effect.anywhere(ProcessResumed, lambda one: one.target == target)
    return resumed is None or _comes_before(effect, resumed, paused) or resumed.at >= begun_us


def _bad_link(effect: Effect, source: str, target: str, begun_us: int, wanted: str) -> Record | None:
    """What made the one-way link bad in the time from `begun_us` on."""
    for one in effect.event_index.all_of(LinkChanged, effect.place):
        link = one.event
        if not isinstance(link, LinkChanged) or (link.source, link.target) != (source, target):
            continue
        if link.is_plain and one.at < begun_us:
            return None
        if not link.is_plain and _explains(link, wanted):
            return one
    return None


def _explains(link: LinkChanged, wanted: str) -> bool:
    return bool(link.blocked or link.loss or link.delay) or (wanted != "" and wanted in link.dropped_kinds)


def _comes_before(effect: Effect, one: Record, other: Record) -> bool:
    first_place, second_place = effect.event_index.place_of(one), effect.event_index.place_of(other)
    return first_place is not None and second_place is not None and first_place < second_place
