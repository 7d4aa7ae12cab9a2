"""Link probes: a question whose answer proves a link in both directions (Decisions: Readmission).

Four chapters need such proof. Suspects are probed now and then, because two members that suspect one another send no
heartbeats that could clear it. A joiner that the master holds back proves its links before it is admitted, and so do the members
of a cluster before it merges into another. An incarnation that asks to join at the address of a listed member proves that it is
alive. Probes are repeated with a growing delay, so they never flood a link that stays down.
"""

from __future__ import annotations

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.membership.facts import LinkProven, LinksReported, SuspectedFact
from quarterdeck.backend.core.membership.failure_detection import suspicion
from quarterdeck.backend.core.membership.messages import LinkProbe, LinkProbeReply, LinksReport, ProveLinks
from quarterdeck.backend.core.membership.state import Membership
from quarterdeck.backend.core.membership.undertakings import Doing, Following, LinkProof, ProbeSchedule
from quarterdeck.backend.core.properties import SECOND_US

PROBE = "probe"
"""Name of the timer that probes suspects."""

PROOF = "proof"
"""Name of the timer that bounds a proof of links."""

PROOF_US = 1 * SECOND_US
"""How long the replies to a proof of links may take."""


def probe(state: Membership, address: Address, uuid: str) -> None:
    """Ask the incarnation `uuid` at `address` for a reply."""
    state.send(address, LinkProbe(state.uuid, uuid))


def on_probe(state: Membership, doing: Doing, now: int, sender: Address, question: LinkProbe) -> None:
    """Reply to every sender."""
    if question.to_uuid == state.uuid:
        known = state.members is not None and state.members.holds(sender, question.uuid)
        state.send(sender, LinkProbeReply(state.uuid, question.uuid, known, question.token))


def on_reply(state: Membership, doing: Doing, now: int, sender: Address, reply: LinkProbeReply) -> None:
    """Note that the link to `sender` works both ways."""
    if reply.to_uuid != state.uuid:
        return
    if state.probes.proof is not None and state.probes.proof.missing.get(sender) == reply.uuid:
        del state.probes.proof.missing[sender]
        if not state.probes.proof.missing:
            _report(state, now, state.probes.proof)
    peer = state.peers.get(sender)
    if peer is not None and peer.uuid == reply.uuid:
        peer.faults = 0
    state.report(LinkProven(sender, reply.uuid, reply.knows_you, reply.token))


def next_delay_us(state: Membership, delay_us: int) -> int:
    """Return the next back-off: from one heartbeat interval on, doubled each time, up to a bound."""
    return min(max(state.settings.heartbeat_interval_us, 2 * delay_us), state.settings.probe_backoff_most_us)


# Suspects


def on_suspected(state: Membership, now: int, fact: SuspectedFact) -> None:
    """Begin to probe members that have just become suspected."""
    delay_us = next_delay_us(state, 0)
    for address in fact.newly:
        state.probes.schedule[address] = ProbeSchedule(now + delay_us, delay_us)
    _plan(state)


def on_probe_timer(state: Membership, now: int) -> None:
    """Probe the suspects that are due, and forget those that are suspected no more."""
    for address in [suspect for suspect in state.probes.schedule if not state.suspects(suspect)]:
        del state.probes.schedule[address]
    for address, probing in state.probes.schedule.items():
        if probing.next_us <= now:
            if suspicion.may_clear(state, address):
                probe(state, address, state.peers[address].uuid)
            probing.delay_us = next_delay_us(state, probing.delay_us)
            probing.next_us = now + probing.delay_us
    _plan(state)


def _plan(state: Membership) -> None:
    if state.probes.schedule:
        state.timers.set(PROBE, min(probing.next_us for probing in state.probes.schedule.values()))


# The proof of all links to another cluster


def on_prove_links(state: Membership, following: Following, now: int, sender: Address, request: ProveLinks) -> None:
    """Find out for the master whether this member reaches all of another cluster."""
    if sender == state.master and state.is_by(request.token, sender):
        prove(state, now, sender, request)


def prove(state: Membership, now: int, asked_by: Address, request: ProveLinks) -> None:
    """Probe all targets and report when all have replied, or after a while."""
    if state.probes.proof is not None and state.probes.proof.token == request.token:
        return
    state.probes.proof = LinkProof(request.token, asked_by, dict(request.targets), now + PROOF_US)
    _probe_missing(state, now, state.probes.proof)


def on_proof_timer(state: Membership, now: int) -> None:
    """Ask again half-way, for a probe may be lost; then report the members whose replies are missing."""
    proof = state.probes.proof
    if proof is None:
        return
    if now < proof.deadline_us:
        _probe_missing(state, now, proof)
    else:
        _report(state, now, proof)


def _probe_missing(state: Membership, now: int, proof: LinkProof) -> None:
    for address, uuid in proof.missing.items():
        probe(state, address, uuid)
    state.timers.set(PROOF, min(proof.deadline_us, now + PROOF_US // 2))


def _report(state: Membership, now: int, proof: LinkProof) -> None:
    state.probes.proof = None
    state.timers.clear(PROOF)
    report = LinksReport(proof.token, tuple(proof.missing))
    if proof.asked_by == state.address:
        state.report(LinksReported(report))
    else:
        state.send(proof.asked_by, report)
