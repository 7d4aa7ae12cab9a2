"""Explicit suspicion: 'assume that I am dead and go your own way'.

See Cluster Service Consistency Improvements, Explicit Suspicion; Hazelcast: heartbeat complaints and explicit suspicion.

A request describes its receiver as the sender knew it. If any of the four fields has changed meanwhile, the receiver has
moved on and the request is void. So a late request never harms a cluster that has healed itself.
"""

from __future__ import annotations

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.causes import SEPARATION_TEXT, Evidence, SeparationCause
from quarterdeck.backend.core.membership import messages
from quarterdeck.backend.core.membership.events import ComplaintSent, ExplicitSuspicionReceived, ExplicitSuspicionSent
from quarterdeck.backend.core.membership.facts import EvidenceFound
from quarterdeck.backend.core.membership.state import Membership
from quarterdeck.backend.core.membership.undertakings import Doing, Following, JoinSearch, Leading
from quarterdeck.backend.core.membership.views import publishing
from quarterdeck.backend.core.membership.views.identity import ListMetadata


def send(state: Membership, now: int, about: ListMetadata, cause: SeparationCause) -> None:
    """Ask the member that `about` describes to suspect this one."""
    if about.address != state.address:
        because = state.context.cause or state.listed or state.begun
        state.record(now, ExplicitSuspicionSent(about.address, SEPARATION_TEXT[cause], cause), because)
        state.send(about.address, messages.ExplicitSuspicion(about))


def on_heartbeat_for_joiner(
    state: Membership, search: JoinSearch, now: int, sender: Address, beat: messages.Heartbeat
) -> None:
    """Answer a heartbeat to a member that has no list: it is meant for an earlier incarnation, or comes too early."""
    if beat.to_uuid != state.uuid:
        stranger = ListMetadata(sender, beat.uuid, beat.master, beat.version)
        send(state, now, stranger, "heartbeat-for-earlier-incarnation")


def on_stray_heartbeat(state: Membership, doing: Doing, now: int, sender: Address, beat: messages.Heartbeat) -> None:
    """Judge a heartbeat of a member that is not on the list, or that means another incarnation of this address.

    See Hazelcast: receiving heartbeats.
    """
    stranger = ListMetadata(sender, beat.uuid, beat.master, beat.version)
    if isinstance(doing, Leading):
        send(state, now, stranger, "heartbeat-of-stranger")
    elif isinstance(doing, Following) and state.master is not None and not state.suspects(state.master):
        state.record(now, ComplaintSent(state.master, sender), state.listed)
        state.send(state.master, messages.HeartbeatComplaint(state.metadata(), stranger))


def on_complaint(
    state: Membership, leading: Leading, now: int, sender: Address, complaint: messages.HeartbeatComplaint
) -> None:
    """Judge between two members as the master: one that does not follow this master is asked to go its own way."""
    one, other = complaint.complainer, complaint.complainee
    if one.address == other.address:
        return
    one_valid, other_valid = (
        state.is_listed(party.address, party.uuid) and party.master == state.address for party in (one, other)
    )
    if one_valid and other_valid:
        publishing.publish_to(state, one.address)
        publishing.publish_to(state, other.address)
        return
    for party, valid, counterpart, counterpart_valid in (
        (one, one_valid, other, other_valid),
        (other, other_valid, one, one_valid),
    ):
        if not valid:
            send(state, now, party, "complaint")
            if counterpart_valid and state.members is not None:
                state.send(counterpart.address, messages.TriggerExplicitSuspicion(state.members.version, party))


def on_trigger(
    state: Membership, following: Following, now: int, sender: Address, trigger: messages.TriggerExplicitSuspicion
) -> None:
    """Separate from another member as the master wants; only while both stand at the same list."""
    if state.members is not None and sender == state.master and trigger.version == state.members.version:
        send(state, now, trigger.about, "master-asked")


def on_explicit_suspicion(
    state: Membership, doing: Doing, now: int, sender: Address, message: messages.ExplicitSuspicion
) -> None:
    """Treat the sender as dead, as it asks."""
    if message.about != state.metadata():
        state.record(now, ExplicitSuspicionReceived(sender, False, "this member has moved on since", "moved-on"))
    elif sender not in state.peers:
        state.record(now, ExplicitSuspicionReceived(sender, False, "its sender is not on the list", "not-listed"))
    else:
        state.record(now, ExplicitSuspicionReceived(sender, True, "", "heeded"))
        evidence = Evidence("asked", "it asked to be suspected", because=state.context.cause)
        state.report(EvidenceFound({sender: evidence}))
