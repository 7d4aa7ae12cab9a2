"""What holds of a member's membership between two steps, whatever has come in: simulations ask after their steps."""

from __future__ import annotations

from collections.abc import Iterator

from quarterdeck.backend.core.membership.state import Membership
from quarterdeck.backend.core.membership.undertakings import Claim, Following, Idle, JoinSearch, Leading


def membership_faults(state: Membership) -> Iterator[str]:
    """Yield what does not hold of the list, the peers, and what the member is doing."""
    members, doing = state.members, state.doing
    if state.context.effects or state.context.facts:
        yield "effects or facts of a step are left over"
    if members is None:
        if isinstance(doing, Following | Claim | Leading):
            yield f"it is {type(doing).__name__} without a list"
        if state.peers:
            yield "it has peers and no list"
        return
    listed = {member.address: member.uuid for member in members.members}
    if listed.pop(state.address, None) != state.uuid:
        yield "its list does not hold it"
    if {address: peer.uuid for address, peer in state.peers.items()} != listed:
        yield "its peers are not the others on its list"
    if not state.suspicions.keys() <= members.uuids:
        yield "it suspects an incarnation that is not on its list"
    if isinstance(doing, JoinSearch | Idle) and not state.timers.earliest >= 1 << 62:
        yield f"it is {type(doing).__name__} with a list, and wants to be woken"
    if isinstance(doing, Idle):
        return  # with a list it has ended, perhaps as a claimant
    if isinstance(doing, Leading | Claim) != (state.master == state.address):
        yield f"it is {type(doing).__name__} and its master is {state.master}"
    if not state.disconnections.by_reporter.keys() <= state.peers.keys():
        yield "a member off the list has reported disconnections"
    if isinstance(doing, Leading):
        yield from _leading_faults(state, doing)


def _leading_faults(state: Membership, leading: Leading) -> Iterator[str]:
    admission, change, merge = leading.admission, leading.state_change, leading.merge
    if admission is not None and not admission.waiting <= state.peers.keys():
        yield "an admission waits for a member off the list"
    if change is not None and not change.waiting <= state.peers.keys():
        yield "a change of the cluster's state waits for a member off the list"
    if merge is not None and merge.phase in ("proving", "ordering"):
        if not merge.waiting <= {state.address, *state.peers}:
            yield "a merge waits for a member off the list"
