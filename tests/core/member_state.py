"""The way into a member, for tests alone.

Most tests give a member inputs and look at it with `MemberMachine.inspect`. These two are for the others: tests of a single
handler, which call it with the state that it works on, and tests that begin in a state to which no inputs lead.
"""

from __future__ import annotations

from collections.abc import Sequence

from quarterdeck.backend.core import member
from quarterdeck.backend.core.data.state import MemberState
from quarterdeck.backend.core.effects import Effect
from quarterdeck.backend.core.member import MemberMachine


def state_of(machine: MemberMachine) -> MemberState:
    """The state inside `machine`, to be handed to a handler or to be changed. After a change `conclude` belongs."""
    return machine._state


def conclude(machine: MemberMachine, now: int) -> Sequence[Effect]:
    """Let what a test has changed in the state have its consequences, as after every input; the effects of all of it."""
    return member.conclude(machine._state, now)
