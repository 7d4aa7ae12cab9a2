"""Readmission after a partial disconnection (Decisions: Readmission).

A member that was removed because it could not reach others is let in again only when it has proven its links to every
current member, and to everyone who is about to be let in with it, both ways. Until then the list stays as it is, instead of
taking it in and removing it again for ever. The master says whose links are missing; the joiner probes them with a growing
delay and asks again when they are proven.
"""

from __future__ import annotations

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.membership.events import JoinDelayed, MemberHeldBack
from quarterdeck.backend.core.membership.facts import HeldLinksProven, LinkProven
from quarterdeck.backend.core.membership.failure_detection import link_probes
from quarterdeck.backend.core.membership.messages import JoinHeld, JoinRequest
from quarterdeck.backend.core.membership.state import Membership
from quarterdeck.backend.core.membership.undertakings import HeldBackMember, HeldJoin, JoinSearch

SILENT_ROUNDS = 3
"""A held-back member that asks, or is met, in none of so many rounds is forgotten, if its address is forgotten as well."""

# The master's side


def hold_back(state: Membership, now: int, address: Address) -> None:
    """Require that `address` proves its links before it is admitted again, for as long as it is heard of now and then."""
    forget_old(state, now)
    state.held_back[address] = HeldBackMember(now)


def mark_proven(state: Membership, now: int, address: Address) -> None:
    """Note that the cluster of `address` has proven all its links to the present members."""
    if address in state.held_back:
        proven = frozenset(peer.uuid for peer in state.peers.values()) | {state.uuid}
        state.held_back[address] = HeldBackMember(now, proven)


def heard_of(state: Membership, now: int, address: Address) -> None:
    """Note that a member that may be held back still exists, so that it is not forgotten."""
    held = state.held_back.get(address)
    if held is not None:
        state.held_back[address] = held._replace(since_us=now)


def forget_old(state: Membership, now: int) -> None:
    """Forget held-back members that were not heard of for several times as long as they take to ask or to be met."""
    settings = state.settings
    rounds_us = SILENT_ROUNDS * max(settings.probe_backoff_most_us, settings.merge_next_run_delay_us)
    oldest_us = now - max(rounds_us, settings.address_retention_us)
    for address in [at for at, held in state.held_back.items() if held.since_us < oldest_us]:
        del state.held_back[address]


def is_held(state: Membership, now: int, sender: Address, request: JoinRequest) -> bool:
    """Return whether the joiner has to wait. It is sent the members whose links are missing."""
    if sender not in state.held_back:
        return False
    heard_of(state, now, sender)
    proven = state.held_back[sender].proven.union(request.proven)
    uuids = {state.address: state.uuid} | {address: peer.uuid for address, peer in state.peers.items()}
    uuids |= {address: other.uuid for address, other in state.asking_to_join.items() if address != sender}
    missing = tuple((address, uuid) for address, uuid in uuids.items() if uuid not in proven)
    if not missing:
        return False
    state.record(now, MemberHeldBack(sender, tuple(address for address, _ in missing)))
    state.send(sender, JoinHeld(missing, request.token))
    return True


# The joiner's side


def on_join_held(state: Membership, search: JoinSearch, now: int, sender: Address, held: JoinHeld) -> None:
    """Probe the links that the master wants proven, once now, and again after the back-off, when proofs are old."""
    if sender != state.master or held.token != search.token:
        return
    search.requests_to_master = 0
    search.deadline_us = now + state.settings.max_join_us
    if search.held is None or now >= search.held.next_probe_us:
        delay_us = link_probes.next_delay_us(state, search.held.delay_us if search.held else 0)
        search.held = HeldJoin({}, set(), now + delay_us, delay_us)
        state.record(now, JoinDelayed(sender, tuple(address for address, _ in held.missing), delay_us))
    for address, uuid in held.missing:
        if uuid not in search.held.missing and uuid not in search.held.proven:
            search.held.missing[uuid] = address
            link_probes.probe(state, address, uuid)


def on_link_proven(state: Membership, now: int, fact: LinkProven) -> None:
    """Note a proven link, and ask the master again when it was the last one."""
    held = state.search.held if state.search else None
    if held is not None and held.missing.pop(fact.uuid, None) is not None:
        held.proven.add(fact.uuid)
        if not held.missing:
            state.report(HeldLinksProven())
