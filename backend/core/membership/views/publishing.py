"""Installing and publishing member lists.

See Cluster Service Consistency Improvements, Membership Update Process; Emergent Leader, missing membership updates.

Only the master makes a new version. All others install what it sends (chapter `list_updates`).
"""

from __future__ import annotations

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.causes import Evidence, ListCause
from quarterdeck.backend.core.cluster_profile import allows_joins
from quarterdeck.backend.core.membership.events import ListInstalled
from quarterdeck.backend.core.membership.facts import BecameMaster, EvidenceFound, Installed
from quarterdeck.backend.core.membership.failure_detection.failure_detector import Peer, detector
from quarterdeck.backend.core.membership.messages import MembersUpdate
from quarterdeck.backend.core.membership.state import Membership
from quarterdeck.backend.core.membership.undertakings import LeftMember
from quarterdeck.backend.core.membership.views import present_incarnation
from quarterdeck.backend.core.membership.views.identity import Member
from quarterdeck.backend.core.membership.views.member_list import MemberList
from quarterdeck.backend.core.properties import SECOND_US

PUBLISH = "publish"
"""Name of the timer of the periodic publication."""

ACKNOWLEDGEMENT_TIMEOUT_US = 2 * SECOND_US
"""How long a joiner waits for its answer until the others have acknowledged the list that it is on (Emergent Leader)."""


def install(state: Membership, now: int, members: MemberList, author: Address, cause: ListCause) -> None:
    """Install `members`, which the caller has checked."""
    gone, newcomers = _differences(state, members)
    if gone:
        state.left = {uuid: state.left[uuid] for uuid in present_incarnation.just_left(state, now)}
        # A removed member loses its connections, too (Partial Member Disconnection Resolution, Motivation, Figure 3).
        state.disconnect(tuple((address, state.peers[address].uuid) for address in gone))
    for address in gone:
        _remove_peer(state, now, address)
    this = members.find(state.address)
    for member in newcomers:
        counts_us = _silence_counts_us(state, now, this, member)
        state.peers[member.address] = Peer(member.uuid, detector(state.settings, counts_us), now)
        state.missing.discard(member.address)
        state.held_back.pop(member.address, None)
    state.members = members
    if this is not None:
        state.lite = this.lite
    state.beliefs_changed()
    installed = ListInstalled(members.version, members.lineage, members.master.address, members.members, author, cause)
    state.record(now, installed)
    state.listed = state.context.cause
    state.report(Installed(tuple(gone), tuple(newcomers)))


def publish(state: Membership) -> None:
    """Send the list to every other member."""
    state.send_all(tuple(state.peers), update(state), state.listed)


def publish_to(state: Membership, address: Address) -> None:
    """Send the list to one member that lags."""
    state.send(address, update(state), state.listed)


def on_lagging(state: Membership, now: int, address: Address, peer: Peer, version: int) -> None:
    """Send the present list to a member that stands at an earlier one, and remove it when it never confirms a newer one.

    It blocks those that joined since, for it sends them nothing: so it is removed, and not the newcomers that report its silence
    (M2; Decisions: Unacknowledged lists). A list and the heartbeat that confirms it may each be as late as any message.
    """
    if not peer.behind_since_us or version > peer.version:
        peer.version, peer.behind_since_us = version, now
    waiting_us = now - peer.behind_since_us
    if waiting_us > 2 * state.settings.max_no_heartbeat_us + state.settings.heartbeat_interval_us:
        text = f"it has not confirmed a member list for {waiting_us / SECOND_US:.1f} s"
        state.report(EvidenceFound({address: Evidence("no-list-confirmed", text)}))
    else:
        publish_to(state, address)


def knows(peer: Peer, other: Member) -> bool:
    """Whether the list at which `peer` stands holds `other`, as far as this master knows."""
    return not peer.behind_since_us or peer.version >= other.join_version


def update(state: Membership, *, wants_ack: bool = False) -> MembersUpdate:
    """Return the member's list as a message."""
    assert state.members is not None
    return MembersUpdate(state.members, wants_ack, state.standing, tuple(sorted(state.held_back)))


def on_mastership(state: Membership, now: int, fact: BecameMaster) -> None:
    """Begin to publish the list now and then (``hazelcast.member.list.publish.interval.seconds``)."""
    state.timers.set(PUBLISH, now + state.settings.list_publish_interval_us)


def on_publish_timer(state: Membership, now: int) -> None:
    """Publish the list at its interval."""
    publish(state)
    state.timers.set(PUBLISH, now + state.settings.list_publish_interval_us)


def _differences(state: Membership, members: MemberList) -> tuple[list[Address], list[Member]]:
    """Return the addresses that are gone from the present list, and the new members.

    A new incarnation at an old address is in both.
    """
    before = state.members
    if before is not None and members.members[: len(before.members)] == before.members:
        return [], list(members.members[len(before.members) :])  # the common case: a member joined
    uuids = {member.address: member.uuid for member in members.members}
    gone = [address for address, peer in state.peers.items() if uuids.get(address) != peer.uuid]
    kept = state.peers.keys() - set(gone)
    newcomers = [new for new in members.members if new.address not in kept and new.address != state.address]
    return gone, newcomers


def _silence_counts_us(state: Membership, now: int, this: Member | None, newcomer: Member) -> int:
    """Return from when on a newcomer's silence counts against it; its first heartbeat ends that grace.

    A member that was there before this one sends its next heartbeat within an interval. One that joins later may not know of
    this one yet: it does when the others have acknowledged its admission, and that message may be as late as any other.
    """
    settings = state.settings
    first_us = now + settings.heartbeat_interval_us
    if this is None or newcomer.join_version < this.join_version:
        return first_us
    return first_us + ACKNOWLEDGEMENT_TIMEOUT_US + settings.max_no_heartbeat_us


def _remove_peer(state: Membership, now: int, address: Address) -> None:
    """Forget a peer; while no joins are allowed, it is missing rather than gone."""
    peer = state.peers.pop(address)
    state.left[peer.uuid] = LeftMember(address, now)
    state.suspicions.pop(peer.uuid, None)
    state.probes.schedule.pop(address, None)
    if not allows_joins(state.standing.state):
        state.missing.add(address)
