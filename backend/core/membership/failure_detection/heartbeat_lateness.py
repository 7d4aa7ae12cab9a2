"""Heartbeats that stay away, told before their sender is suspected: who is close to it.

A member says once that a heartbeat is late, and once that this is over; in a healthy cluster it says nothing. The product logs
the same ("not receiving any heartbeats from"), and acts on it as little.
"""

from __future__ import annotations

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.membership.events import HeartbeatLate
from quarterdeck.backend.core.membership.failure_detection.failure_detector import Peer
from quarterdeck.backend.core.membership.state import Membership


def look_at(state: Membership, now: int, address: Address, peer: Peer) -> None:
    """Say so when the silence of a member that is not suspected has become late, or is not late any more."""
    silence_us = peer.detector.silence_us(now)
    late = silence_us >= state.late_after_us
    if late and not peer.late:
        peer.late = True
        state.record(now, HeartbeatLate(address, peer.uuid, silence_us, state.settings.max_no_heartbeat_us, False))
    elif peer.late and not late:  # nothing was heard, but the silence counts from another time now
        end_lateness(state, now, address, peer, silence_us=0)


def end_lateness(state: Membership, now: int, address: Address, peer: Peer, silence_us: int) -> None:
    """Record that a late heartbeat came after `silence_us`; 0 when this member only does not wait for it as before."""
    peer.late = False
    state.record(now, HeartbeatLate(address, peer.uuid, silence_us, state.settings.max_no_heartbeat_us, True))
