"""A member that stood still itself accuses nobody: the silence that it sees is its own (Hazelcast: clocks)."""

from __future__ import annotations

from quarterdeck.backend.core.membership.events import ObserverPaused
from quarterdeck.backend.core.membership.state import Membership


def discount_own_pause(state: Membership, now: int) -> None:
    """If this member has stood still, nobody's silence counts until now, and nobody was late with anything."""
    pause_us = now - state.last_round_us
    if pause_us < state.pause_us:
        return
    state.last_round_us = now
    state.record(now, ObserverPaused(pause_us))
    for peer in state.peers.values():
        peer.detector.restart(now)
        if peer.behind_since_us:
            peer.behind_since_us = now
    await_confirmations(state, now)
    claim = state.claim
    if claim is not None:
        claim.deadline_us += pause_us
        for asked in claim.watched.values():
            asked.detector.restart(now)


def await_confirmations(state: Membership, now: int) -> None:
    """Nobody is late with a master confirmation: this member has just become master, or has stood still itself."""
    for peer in state.peers.values():
        peer.confirmed_us = now
