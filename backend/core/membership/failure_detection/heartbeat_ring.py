"""The ring topology: heartbeats to a few members instead of to all.

See Emergent Leader, Avoiding all-to-all heartbeating; Decisions: Heartbeat topology.

The members of the list form a ring. Each watches the next few that it does not suspect, and every slave watches the master too. A
watcher reports a silent member to all others, and repeats that until the member is off the list or heard of again. A member that
gets the report asks the silent member itself, for only the link of the watcher may be broken.
"""

from __future__ import annotations

from collections.abc import Iterator

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.causes import Evidence, RecordId
from quarterdeck.backend.core.membership.facts import EvidenceFound, Installed, LinkProven, SuspicionEnded
from quarterdeck.backend.core.membership.failure_detection import link_probes, silence, suspicion
from quarterdeck.backend.core.membership.failure_detection.failure_detector import Peer
from quarterdeck.backend.core.membership.messages import FailureReport
from quarterdeck.backend.core.membership.state import Membership
from quarterdeck.backend.core.membership.undertakings import Doing


def watched_peers(state: Membership, now: int) -> dict[Address, Peer]:
    """Return the members that this member watches. One that it begins to watch counts as heard now."""
    if state.settings.heartbeat_topology == "all":
        return state.peers
    if not state.ring.is_current:
        chosen = [*_next_unsuspected(state, forward=True)]
        chosen += [master for master in _known_master(state) if master not in chosen and not state.suspects(master)]
        chosen += [held.address for held in state.suspicions.values() if held.address in state.ring.first_hand]
        before, state.ring.watched = state.ring.watched, {address: state.peers[address].uuid for address in chosen}
        for address, uuid in state.ring.watched.items():
            if before.get(address) != uuid:
                state.peers[address].detector.restart(now)
        for address, uuid in before.items():
            peer = state.peers.get(address)
            if peer is not None and peer.uuid == uuid and peer.late and address not in state.ring.watched:
                silence.end_lateness(state, now, address, peer, silence_us=0)
        state.ring.is_current = True
    return {address: state.peers[address] for address in state.ring.watched}


def receivers(state: Membership) -> Iterator[tuple[Address, Peer]]:
    """Yield the members to which this one sends its heartbeats.

    These are the members that watch it, and the master, which learns from them which members lag and whom they suspect.
    """
    if state.settings.heartbeat_topology == "all" or state.master == state.address:
        chosen: Iterator[Address] = iter(state.peers)
    else:
        chosen = iter(dict.fromkeys([*_next_unsuspected(state, forward=False), *_known_master(state)]))
    peers = ((address, state.peers[address]) for address in chosen)
    return ((address, peer) for address, peer in peers if peer.uuid not in state.suspicions)


def findings(state: Membership, now: int, silent: dict[Address, Evidence]) -> dict[Address, Evidence]:
    """Return the members to suspect, of those that this member has found silent.

    On a ring a silent member may only not know that it is watched from here. So it is asked once, and suspected when it has not
    replied until the next look.
    """
    if state.settings.heartbeat_topology == "all":
        return silent
    found = {address: evidence for address, evidence in silent.items() if address in state.ring.asked}
    for address in silent:
        if address not in found:
            link_probes.probe(state, address, state.peers[address].uuid)
    state.ring.asked = set(silent) - set(found)
    for address in found:
        add_first_hand_suspect(state, address)
    return found


def add_first_hand_suspect(state: Membership, address: Address) -> None:
    """Note own evidence against `address`, which the others of a ring have to hear of."""
    if state.settings.heartbeat_topology == "ring":
        state.ring.first_hand.add(address)


def on_link_proven(state: Membership, now: int, fact: LinkProven) -> None:
    """Trust a silent member that has answered and has this one on its list; if others cannot reach it, that is another matter."""
    address, peer = fact.address, state.peers.get(fact.address)
    if not fact.knows_us or peer is None or peer.uuid != fact.uuid:
        return
    state.ring.reported.pop(address, None)
    if address in state.ring.asked:
        state.ring.asked.discard(address)
        peer.detector.restart(now)


def on_installed(state: Membership, now: int, fact: Installed) -> None:
    """Forget what was found about incarnations that are gone: it does not apply to the next ones at their addresses."""
    for address in fact.gone:
        state.ring.reported.pop(address, None)
        state.ring.asked.discard(address)
        state.ring.first_hand.discard(address)


def first_hand(state: Membership) -> tuple[Address, ...]:
    """Return the members that this member suspects by its own evidence. Others report the rest themselves."""
    on_ring = state.settings.heartbeat_topology == "ring"
    suspected = state.suspected_addresses
    return tuple(address for address in suspected if address in state.ring.first_hand) if on_ring else suspected


def report_findings(state: Membership, now: int) -> None:
    """Report to all others, at each heartbeat, the members that this one has found silent."""
    if not state.ring.first_hand:
        return
    for address in sorted(state.ring.first_hand):
        peer = state.peers.get(address)
        if peer is None or peer.uuid not in state.suspicions:
            state.ring.first_hand.discard(address)
        else:
            found = state.suspicions[peer.uuid].evidence
            report = FailureReport(address, peer.uuid, False, found.text, found.cause, found.silence_us)
            _spread(state, report, found.because)


def on_suspicion_ended(state: Membership, now: int, fact: SuspicionEnded) -> None:
    """Withdraw the report of a silent member that is heard again."""
    if fact.address in state.ring.first_hand:
        state.ring.first_hand.discard(fact.address)
        _spread(state, FailureReport(fact.address, fact.uuid, True, ""))


def on_failure_report(state: Membership, doing: Doing, now: int, sender: Address, report: FailureReport) -> None:
    """Ask a member that a watcher reports as silent. A member that watches it too trusts its own observation."""
    peer = state.peers.get(report.suspect)
    if sender not in state.peers or peer is None or peer.uuid != report.suspect_uuid:
        return
    if report.withdrawn:
        suspicion.clear(state, now, report.suspect, "report-withdrawn", f"{sender} hears of it again")
    elif peer.uuid not in state.suspicions and not _hears(state, now, report.suspect):
        if report.suspect not in state.ring.reported:
            text = f"{sender} reports: {report.reason}"
            found = Evidence(report.cause, text, report.silence, sender, state.context.cause)
            state.ring.reported[report.suspect] = found
            link_probes.probe(state, report.suspect, peer.uuid)


def suspect_reported_silent(state: Membership, now: int) -> None:
    """Suspect, at the next heartbeat, the reported members that have not answered this member either."""
    if state.ring.reported:
        reported_silent, state.ring.reported = state.ring.reported, {}
        state.report(EvidenceFound(reported_silent))


def _known_master(state: Membership) -> tuple[Address, ...]:
    return (state.master,) if state.master in state.peers else ()


def _hears(state: Membership, now: int, address: Address) -> bool:
    peer = watched_peers(state, now).get(address)
    return peer is not None and peer.detector.silence_us(now) < 2 * state.settings.heartbeat_interval_us


def _next_unsuspected(state: Membership, *, forward: bool) -> Iterator[Address]:
    """Yield the next few on the ring from this member on, in one direction, leaving out those it suspects."""
    assert state.members is not None
    addresses = state.members.addresses
    place = addresses.index(state.address)
    ring = [*addresses[place + 1 :], *addresses[:place]]
    if not forward:
        ring.reverse()
    left = state.settings.ring_successors
    for address in ring:
        if left and not state.suspects(address):
            left -= 1
            yield address


def _spread(state: Membership, report: FailureReport, because: RecordId | None = None) -> None:
    state.send_all(tuple(address for address in state.peers if not state.suspects(address)), report, because)
