"""A member list comes from another member: which lists are installed, and which are not.

See Cluster Service Consistency Improvements, Membership Update Process.

Each member installs what its master sends, if it is newer than what it has and holds the receiver itself. A lagging member is
healed by the next whole list, never by replaying the versions it missed.
"""

from __future__ import annotations

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.causes import ListRejectionCause
from quarterdeck.backend.core.membership import cluster_state
from quarterdeck.backend.core.membership.events import ListRejected
from quarterdeck.backend.core.membership.facts import ListReceived
from quarterdeck.backend.core.membership.failure_detection import explicit_suspicion, suspicion
from quarterdeck.backend.core.membership.messages import MembersUpdate, MembersUpdateAck
from quarterdeck.backend.core.membership.state import Membership
from quarterdeck.backend.core.membership.undertakings import Claim, Following, HeldBackMember, JoinSearch, Leading
from quarterdeck.backend.core.membership.views import publishing
from quarterdeck.backend.core.membership.views.identity import ListMetadata
from quarterdeck.backend.core.membership.views.member_list import MemberList


def on_early_update(state: Membership, search: JoinSearch, now: int, sender: Address, update: MembersUpdate) -> None:
    """Keep a list that has overtaken the answer to the join request."""
    if sender == state.master:
        search.early_update = update


def on_list_for_claimant(state: Membership, claim: Claim, now: int, sender: Address, update: MembersUpdate) -> None:
    """Reject the list: a member that claims mastership has no master."""
    _reject(state, now, sender, update.members, "not-its-master", "its sender is not this member's master")


def on_foreign_list(
    state: Membership, doing: Following | Leading, now: int, sender: Address, update: MembersUpdate
) -> None:
    """Reject the list of another master, and ask that master to treat this member as dead."""
    members = update.members
    _reject(state, now, sender, members, "not-its-master", "its sender is not this member's master")
    claimed = ListMetadata(sender, members.master.uuid, sender, members.version)
    explicit_suspicion.send(state, now, claimed, "foreign-list")


def on_members_update(
    state: Membership, following: Following, now: int, sender: Address, update: MembersUpdate
) -> None:
    """Install the list that came, or reject it, by the checks of behaviour 2.3 in their order.

    Another incarnation at the master's address is not the master.
    """
    mine, members = state.members, update.members
    assert mine is not None
    if sender != state.master or not mine.holds(sender, members.master.uuid):
        on_foreign_list(state, following, now, sender, update)
        return
    if not members.holds(state.address, state.uuid):
        _reject(state, now, sender, members, "without-this-member", "it does not hold this member")
        return
    suspicion.clear(state, now, sender, "list-received", "it sent a member list as master")
    if members.version >= mine.version:
        state.held_back = dict.fromkeys(update.held_back, HeldBackMember(now))
    if members.version > mine.version:
        publishing.install(state, now, members, sender, "published")
    is_new = members.lineage != mine.lineage
    cluster_state.adopt(state, now, update.standing, "list", "the master's list says so", new_lineage=is_new)
    if update.wants_ack:
        state.send(sender, MembersUpdateAck(state.members.version if state.members else 0))


def on_list_received(state: Membership, now: int, fact: ListReceived) -> None:
    """Judge a list that came early, now that this member has joined."""
    if isinstance(state.doing, Following):
        on_members_update(state, state.doing, now, fact.sender, fact.update)


def _reject(
    state: Membership, now: int, sender: Address, members: MemberList, cause: ListRejectionCause, reason: str
) -> None:
    state.record(now, ListRejected(members.version, sender, reason, cause))
