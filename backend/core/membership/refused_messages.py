"""Messages that this member refuses: they are counted and recorded, and change nothing else."""

from __future__ import annotations

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.membership.events import MessageRefused
from quarterdeck.backend.core.membership.state import Membership
from quarterdeck.backend.core.membership.undertakings import RefusedMessages
from quarterdeck.backend.core.properties import SECOND_US

AGAIN_US = 60 * SECOND_US
"""A peer whose messages are refused again and again is recorded once in this time."""

MOST_SENDERS = 64
"""The refusals of so many addresses are recorded in that time, whatever addresses a peer gives itself."""


def refuse(state: Membership, now: int, sender: Address, kind: str, reason: str) -> None:
    """Count a refused message, and record it if none of its sender was recorded lately."""
    known = state.refused_messages
    before = known.pop(sender, None)
    if before is None and len(known) >= MOST_SENDERS:
        oldest = next(iter(known))
        if known[oldest].recorded_us > now - AGAIN_US:
            return
        del known[oldest]
    refused = 1 if before is None else before.refused + 1
    if before is not None and before.recorded_us > now - AGAIN_US:
        known[sender] = before._replace(refused=refused)
        return
    known[sender] = RefusedMessages(refused, now)
    state.record(now, MessageRefused(sender, kind, reason, refused))
