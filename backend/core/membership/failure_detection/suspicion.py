"""Suspicion on slaves, removal by the master (seed 000, Member Suspicion & Removal; behaviour 3.5 and 3.7).

The same evidence has two outcomes: the master takes the member off the list at once and publishes; a slave only marks it, tells
nobody but its master, and stops sending it heartbeats. Whoever suspects all who are older than itself claims mastership.
"""

from __future__ import annotations

from collections.abc import Mapping

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.causes import ClearanceCause, Evidence
from quarterdeck.backend.core.events import MemberRemoved, SuspicionCleared, SuspicionRaised
from quarterdeck.backend.core.membership import cluster_state, mastership_claim
from quarterdeck.backend.core.membership.failure_detection import heartbeat_ring, link_probes
from quarterdeck.backend.core.membership.partial_disconnection import disconnection_reports
from quarterdeck.backend.core.membership.split_brain import merging
from quarterdeck.backend.core.membership.state import Membership
from quarterdeck.backend.core.membership.views import admission, publishing
from quarterdeck.backend.core.messages import Leave


def suspect(state: Membership, now: int, address: Address, evidence: Evidence) -> None:
    """Act on evidence that the member at `address` is dead."""
    suspect_all(state, now, {address: evidence})


def suspect_all(state: Membership, now: int, evidence: Mapping[Address, Evidence]) -> None:
    """Act on evidence against several members at once: the master publishes one list, a slave claims knowing them all."""
    known = {address: found for address, found in evidence.items() if address in state.peers}
    if not known or state.members is None:
        return
    if state.is_master:
        _remove(state, now, known)
        return
    for address, found in known.items():
        if address not in state.suspicions:
            raised = SuspicionRaised(
                address, state.peers[address].uuid, found.text, found.cause, found.silence_us, found.reporter
            )
            state.record(now, raised, found.because)
            state.suspicions[address] = found._replace(because=state.latest_record)
            link_probes.watch_suspect(state, now, address)
    state.beliefs_changed()
    if state.claim is not None:
        mastership_claim.conclude_when_settled(state, now)
    else:
        mastership_claim.start_if_due(state, now)


def clear(state: Membership, now: int, address: Address, cause: ClearanceCause, reason: str) -> bool:
    """Stop suspecting the member at `address`; whether that is allowed.

    A member older than the accepted master stays suspected: mastership has moved on and heartbeats do not bring it back.
    """
    if address not in state.suspicions:
        return True
    if not may_clear(state, address):
        return False
    raised = state.suspicions.pop(address)
    state.beliefs_changed()
    state.record(now, SuspicionCleared(address, state.peers[address].uuid, reason, cause), raised.because)
    heartbeat_ring.withdraw(state, address, state.peers[address].uuid)
    return True


def may_clear(state: Membership, address: Address) -> bool:
    """Whether the member at `address` is not older than the accepted master."""
    if state.members is None or state.master is None:
        return True
    return all(older.address != address for older in state.members.older_than(state.master))


def on_leave(state: Membership, now: int, sender: Address, goodbye: Leave) -> None:
    """A member stops gracefully."""
    peer = state.peers.get(sender)
    if peer is not None and peer.uuid == goodbye.uuid:
        suspect(state, now, sender, Evidence("goodbye", "it said goodbye"))


def _remove(state: Membership, now: int, evidence: Mapping[Address, Evidence]) -> None:
    assert state.members is not None
    if merging.is_dissolving(state, now, set(evidence)):
        return
    for address, found in evidence.items():
        removed = MemberRemoved(
            address, state.peers[address].uuid, found.text, found.cause, found.silence_us, found.reporter
        )
        state.record(now, removed, found.because)
    latest = state.latest_record
    gone = set(evidence)
    disconnection_reports.forget(state, gone)
    publishing.install(state, now, state.members.without(gone), state.address, "removal", because=latest)
    publishing.publish(state)
    admission.forget(state, now, gone)
    cluster_state.forget(state, now, gone)
    merging.forget(state, now, gone)
