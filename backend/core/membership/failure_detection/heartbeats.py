"""Heartbeats between all members, and the check for those that stay away.

Sources: Cluster Service Consistency Improvements; Emergent Leader, Failure Detection; Hazelcast: heartbeats and suspicion.

A round is the same messages again until the list, the master or the suspicions change. So it is made once and sent many times.
"""

from __future__ import annotations

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.causes import Evidence
from quarterdeck.backend.core.effects import Transmit
from quarterdeck.backend.core.membership import mastership_claim
from quarterdeck.backend.core.membership.facts import EvidenceFound
from quarterdeck.backend.core.membership.failure_detection import explicit_suspicion, heartbeat_ring, silence, suspicion
from quarterdeck.backend.core.membership.failure_detection.silence import discount_own_pause
from quarterdeck.backend.core.membership.messages import Heartbeat
from quarterdeck.backend.core.membership.partial_disconnection import disconnection_reports
from quarterdeck.backend.core.membership.state import Membership
from quarterdeck.backend.core.membership.undertakings import Claim, Doing, Leading
from quarterdeck.backend.core.membership.views import publishing
from quarterdeck.backend.core.properties import SECOND_US, Settings
from quarterdeck.backend.core.timers import NEVER

HEARTBEAT = "heartbeat"
"""Name of the timer of the heartbeat round."""


def look_for_silence(state: Membership, now: int) -> None:
    """Find the silent and the late at the beginning of each round, unless no member can be silent yet."""
    if now - state.last_round_us >= state.pause_us:
        discount_own_pause(state, now)
    state.last_round_us = now
    if now >= state.all_heard_until_us:
        _look_for_silence(state, now)


def end_round(state: Membership, now: int) -> None:
    """Send heartbeats to the unsuspected at the end of each round, when all has followed from what was found."""
    send_round(state)
    state.timers.set(HEARTBEAT, now + state.settings.heartbeat_interval_us)


def apply_settings(state: Membership, now: int, settings: Settings) -> None:
    """Judge every silence by changed settings, and begin the next round no later than they say."""
    due_us = state.timers.deadline_us(HEARTBEAT)
    if due_us is not None:
        discount_own_pause(state, now)
    state.apply_settings(settings)
    for peer in state.peers.values():
        peer.detector.adopt(state.settings)
    if due_us is not None:
        state.last_round_us = now  # the round before was timed by the old interval: no pause is to be read from it
        state.timers.set(HEARTBEAT, min(due_us, now + state.settings.heartbeat_interval_us))


def send_round(state: Membership) -> None:
    """Send a heartbeat to every member that is not suspected."""
    context = state.context
    if context.heartbeat_round is None:
        context.heartbeat_round = Transmit(_make_round(state), state.latest_suspicion)
    if context.heartbeat_round.deliveries:
        context.effects.append(context.heartbeat_round)


def on_heartbeat(state: Membership, doing: Doing, now: int, sender: Address, beat: Heartbeat) -> None:
    """Note that the sender is alive, and all that may follow from its heartbeat."""
    peer = state.peers.get(sender)
    if peer is None or peer.uuid != beat.uuid or beat.to_uuid != state.uuid:
        if beat.to_uuid == state.uuid and mastership_claim.heard_of_asked(state, now, sender, beat.uuid):
            return
        explicit_suspicion.on_stray_heartbeat(state, doing, now, sender, beat)
        return
    if peer.late:
        silence.end_lateness(state, now, sender, peer, peer.detector.silence_us(now))
    peer.detector.heard(now)
    peer.faults = 0
    if state.suspicions:
        suspicion.clear(state, now, sender, "heartbeat", "it sent a valid heartbeat")
    if beat.suspects or state.disconnections.by_reporter:
        disconnection_reports.on_report(state, now, sender, beat.suspects, beat.version)
    if beat.version < state.members.version:  # type: ignore[union-attr]
        if isinstance(doing, Leading):
            publishing.on_lagging(state, now, sender, peer, beat.version)
    else:
        peer.behind_since_us = 0


def _look_for_silence(state: Membership, now: int) -> None:
    """Find the silent and the late members, and the time before which looking again is of no use."""
    silent: dict[Address, Evidence] = {}
    until_us = NEVER
    late_after_us = state.late_after_us
    for address, peer in heartbeat_ring.watched_peers(state, now).items():
        if peer.uuid in state.suspicions:
            continue
        detector = peer.detector
        silent_us = detector.silent_from_us()
        if silent_us <= now and not detector.alive(now):
            silence_us = detector.silence_us(now)
            text = f"no heartbeat for {silence_us / SECOND_US:.1f} s"
            silent[address] = Evidence("no-heartbeat", text, silence_us, because=peer.lateness)
            continue
        # The grace of a newcomer ends in the future, and its first heartbeat may come any time.
        late_us = min(detector.last_heard_us, now) + late_after_us
        if late_us <= now or peer.late:
            silence.look_at(state, now, address, peer)
        if late_us <= now or not silent_us:
            late_us = silent_us
        if late_us < until_us:
            until_us = late_us
    state.all_heard_until_us = 0 if silent else until_us
    if silent:
        found = heartbeat_ring.findings(state, now, silent)
        if found:
            state.report(EvidenceFound(found))


def _make_round(state: Membership) -> tuple[tuple[Address, Heartbeat], ...]:
    members, master = state.members, state.master
    if members is None or master is None:
        return ()
    reporting = state.settings.disconnection_heartbeats > 0 and master != state.address
    suspects = heartbeat_ring.first_hand(state) if reporting else ()
    receivers = [*heartbeat_ring.receivers(state)]
    if isinstance(state.doing, Claim):
        receivers += mastership_claim.followers_off_the_list(state.doing)
    return tuple(
        (address, Heartbeat(state.uuid, peer.uuid, master, members.version, suspects if address == master else ()))
        for address, peer in receivers
    )
