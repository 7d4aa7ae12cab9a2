"""Why a member is suspected: what the operator or the network did to it, or what the one that suspects it was sent."""

from __future__ import annotations

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.causes import SuspicionCause
from quarterdeck.backend.core.events import OperatorAsked, ProcessKilled, ProcessPaused, ProcessResumed, Record
from quarterdeck.backend.core.link_condition import LinkChanged
from quarterdeck.backend.core.links import conditions_for
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.picture.explain.event_index import Causes, Effect, local_cause, message_cause

MISSING_KINDS: dict[SuspicionCause, str] = {"no-heartbeat": "heartbeat", "no-confirmation": "master-confirmation"}
"""Which kind of message is missing; a link that drops only other kinds does not explain it."""


def causes_of_suspicion(
    effect: Effect, address: Address, uuid: str, event: events.SuspicionRaised | events.MemberRemoved
) -> Causes:
    """Yield why the member that recorded `event` suspects the incarnation `uuid` at `address`."""
    label = effect.name(address)
    if event.reporter is not None:
        reporter = effect.name(event.reporter)
        noticed = effect.at(event.reporter, events.SuspicionRaised, suspect=address, suspect_uuid=uuid)
        yield from message_cause(noticed, f"{reporter} watches {label} and reported it")
        if noticed is None:
            yield from causes_of_silence(effect, label, uuid, event.cause, event.silence, reporter)
        return
    match event.cause:
        case "disconnected":
            settled = effect.own(events.DisconnectionResolved, lambda settled: address in settled.remove)
            yield from local_cause(settled, f"it decided that {label} has to go")
        case "new-incarnation":
            newer = effect.at(address, events.MemberStarted)
            if newer is not None and newer.uuid != uuid:
                yield from message_cause(
                    newer, f"{label} has started again at the same address, so the incarnation before is over"
                )
        case "asked":
            asked = effect.own(events.ExplicitSuspicionReceived, sender=address, heeded=True)
            yield from local_cause(asked, f"{label} asked for it")
        case "goodbye":
            yield from message_cause(_end_of(effect, label, uuid), f"{label} said goodbye")
        case "leads-another-cluster":
            yield from message_cause(effect.at(address, events.MasterChanged), f"{label} leads a cluster of its own")
        case "ordered":
            return
        case _:
            yield from causes_of_silence(effect, label, uuid, event.cause, event.silence)


def causes_of_silence(
    effect: Effect, label: str, uuid: str, cause: SuspicionCause, silence_us: int | None = None, observer: str = ""
) -> Causes:
    """Yield why `observer` does not hear `label`: its end, its pause, or the link between the two.

    `observer` is the member that recorded the effect unless given. Only what lasted into the silence counts.
    """
    observer = observer or effect.record.member
    begun_us = effect.record.at - (silence_us or 0) - SECOND_US // 10
    ended = _end_of(effect, label, uuid)
    if ended is not None:
        yield from local_cause(
            ended, f"{label} {'had stopped' if isinstance(ended.event, events.MemberStopped) else 'was killed'}"
        )
        return
    paused = effect.anywhere(ProcessPaused, target=label)
    if paused is not None and _lasted(effect, paused, begun_us):
        yield from local_cause(paused, f"{label} was frozen")
        return
    for source, target in ((label, observer), (observer, label)):
        changed = _bad_link(effect, source, target, begun_us, MISSING_KINDS.get(cause, ""))
        if changed is not None:
            yield from local_cause(changed, f"what {source} sends to {target} did not arrive, or not in time")
            return


def _end_of(effect: Effect, label: str, uuid: str) -> Record | None:
    goodbye = effect.of(label, events.MemberStopped)
    if goodbye is not None and goodbye.uuid == uuid:
        return goodbye
    killed = effect.anywhere(ProcessKilled, target=label) or effect.anywhere(OperatorAsked, do="kill", target=label)
    if killed is None:
        return None
    starts = effect.event_index.by(label, events.MemberStarted, effect.place)
    born = next((start for start in starts if start.uuid == uuid), None)
    return killed if born is None or _comes_before(effect, born, killed) else None


def _lasted(effect: Effect, paused: Record, begun_us: int) -> bool:
    """Return whether the pause was still on when the silence began, or began in it."""
    target = paused.event.target if isinstance(paused.event, ProcessPaused) else ""
    resumed = effect.anywhere(ProcessResumed, target=target)
    return resumed is None or _comes_before(effect, resumed, paused) or resumed.at >= begun_us


def _bad_link(effect: Effect, source: str, target: str, begun_us: int, wanted: str) -> Record | None:
    for record in effect.event_index.all_of(LinkChanged, effect.place):
        link = record.event
        if not isinstance(link, LinkChanged) or (link.source, link.target) != (source, target):
            continue
        if link.is_plain and record.at < begun_us:
            return None
        if not link.is_plain and _explains(link, wanted):
            return record
    return None


def _explains(link: LinkChanged, wanted: str) -> bool:
    if link.blocked or (wanted != "" and wanted in link.dropped_kinds):
        return True
    return any(known.loss or known.delay or known.delay_up_to or known.held for known in conditions_for(link, wanted))


def _comes_before(effect: Effect, first: Record, second: Record) -> bool:
    first_place, second_place = effect.event_index.place_of(first), effect.event_index.place_of(second)
    return first_place is not None and second_place is not None and first_place < second_place
