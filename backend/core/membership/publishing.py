"""Installing and publishing member lists (seed 000, Membership Update Process; seed 003, missing membership updates).

Only the master makes a new version. Everybody else installs what its master sends, if it is newer than what it has and holds
the receiver itself. A lagging member is healed by the next whole list, never by replaying the versions it missed.
"""

from __future__ import annotations

from backend.core.address import Address
from backend.core.events import ListInstalled, ListRejected
from backend.core.membership import explicit_suspicion
from backend.core.membership.failure_detector import DeadlineDetector
from backend.core.membership.identity import ListMetadata
from backend.core.membership.member_list import MemberList
from backend.core.membership.state import Membership, Peer
from backend.core.messages import MembersUpdate, MembersUpdateAck

PUBLISH = "publish"
"""Name of the timer of the periodic publication."""


def install(state: Membership, now: int, members: MemberList, author: Address, cause: str) -> None:
    """Believe in `members` from now on. The caller has made sure that it may be installed."""
    peers: dict[Address, Peer] = {}
    for member in members.members:
        if member.address == state.address:
            continue
        peer = state.peers.get(member.address)
        if peer is None or peer.uuid != member.uuid:
            peer = Peer(member.uuid, DeadlineDetector(now, state.settings.max_no_heartbeat_us))
            state.suspicions.pop(member.address, None)
        peers[member.address] = peer
    state.peers = peers
    state.members = members
    for address in [address for address in state.suspicions if address not in peers]:
        del state.suspicions[address]
    state.heartbeat_round = None
    state.note(
        now, ListInstalled(members.version, members.lineage, members.master.address, members.members, author, cause)
    )


def publish(state: Membership) -> None:
    """Send the list to every other member."""
    state.send_all(tuple(state.peers), update(state))


def publish_to(state: Membership, address: Address) -> None:
    """Send the list to one member that lags."""
    state.send(address, update(state))


def update(state: Membership, *, wants_ack: bool = False) -> MembersUpdate:
    """The member's list as a message."""
    assert state.members is not None
    return MembersUpdate(state.members, wants_ack)


def on_publish_timer(state: Membership, now: int) -> None:
    """The periodic publication (``hazelcast.member.list.publish.interval.seconds``)."""
    if state.is_master:
        publish(state)
    state.timers.set(PUBLISH, now + state.settings.list_publish_interval_us)


def on_members_update(state: Membership, now: int, sender: Address, update: MembersUpdate) -> None:
    """A list came. Behaviour 2.3 gives the order of the checks."""
    mine, members = state.members, update.members
    if mine is None:
        return
    if sender != state.master or sender == state.address:
        _reject(state, now, sender, members, "its sender is not this member's master")
        if state.claim is None:
            claimed = ListMetadata(sender, members.master.uuid, sender, members.version)
            explicit_suspicion.send(state, now, claimed, "it published a list without being this member's master")
        return
    if not members.holds(state.address, state.uuid):
        _reject(state, now, sender, members, "it does not hold this member")
        return
    if members.version > mine.version:
        install(state, now, members, sender, "published")
    if update.wants_ack:
        state.send(sender, MembersUpdateAck(state.members.version if state.members else 0))


def _reject(state: Membership, now: int, sender: Address, members: MemberList, reason: str) -> None:
    state.note(now, ListRejected(members.version, sender, reason))
