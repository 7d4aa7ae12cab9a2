"""Addresses at which a member looks for clusters besides its join list, and those at which it looks in vain.

See Split-brain Recovery Improvements, Proposed Solution 1; Hazelcast: remembered addresses; Decisions: Members that everybody
refuses.

A member remembers all members with which it has shared a cluster, and every master that was named to it while it had one of its
own. They are forgotten some time after they were last of use. Without this memory a cluster whose join lists do not name the
other side's master never heals.
"""

from __future__ import annotations

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.causes import REFUSALS, Reason, UnreachableCause
from quarterdeck.backend.core.membership.events import AddressesRemembered, AddressUnusable
from quarterdeck.backend.core.membership.facts import Installed
from quarterdeck.backend.core.membership.state import Membership


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
    others = state.other_clusters
    if others.verdicts or others.not_merging:
        known = state.remembered.keys() | {*state.join_list, None}
        others.verdicts = {remote: verdict for remote, verdict in others.verdicts.items() if remote in known}
        others.not_merging = {remote: why for remote, why in others.not_merging.items() if remote in known}


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
