"""Which incarnation is alive at an address: a late message of a dead one neither removes the present member nor is it admitted.

A request to join comes from an address of which another incarnation is on the list, waits to be admitted, or has just left.
Either that member was restarted, or the message is an old one. Nothing in the message can show which: a wall clock may go back
between two incarnations, and a member keeps nothing on disk in which it could count them. So the incarnation that asks is asked
whether it is alive. Its reply is newer than the question, the other incarnation was there before the question, and no two
processes have one address at a time: so the one that replies is the later of the two, and the other one is dead. A dead one
never replies. That costs a restarted member one round trip, and others nothing.

Why the last request does not simply win:

1. A leads. B runs as u1, is restarted as u2, and the request of u2 to join is late.
2. B is restarted again. The request of u3 arrives, and A admits u3.
3. The request of u2 arrives. If the last request won, A would remove u3, which is alive, and admit u2, which is dead.
4. So A asks u2 at that address whether it is alive. No reply ever comes from u2, and u3 stays.
"""

from __future__ import annotations

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.causes import Evidence
from quarterdeck.backend.core.membership.facts import AliveConfirmed, EvidenceFound, Installed, LinkProven
from quarterdeck.backend.core.membership.messages import JoinRequest, LinkProbe
from quarterdeck.backend.core.membership.state import Membership
from quarterdeck.backend.core.membership.undertakings import IncarnationCheck


def is_another(state: Membership, address: Address, uuid: str) -> bool:
    """Return whether `uuid` is another incarnation of `address` than the one that is on the list, or waits to be admitted."""
    peer, asking = state.peers.get(address), state.asking_to_join.get(address)
    return (peer is not None and peer.uuid != uuid) or (asking is not None and asking.uuid != uuid)


def just_left(state: Membership, now: int) -> dict[str, Address]:
    """Return the incarnations, and their addresses, that left the list no longer ago than stale-join prevention lasts."""
    oldest_us = now - state.settings.stale_join_prevention_us
    return {uuid: left.address for uuid, left in state.left.items() if left.since_us > oldest_us}


def check(state: Membership, now: int, address: Address, uuid: str, request: JoinRequest | None = None) -> None:
    """Ask `uuid` whether it is alive at `address`. If it replies, `request` is judged again.

    Asking again is the same question, so that an answer may take its time. A question to another incarnation replaces it.
    """
    checks = state.incarnation_checks
    for gone in checks.keys() - {*state.peers, *state.asking_to_join, *just_left(state, now).values()}:
        del checks[gone]
    asked = checks.get(address)
    if asked is None or asked.uuid != uuid:
        asked = checks[address] = IncarnationCheck(uuid, state.next_token())
    asked.request = request or asked.request
    state.send(address, LinkProbe(state.uuid, uuid, asked.token))


def on_link_proven(state: Membership, now: int, fact: LinkProven) -> None:
    """Note that the incarnation that was asked is alive: every other one of its address is dead."""
    sender, asked = fact.address, state.incarnation_checks.get(fact.address)
    if asked is None or asked.token != fact.token:
        return
    del state.incarnation_checks[sender]
    if is_another(state, sender, asked.uuid):
        state.asking_to_join.pop(sender, None)
        found = Evidence("new-incarnation", "a new incarnation at the same address asks to join")
        state.report(EvidenceFound({sender: found}))
    if asked.request is not None:
        state.report(AliveConfirmed(sender, asked.request))


def on_installed(state: Membership, now: int, fact: Installed) -> None:
    """Drop the questions to incarnations that have joined."""
    for member in fact.newcomers:
        state.incarnation_checks.pop(member.address, None)
