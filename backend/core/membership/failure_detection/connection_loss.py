"""Connection loss as evidence: the transport cannot reach a member, although it should listen there.

A single fault proves nothing. The link is tried again at short intervals, and the member is suspected after a few faults in a
row. So a crashed process is detected long before its heartbeats are missed; a silent network is not (Hazelcast: explicit
suspicion).
"""

from __future__ import annotations

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.causes import Evidence
from quarterdeck.backend.core.membership.facts import EvidenceFound, Installed
from quarterdeck.backend.core.membership.failure_detection import heartbeat_ring, link_probes
from quarterdeck.backend.core.membership.state import Membership

CONNECTION = "connection:"
"""Prefix of the timers that try a broken link again, one for each member."""


def on_unreachable(state: Membership, now: int, address: Address, reason: str) -> None:
    """Count a fault. Faults that come while the next try is already due are the same one."""
    peer = state.peers.get(address)
    if peer is None or peer.uuid in state.suspicions or state.timers.is_set(CONNECTION + address):
        return
    peer.faults += 1
    if peer.faults > state.settings.connection_max_faults:
        peer.faults = 0
        heartbeat_ring.add_first_hand_suspect(state, address)
        state.report(EvidenceFound({address: Evidence("no-connection", f"no connection ({reason})")}))
    else:
        state.timers.set(CONNECTION + address, now + state.settings.connection_monitor_interval_us)


def on_connection_timer(state: Membership, now: int, address: Address) -> None:
    """Try the link again. An answer clears the faults, another failure is the next one.

    A heartbeat that came meanwhile may have been on its way when its sender died, so the link is tried all the same.
    """
    peer = state.peers.get(address)
    if peer is not None and peer.uuid not in state.suspicions:
        link_probes.probe(state, address, peer.uuid)


def on_installed(state: Membership, now: int, fact: Installed) -> None:
    """Stop trying to reach members that are gone."""
    for address in fact.gone:
        state.timers.clear(CONNECTION + address)
