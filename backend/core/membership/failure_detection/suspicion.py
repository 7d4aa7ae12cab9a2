"""Suspicion on slaves, removal by the master.

See Cluster Service Consistency Improvements, Member Suspicion & Removal; Hazelcast: explicit suspicion and removal by the
master.

The same evidence has two outcomes. The master takes the member off the list at once and publishes. A slave only marks it, reports
that to no member but its master, and stops sending it heartbeats. A slave that suspects all older members claims mastership.
"""

from __future__ import annotations

from collections.abc import Mapping

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.causes import ClearanceCause, Evidence, HeldSuspicion
from quarterdeck.backend.core.membership import facts
from quarterdeck.backend.core.membership.events import MemberRemoved, SuspicionCleared, SuspicionRaised
from quarterdeck.backend.core.membership.messages import Leave
from quarterdeck.backend.core.membership.state import Membership
from quarterdeck.backend.core.membership.views import publishing


def on_evidence(state: Membership, now: int, fact: facts.EvidenceFound) -> None:
    """Act on evidence against members, all at once: the master publishes one list, a slave claims knowing them all."""
    known = {address: found for address, found in fact.evidence.items() if address in state.peers}
    if not known or state.members is None:
        return
    if state.is_master:
        _remove(state, now, known)
        return
    newly = tuple(address for address in known if not state.suspects(address))
    for address in newly:
        found, uuid = known[address], state.peers[address].uuid
        raised = SuspicionRaised(address, uuid, found.text, found.cause, found.silence_us, found.reporter)
        state.record(now, raised, found.because)
        state.suspicions[uuid] = HeldSuspicion(address, found._replace(because=state.context.cause))
    state.beliefs_changed()
    state.report(facts.SuspectedFact(newly))


def clear(state: Membership, now: int, address: Address, cause: ClearanceCause, reason: str) -> bool:
    """Stop suspecting the member at `address`. Return whether that is allowed.

    A member older than the accepted master stays suspected: mastership has moved on and heartbeats do not bring it back.
    """
    if not state.suspects(address):
        return True
    if not may_clear(state, address):
        return False
    uuid = state.peers[address].uuid
    raised = state.suspicions.pop(uuid)
    state.beliefs_changed()
    state.record(now, SuspicionCleared(address, uuid, reason, cause), raised.evidence.because)
    state.report(facts.SuspicionEnded(address, uuid))
    return True


def may_clear(state: Membership, address: Address) -> bool:
    """Return whether the member at `address` is not older than the accepted master."""
    if state.members is None or state.master is None:
        return True
    return all(older.address != address for older in state.members.older_than(state.master))


def on_link_proven(state: Membership, now: int, fact: facts.LinkProven) -> None:
    """Stop suspecting a member that has replied to a probe: two members that suspect one another send no heartbeats."""
    peer = state.peers.get(fact.address)
    if fact.knows_us and state.suspects(fact.address) and peer is not None and peer.uuid == fact.uuid:
        if clear(state, now, fact.address, "probe-reply", "its reply to a probe proves the link both ways"):
            peer.detector.restart(now)


def on_leave(state: Membership, now: int, sender: Address, goodbye: Leave) -> None:
    """Note that a member stops gracefully."""
    if state.is_listed(sender, goodbye.uuid):
        state.report(facts.EvidenceFound({sender: Evidence("goodbye", "it said goodbye")}))


def _remove(state: Membership, now: int, evidence: Mapping[Address, Evidence]) -> None:
    assert state.members is not None
    gone = frozenset(evidence)
    merge = state.merge
    if merge is not None and merge.phase == "ordering":
        state.report(facts.LostInMerge(gone))  # no version may pass the winner's any more
        return
    for address, found in evidence.items():
        uuid = state.peers[address].uuid
        removed = MemberRemoved(address, uuid, found.text, found.cause, found.silence_us, found.reporter)
        state.record(now, removed, found.because)
    publishing.install(state, now, state.members.without(gone), state.address, "removal")
    publishing.publish(state)
    state.report(facts.Removed(gone))
