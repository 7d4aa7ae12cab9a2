"""Editing the TCP-IP join list at runtime.

See Split-brain Recovery Improvements, User Interaction and Proposed Solution 2; Hazelcast: runtime join lists.

The edit goes to one member, which brings it to every other member of its cluster and asks again until all have it. It takes
effect at the next search for other clusters, or at the next look around of a member that has not joined.
"""

from __future__ import annotations

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.membership.events import JoinListChanged
from quarterdeck.backend.core.membership.messages import JoinListUpdate, JoinListUpdateAck
from quarterdeck.backend.core.membership.state import Membership
from quarterdeck.backend.core.membership.undertakings import Doing
from quarterdeck.backend.core.properties import SECOND_US

SPREAD = "join list"
"""Name of the timer that asks again those who have not acknowledged the edit."""

ASK_AGAIN_US = 1 * SECOND_US


def edit(state: Membership, now: int, addresses: tuple[Address, ...]) -> None:
    """Edit the list as an operator wants it at this member."""
    _edit_above(state, now, state.join_list_edition[0], addresses)


def on_update(state: Membership, doing: Doing, now: int, sender: Address, update: JoinListUpdate) -> None:
    """Adopt an edit of another member. Of two edits at once the same one wins everywhere."""
    if sender not in state.peers:
        return
    edition = (update.edition, update.author)
    if edition > state.join_list_edition:
        _adopt(state, now, edition, update.addresses)
        state.join_list_confirmed = None
        state.timers.clear(SPREAD)
    state.send(sender, JoinListUpdateAck(*state.join_list_edition))


def on_acknowledgement(state: Membership, doing: Doing, now: int, sender: Address, ack: JoinListUpdateAck) -> None:
    """Note that a member has this member's edit. If it has a later edition of another edit, spread this one again above that."""
    if state.join_list_confirmed is None or sender not in state.peers:
        return
    edition = (ack.edition, ack.author)
    if edition == state.join_list_edition:
        state.join_list_confirmed.add(sender)
    elif edition > state.join_list_edition:
        _edit_above(state, now, ack.edition, state.join_list)


def on_spread_timer(state: Membership, now: int) -> None:
    """Send the edit again to members that have not acknowledged it, also to those that have joined since."""
    if state.join_list_confirmed is not None:
        _spread(state, now)


def _edit_above(state: Membership, now: int, edition: int, addresses: tuple[Address, ...]) -> None:
    _adopt(state, now, (edition + 1, state.address), addresses)
    state.join_list_confirmed = set()
    _spread(state, now)


def _adopt(state: Membership, now: int, edition: tuple[int, Address], addresses: tuple[Address, ...]) -> None:
    state.join_list = addresses
    state.join_list_edition = edition
    state.record(now, JoinListChanged(addresses, *edition))


def _spread(state: Membership, now: int) -> None:
    assert state.join_list_confirmed is not None
    waiting = tuple(address for address in state.peers if address not in state.join_list_confirmed)
    if not waiting and state.joined:
        state.join_list_confirmed = None
        return
    state.send_all(waiting, JoinListUpdate(*state.join_list_edition, state.join_list))
    state.timers.set(SPREAD, now + ASK_AGAIN_US)
