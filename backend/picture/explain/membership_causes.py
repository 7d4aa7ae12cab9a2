"""What the events of membership follow from, kind by kind, as the records show; see `causes`.

First why a member is suspected: what the operator or the network did to it, or what the one that suspects it was sent. See
Cluster Service Consistency Improvements and Emergent Leader.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from quarterdeck.backend.commands.links import conditions_for
from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.causes import SuspicionCause
from quarterdeck.backend.core.events import OperatorAsked, ProcessKilled, ProcessPaused, ProcessResumed, Record
from quarterdeck.backend.core.link_condition import LinkChanged
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.core.partitions.events import DrainFinished
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
                again = f"{label} has started again at the same address, so the incarnation before is over"
                yield from message_cause(newer, again)
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
        how = "had stopped" if isinstance(ended.event, events.MemberStopped) else "was killed"
        yield from local_cause(ended, f"{label} {how}")
        return
    paused = effect.anywhere(ProcessPaused, target=label)
    resumed = effect.anywhere(ProcessResumed, target=label)
    # The pause was still on when the silence began, or began in it.
    if paused and (resumed is None or _comes_before(effect, resumed, paused) or resumed.at >= begun_us):
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
    place, later = effect.event_index.place_of(first), effect.event_index.place_of(second)
    return place is not None and later is not None and place < later


# The incarnation of a member, and joining


def _started(effect: Effect, event: events.MemberStarted) -> Causes:
    if event.merged_from:
        left = effect.of(effect.record.member, events.MemberMerging, next_uuid=effect.record.uuid)
        yield from local_cause(left, "its incarnation before ended in a merge")


def _stopped(effect: Effect, event: events.MemberStopped) -> Causes:
    yield from local_cause(effect.own(events.JoinFailed), "it could not join")
    drained = effect.anywhere(DrainFinished, lambda drain: effect.is_own(drain.address))
    began = effect.own(events.MemberStarted)
    if event.cause == "asked" and drained is not None and (began is None or drained.at >= began.at):
        yield from message_cause(drained, f"{drained.member} lets it go")
    if event.cause == "asked":
        since_us = began.at if began is not None else 0
        yield from request_cause(effect, "stop", target=effect.record.member, since_us=since_us)
        yield from request_cause(effect, "stop-cluster", since_us=since_us)


# Lists and masters


def _list_installed(effect: Effect, event: events.ListInstalled) -> Causes:
    if not effect.is_own(event.author):
        yield from _list_received(effect, event)
    elif event.cause == "join":
        yield from _newcomers(effect, event)
    elif event.cause == "removal":
        before = effect.own(events.ListInstalled)
        for removed in effect.all_own(events.MemberRemoved):
            if before is not None and removed.seq < before.seq:
                return
            label = effect.name(event_of(events.MemberRemoved, removed).address)
            yield from local_cause(removed, f"{label} was taken off it")
    elif event.cause == "mastership claim":
        claimed = effect.own(events.ClaimFinished, lineage=event.lineage)
        yield from local_cause(claimed, "it is the list that its claim came to")
    elif event.cause not in ("promotion", "demotion"):  # an operator asked for those
        yield from local_cause(effect.own(events.MasterChanged), "it forms a cluster")


def _list_received(effect: Effect, event: events.ListInstalled) -> Causes:
    author = effect.name(event.author)
    admitted = None
    if event.cause == "joined":
        uuid = effect.record.uuid
        admitted = effect.of(author, events.MemberAdmitted, joined_uuid=uuid)
        yield from message_cause(admitted, f"{author} let it in")
    if admitted is None:
        same = effect.of(author, events.ListInstalled, lineage=event.lineage, version=event.version)
        yield from message_cause(same, f"{author} published it")


def _newcomers(effect: Effect, event: events.ListInstalled) -> Causes:
    before = effect.own(events.ListInstalled)
    known = {member.uuid for member in event_of(events.ListInstalled, before).members} if before is not None else set()
    for member in event.members:
        if member.uuid not in known and member.uuid != effect.record.uuid:
            label = effect.name(member.address)
            asked = effect.of(label, events.JoinRequested)
            if asked is not None and asked.uuid == member.uuid:
                yield from message_cause(asked, f"{label} asked to be let in")


def _list_rejected(effect: Effect, event: events.ListRejected) -> Causes:
    sender = effect.name(event.sender)
    sent = effect.of(sender, events.ListInstalled, version=event.version)
    yield from message_cause(sent, f"{sender} published it")
    yield from local_cause(effect.own(events.MasterChanged), "it follows another master", deeper=False)


def _master_changed(effect: Effect, event: events.MasterChanged) -> Causes:
    master = effect.name(event.master)
    if event.cause == "claim-accepted":
        yield from message_cause(effect.of(master, events.ClaimStarted), f"{master} claims mastership")
        yield from _suspicions(effect, lambda suspect: suspect != event.master)
        return
    if event.cause == "suspects-older":
        yield from _suspicions(effect, lambda _: True)
        return
    yield from local_cause(effect.own(events.MemberStarted), "it looks for its cluster")
    if event.named_by is not None:
        named = effect.at(event.named_by, events.MasterChanged, master=event.master)
        says = "said that it leads" if event.named_by == event.master else f"named {master}"
        yield from message_cause(named, f"{effect.name(event.named_by)} {says}", deeper=False)


def _suspicions(effect: Effect, wanted: Callable[[Address], bool]) -> Causes:
    """Yield the suspicions that the member holds, the latest first. No clearance and no list without the suspect ended them."""
    seen: set[Address] = set()
    listed = effect.own(events.ListInstalled)
    living = {member.uuid for member in event_of(events.ListInstalled, listed).members} if listed is not None else set()
    cleared: dict[Address, int] = {}
    for record in effect.all_own(events.SuspicionCleared):
        cleared.setdefault(event_of(events.SuspicionCleared, record).suspect, record.seq)
    for raised in effect.all_own(events.SuspicionRaised):
        suspicion = event_of(events.SuspicionRaised, raised)
        suspect = suspicion.suspect
        if suspect in seen or raised.seq < cleared.get(suspect, 0):
            continue
        if listed is not None and raised.seq < listed.seq and suspicion.suspect_uuid not in living:
            continue
        seen.add(suspect)
        if wanted(suspect):
            yield from local_cause(raised, f"it suspects {effect.name(suspect)}")


# Suspicion


def _raised(effect: Effect, event: events.SuspicionRaised) -> Causes:
    yield from causes_of_suspicion(effect, event.suspect, event.suspect_uuid, event)
    late = effect.own(events.HeartbeatLate, address=event.suspect, late_uuid=event.suspect_uuid)
    if late is not None and not event_of(events.HeartbeatLate, late).over:
        yield from local_cause(late, "its heartbeat was late already", deeper=False)


def _cleared(effect: Effect, event: events.SuspicionCleared) -> Causes:
    label = effect.name(event.suspect)
    if event.cause == "claim-accepted":
        yield from message_cause(effect.of(label, events.ClaimStarted), f"{label} claims mastership")
    elif event.cause == "list-received":
        yield from message_cause(effect.of(label, events.ListInstalled), f"{label} publishes its list", deeper=False)
    else:
        raised = effect.own(events.SuspicionRaised, suspect=event.suspect)
        yield from _heard_again(effect, label, raised)
        yield from local_cause(raised, "it suspected that one until then", deeper=False)


def _heard_again(effect: Effect, label: str, noticed: Record | None) -> Causes:
    observer = effect.record.member
    ends = {label, observer}
    resumed = effect.anywhere(ProcessResumed, target=label)
    mended = effect.anywhere(LinkChanged, lambda link: {link.source, link.target} == ends, is_plain=True)
    for healed, why in ((resumed, f"{label} runs on"), (mended, "the link between the two is healed")):
        if healed is not None and noticed is not None and healed.at >= noticed.at:
            yield from local_cause(healed, why)


def _explicit_received(effect: Effect, event: events.ExplicitSuspicionReceived) -> Causes:
    sent = effect.at(event.sender, events.ExplicitSuspicionSent, lambda sent: effect.is_own(sent.to))
    yield from message_cause(sent, f"{effect.name(event.sender)} ordered it")


def _late(effect: Effect, event: events.HeartbeatLate) -> Causes:
    if not event.over:
        label = effect.name(event.address)
        yield from causes_of_silence(effect, label, event.late_uuid, "no-heartbeat", event.silence)
        return
    late = effect.own(events.HeartbeatLate, address=event.address)
    if event.silence:
        yield from _heard_again(effect, effect.name(event.address), late)
    yield from local_cause(late, "it was late until then", deeper=False)


# Claims


def _claim_finished(effect: Effect, event: events.ClaimFinished) -> Causes:
    started = effect.own(events.ClaimStarted)
    yield from local_cause(started, "it claims mastership")
    if started is not None:
        for answer in reversed(list(effect.all_own(events.ClaimAnswered))):
            said = event_of(events.ClaimAnswered, answer)
            if answer.seq > started.seq and said.answer == "accepted" and said.by in event.accepted:
                yield from local_cause(answer, f"{effect.name(said.by)} accepts it")


MEMBERSHIP_RULES: Mapping[type, Rule] = {
    events.MemberStarted: _started,
    events.MemberStopped: _stopped,
    events.ListInstalled: _list_installed,
    events.ListRejected: _list_rejected,
    events.MasterChanged: _master_changed,
    events.MemberRemoved: lambda effect, event: causes_of_suspicion(effect, event.address, event.removed_uuid, event),
    events.HeartbeatLate: _late,
    events.SuspicionRaised: _raised,
    events.SuspicionCleared: _cleared,
    events.ExplicitSuspicionReceived: _explicit_received,
    events.ObserverPaused: lambda effect, _: local_cause(
        effect.anywhere(ProcessPaused, target=effect.record.member), "it was frozen"
    ),
    events.ClaimStarted: lambda effect, event: _suspicions(effect, event.suspected.__contains__),
    events.ClaimFinished: _claim_finished,
}
"""By class of events, the function that finds the causes of one; see also `follows` and `external` in the rows of events."""
