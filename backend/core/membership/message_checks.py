"""Checks of messages about membership: each returns why a message of another member is refused, or nothing.

A check refuses only messages that no sound member sends, however late they come: a peer that is wrong or hostile must not end
this member, nor bring it to a number that nothing can follow. Whether a message is of use now is for its chapter to decide.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from quarterdeck.backend.core.address import Address, is_address
from quarterdeck.backend.core.cluster_profile import ClusterProfile, ClusterStanding
from quarterdeck.backend.core.membership import messages
from quarterdeck.backend.core.membership.state import Membership
from quarterdeck.backend.core.membership.views.identity import ListMetadata
from quarterdeck.backend.core.membership.views.member_list import MemberList
from quarterdeck.backend.core.properties import SECOND_US

GREATEST = 1 << 62
"""No number of a message is greater: what follows on it must fit into a record."""

LEAD = 1 << 32
"""A number is ahead of what this member knows by no more: honest ones grow by one or two a change. Where nothing is known yet
only `GREATEST` counts, so that a joiner can follow a cluster that a hostile member has brought to great numbers."""

LONGEST_SHOWN = 100
"""So many letters of a bad address are shown."""

LONGEST_LEASE_US = 3_600 * SECOND_US

MessageCheck = Callable[[Any, Address, Any], str]
"""From the member's state, the sender and its message to the reason why the message is refused; empty if it is not."""


def number_problem(name: str, number: int, known: int | None = None) -> str:
    """Return why a number that grows by itself cannot be true; `known` is the one that this member has, if any."""
    most = GREATEST if known is None else min(known + LEAD, GREATEST)
    return "" if 0 <= number <= most else f"its {name} is {number}, which is not between 0 and {most}"


def address_problem(addresses: Iterable[Address | None]) -> str:
    """Return which of `addresses` is none; members send messages to addresses that others name."""
    for address in addresses:
        if address is not None and not is_address(address):
            return f"it names {address[:LONGEST_SHOWN]!r}, which is no address"
    return ""


def _known_version(state: Membership) -> int | None:
    return None if state.members is None else state.members.version


def _list_problem(state: Membership, sender: Address, members: MemberList) -> str:
    if members.find(sender) is None:
        return "its list does not hold its sender"
    return members.flaw or number_problem("list version", members.version, _known_version(state))


def _standing_problem(state: Membership, standing: ClusterStanding) -> str:
    known = None if state.members is None else state.standing.edition
    return number_problem("edition of the cluster state", standing.edition, known)


def _profile_problem(sender: Address, profile: ClusterProfile) -> str:
    shown = profile.members
    if profile.address != sender or not shown or (shown[0].address, shown[0].uuid) != (sender, profile.uuid):
        return "its sender does not lead the members that it shows"
    if len({member.address for member in shown}) < len(shown) or len({member.uuid for member in shown}) < len(shown):
        return "it shows a member twice"
    data_members = sum(not member.lite for member in shown)
    if profile.data_member_count != data_members:
        return f"it counts {profile.data_member_count} data members and shows {data_members}"
    addresses = (member.address for member in shown)
    return address_problem(addresses) or number_problem("list version", profile.list_version)


def _metadata_problem(*abouts: ListMetadata) -> str:
    for about in abouts:
        if why := number_problem("list version", about.version) or address_problem((about.address, about.master)):
            return why
    return ""


def _update(state: Membership, sender: Address, message: messages.MembersUpdate | messages.FinalizeJoin) -> str:
    return _list_problem(state, sender, message.members) or _standing_problem(state, message.standing)


def _members_update(state: Membership, sender: Address, update: messages.MembersUpdate) -> str:
    return _update(state, sender, update) or address_problem(update.held_back)


def _heartbeat(state: Membership, sender: Address, beat: messages.Heartbeat) -> str:
    if 0 <= beat.version <= GREATEST and not beat.suspects and (beat.master is None or is_address(beat.master)):
        return ""  # nearly all are like this, and they are the most frequent messages
    return number_problem("list version", beat.version) or address_problem((beat.master, *beat.suspects))


def _claim_accepted(state: Membership, sender: Address, answer: messages.ClaimAccepted) -> str:
    if answer.members.find(state.address) is None or answer.members.addresses[0] != state.address:
        return "its list does not begin with the claimant"
    return _list_problem(state, sender, answer.members) or _standing_problem(state, answer.standing)


def _edition(state: Membership, sender: Address, message: messages.JoinListUpdate | messages.JoinListUpdateAck) -> str:
    return address_problem((message.author,)) or number_problem(
        "edition of the join list", message.edition, state.join_list_edition[0] or None
    )


def _failure_report(state: Membership, sender: Address, report: messages.FailureReport) -> str:
    return address_problem((report.suspect,)) or number_problem("silence", report.silence or 0)


def _merge_offer(state: Membership, sender: Address, offer: messages.MergeOffer) -> str:
    return _profile_problem(sender, offer.profile) or number_problem("seen version", offer.seen_version)


def _state_lock(state: Membership, sender: Address, lock: messages.StateLock) -> str:
    if not 0 <= lock.lease_us <= LONGEST_LEASE_US:
        return f"its lease of {lock.lease_us} us is not between 0 and {LONGEST_LEASE_US}"
    return number_problem("list version", lock.version)


MEMBERSHIP_MESSAGE_CHECKS: dict[type, MessageCheck] = {
    messages.MasterIs: lambda state, sender, answer: address_problem((answer.master,)),
    messages.JoinHeld: lambda state, sender, held: address_problem(address for address, _ in held.missing),
    messages.ProveLinks: lambda state, sender, request: address_problem(address for address, _ in request.targets),
    messages.LinksReport: lambda state, sender, report: address_problem(report.missing),
    messages.MergeClusters: lambda state, sender, order: address_problem((order.target,)),
    messages.JoinRequest: lambda state, sender, request: number_problem("seen version", request.seen_version),
    messages.FinalizeJoin: _update,
    messages.MembersUpdate: _members_update,
    messages.MembersUpdateAck: lambda state, sender, ack: number_problem("list version", ack.version),
    messages.Heartbeat: _heartbeat,
    messages.HeartbeatComplaint: lambda state, sender, complaint: _metadata_problem(
        complaint.complainer, complaint.complainee
    ),
    messages.ExplicitSuspicion: lambda state, sender, message: _metadata_problem(message.about),
    messages.TriggerExplicitSuspicion: lambda state, sender, trigger: (
        _metadata_problem(trigger.about) or number_problem("list version", trigger.version)
    ),
    messages.MasterConfirmation: lambda state, sender, message: _metadata_problem(message.about),
    messages.FailureReport: _failure_report,
    messages.ClaimAccepted: _claim_accepted,
    messages.SplitBrainProbe: lambda state, sender, probe: _profile_problem(sender, probe.profile),
    messages.SplitBrainAnswer: lambda state, sender, answer: _profile_problem(sender, answer.profile),
    messages.MergeOffer: _merge_offer,
    messages.JoinListUpdate: lambda state, sender, update: (
        _edition(state, sender, update) or address_problem(update.addresses)
    ),
    messages.JoinListUpdateAck: _edition,
    messages.StateLock: _state_lock,
    messages.StateDecision: lambda state, sender, decision: _standing_problem(state, decision.standing),
}
"""The checks of the kinds of messages that can be wrong by themselves."""
