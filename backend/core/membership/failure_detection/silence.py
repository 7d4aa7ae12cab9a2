"""How a member judges silence: heartbeats that are late, and its own pauses (Hazelcast: clocks).

A member records once that a heartbeat is late, before it suspects the sender, and once that this is over; in a healthy cluster
it records nothing. The product logs the same ("not receiving any heartbeats from"), and acts on it as little. A member that stood
still itself suspects no member: the silence that it sees is its own.
"""

from __future__ import annotations

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.membership.events import HeartbeatLate, ObserverPaused
from quarterdeck.backend.core.membership.failure_detection.failure_detector import Peer
from quarterdeck.backend.core.membership.state import Membership


def look_at(state: Membership, now: int, address: Address, peer: Peer) -> None:
    """Record that the silence of a member that is not suspected has become late, or is not late any more."""
    silence_us = peer.detector.silence_us(now)
    late = silence_us >= state.late_after_us
    if late and not peer.late:
        peer.late = True
        state.record(now, HeartbeatLate(address, peer.uuid, silence_us, state.settings.max_no_heartbeat_us, False))
        peer.lateness = state.latest_record
    elif peer.late and not late:  # nothing was heard, but the silence counts from another time now
        end_lateness(state, now, address, peer, silence_us=0)


def end_lateness(state: Membership, now: int, address: Address, peer: Peer, silence_us: int) -> None:
    """Record that a late heartbeat came after `silence_us`; 0 when this member only does not wait for it as before."""
    over = HeartbeatLate(address, peer.uuid, silence_us, state.settings.max_no_heartbeat_us, True)
    state.record(now, over, peer.lateness)
    peer.late, peer.lateness = False, None


def discount_own_pause(state: Membership, now: int) -> None:
    """Start all silences and deadlines anew if this member has stood still: it could not hear the others."""
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
    """Let all confirmations count from now on: this member has just become master, or has stood still."""
    for peer in state.peers.values():
        peer.confirmed_us = now
