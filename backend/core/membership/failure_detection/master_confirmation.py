"""Master confirmation: a slave confirms to its master now and then that it still follows it.

See Cluster Service Consistency Improvements, Terminology; Decisions: Master confirmation.

A master removes a slave that does not confirm for too long, although its heartbeats may come: it follows another master. A member
that gets a confirmation without being that slave's master asks to be suspected, so that it is not
followed in vain.
"""

from __future__ import annotations

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.causes import Evidence
from quarterdeck.backend.core.membership.facts import EvidenceFound, Joined
from quarterdeck.backend.core.membership.failure_detection import explicit_suspicion
from quarterdeck.backend.core.membership.failure_detection.silence import discount_own_pause
from quarterdeck.backend.core.membership.messages import MasterConfirmation
from quarterdeck.backend.core.membership.state import Membership
from quarterdeck.backend.core.membership.undertakings import Claim, Following, Leading
from quarterdeck.backend.core.membership.views import publishing
from quarterdeck.backend.core.properties import SECOND_US

CONFIRMATION = "confirmation"
"""Name of the timer at which a slave confirms and a master looks who has not."""


def on_confirmation_timer(state: Membership, now: int) -> None:
    """Confirm to the master; or, as the master, remove those that have not confirmed.

    A master that stood still removes no member.
    """
    discount_own_pause(state, now)
    if state.is_master:
        for peer in state.peers.values():
            if peer.detector.last_heard_us > now:
                peer.confirmed_us = now  # a newcomer that has not been heard of yet
        limit_us = state.settings.max_no_master_confirmation_us
        waited_us = {address: now - peer.confirmed_us for address, peer in state.peers.items()}
        silent = {address: _evidence(us) for address, us in waited_us.items() if us >= limit_us}
        if silent:
            state.report(EvidenceFound(silent))
    elif isinstance(state.doing, Following) and state.master in state.peers and not state.suspects(state.master):
        state.send(state.master, MasterConfirmation(state.metadata(), state.peers[state.master].uuid))
    state.timers.set(CONFIRMATION, now + state.settings.master_confirmation_interval_us)


def on_confirmation(
    state: Membership, doing: Leading | Claim, now: int, sender: Address, confirmation: MasterConfirmation
) -> None:
    """Note that a slave confirms, or believes that it does. While a claim runs the slave is not sent the list that it lacks."""
    peer = state.peers.get(sender)
    if confirmation.to_uuid != state.uuid:
        return
    if peer is not None and peer.uuid == confirmation.about.uuid:
        peer.confirmed_us = now
        if isinstance(doing, Leading) and state.members and confirmation.about.version < state.members.version:
            publishing.publish_to(state, sender)
    elif isinstance(doing, Leading):
        explicit_suspicion.send(state, now, confirmation.about, "confirmation-of-stranger")


def on_confirmation_of_slave(
    state: Membership, following: Following, now: int, sender: Address, confirmation: MasterConfirmation
) -> None:
    """Answer a member that confirms this one as its master, though this one leads no cluster."""
    if confirmation.to_uuid == state.uuid:
        explicit_suspicion.send(state, now, confirmation.about, "confirmed-as-master")


def on_joined(state: Membership, now: int, fact: Joined) -> None:
    """Begin to confirm, or to look for confirmations."""
    state.timers.set(CONFIRMATION, now + state.settings.master_confirmation_interval_us)


def _evidence(silence_us: int) -> Evidence:
    return Evidence("no-confirmation", f"no master confirmation for {silence_us / SECOND_US:.1f} s", silence_us)
