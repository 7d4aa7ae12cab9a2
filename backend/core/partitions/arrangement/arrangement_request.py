"""The first arrangement: made when data is first used, or when somebody asks for it.

See Hazelcast: first arrangement; Decisions: First arrangement.
"""

from __future__ import annotations

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.partitions.messages import ArrangeRequest
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.core.state.member_state import MemberState

ARRANGE = "first arrangement"
"""Name of the timer that asks the master again."""

ASK_AGAIN_US = 1 * SECOND_US


def ask_for_arrangement(state: MemberState, now: int) -> None:
    """See to it that there will be a table. A member that has not joined yet asks once it has a master."""
    partitions = state.partitions
    if partitions.table is None and not partitions.wants_arrangement:
        partitions.wants_arrangement = True
        _ask(state, now)


def on_arrange_request(state: MemberState, now: int, sender: Address, request: ArrangeRequest) -> None:
    """Note that a member needs partitions. The master makes them as soon as it may; see `master_role`."""
    if state.is_master and sender in state.peers and state.partitions.table is None:
        ask_for_arrangement(state, now)
        state.timers.set(ARRANGE, now)  # nothing is sent yet, but there is something to do


def on_arrange_timer(state: MemberState, now: int) -> None:
    """Ask again while there is no table."""
    if state.partitions.wants_arrangement:
        _ask(state, now)


def _ask(state: MemberState, now: int) -> None:
    if state.members is not None and state.master is not None and state.master != state.address:
        state.send(state.master, ArrangeRequest())
    state.timers.set(ARRANGE, now + ASK_AGAIN_US)
