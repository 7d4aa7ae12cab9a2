"""Addresses at which a member looks for others in vain, and not for silence (Decisions: Members that everybody refuses)."""

from __future__ import annotations

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.causes import REFUSALS, Reason, UnreachableCause
from quarterdeck.backend.core.membership.events import AddressUnusable
from quarterdeck.backend.core.membership.state import Membership


def on_unreachable(state: Membership, now: int, address: Address, found: Reason[UnreachableCause]) -> None:
    """Note that the transport could not reach `address`."""
    known = state.unusable.get(address)
    if known is not None and known.cause in REFUSALS and found.cause in REFUSALS[: REFUSALS.index(known.cause)]:
        return  # a member that has refused this one need not say so each time
    if found.cause in ("no-answer", "itself"):
        state.unusable.pop(address, None)
    elif known is None or known.cause != found.cause:
        for other in [one for one in state.unusable if one not in state.join_list and one not in state.remembered]:
            del state.unusable[other]
        state.unusable[address] = found
        state.record(now, AddressUnusable(address, found.text, found.cause))


def described(state: Membership, address: Address) -> str:
    """Return the address with what is known to be wrong with it."""
    found = state.unusable.get(address)
    return f"{address} ({found.text})" if found is not None else address
