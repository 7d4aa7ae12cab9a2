"""Where a member looks for others: the join list, which an operator may edit at runtime, and addresses that it remembers.

See Split-brain Recovery Improvements, User Interaction and Proposed Solutions 1 and 2; Hazelcast: remembered addresses and
runtime join lists; Decisions: Members that everybody refuses.

A member remembers all members with which it has shared a cluster, and every master that was named to it while it had one of its
own. They are forgotten some time after they were last of use. Without this memory a cluster whose join lists do not name the
other side's master never heals.

An edit of the join list goes to one member, which brings it to every other member of its cluster and asks again until all have
it. It takes effect at the next search for other clusters, or at the next look around of a member that has not joined.
"""

from __future__ import annotations

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.causes import REFUSALS, Reason, UnreachableCause
from quarterdeck.backend.core.membership.events import AddressesRemembered, AddressUnusable, JoinListChanged
from quarterdeck.backend.core.membership.facts import Installed
from quarterdeck.backend.core.membership.messages import JoinListUpdate, JoinListUpdateAck
from quarterdeck.backend.core.membership.state import Membership
from quarterdeck.backend.core.membership.undertakings import Doing
from quarterdeck.backend.core.properties import SECOND_US

SPREAD = "join list"
"""Name of the timer that asks again those who have not acknowledged the edit."""

ASK_AGAIN_US = 1 * SECOND_US


def on_installed(state: Membership, now: int, fact: Installed) -> None:
    """Remember members for as long as they are on the list, and some time longer."""
    if state.settings.address_retention_us:
        state.remembered.update(dict.fromkeys(fact.gone, now))
        state.remembered.update((member.address, None) for member in fact.newcomers)
        left = tuple(address for address in fact.gone if address not in state.peers)
        if left:
            state.record(now, AddressesRemembered(left))
    else:
        for address in fact.gone:
            state.remembered.pop(address, None)
    forget_old(state, now)


def remember_contact(state: Membership, now: int, address: Address) -> None:
    """Remember that a member outside the cluster has answered from `address`."""
    if state.settings.address_retention_us and address != state.address and address not in state.peers:
        if address not in state.remembered:
            state.record(now, AddressesRemembered((address,)))
        state.remembered[address] = now


def forget_old(state: Membership, now: int) -> None:
    """Forget addresses that were of no use for too long, and what was found about the clusters there."""
    oldest_us = now - state.settings.address_retention_us
    forgotten = tuple(address for address, since in state.remembered.items() if since is not None and since < oldest_us)
    for address in forgotten:
        del state.remembered[address]
    if forgotten:
        state.record(now, AddressesRemembered((), forgotten))
    if not state.verdicts and not state.not_merging:
        return
    known = state.remembered.keys() | {*state.join_list, None}
    state.verdicts = {remote: address for remote, address in state.verdicts.items() if remote in known}
    state.not_merging = {remote: why for remote, why in state.not_merging.items() if remote in known}


def possible_addresses(state: Membership, now: int) -> tuple[Address, ...]:
    """Return where this member may find a cluster: its join list, then what it remembers; never itself."""
    forget_old(state, now)
    found = dict.fromkeys(state.join_list) | dict.fromkeys(state.remembered)
    found.pop(state.address, None)
    return tuple(found)


# Addresses at which looking is in vain


def on_unreachable(state: Membership, now: int, address: Address, found: Reason[UnreachableCause]) -> None:
    """Note that the transport could not reach `address`."""
    known = state.unusable.get(address)
    if known is not None and known.cause in REFUSALS and found.cause in REFUSALS[: REFUSALS.index(known.cause)]:
        return  # a member that has refused this one need not say so each time
    if found.cause in ("no-answer", "itself"):
        state.unusable.pop(address, None)
    elif known is None or known.cause != found.cause:
        for other in [at for at in state.unusable if at not in state.join_list and at not in state.remembered]:
            del state.unusable[other]
        state.unusable[address] = found
        state.record(now, AddressUnusable(address, found.text, found.cause))


def described(state: Membership, address: Address) -> str:
    """Return the address with what is known to be wrong with it."""
    found = state.unusable.get(address)
    return f"{address} ({found.text})" if found is not None else address


# Editing the join list


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
    if state.join_list_confirmed is None:
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
