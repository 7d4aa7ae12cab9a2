"""A member whose whole state is checked after each step that does something (`core.data.state_checks`)."""

from __future__ import annotations

from collections.abc import Sequence

from quarterdeck.backend.core.causes import RecordId
from quarterdeck.backend.core.data.state_checks import faults
from quarterdeck.backend.core.effects import Effect
from quarterdeck.backend.core.inputs import Input
from quarterdeck.backend.core.member import MemberMachine


class UnsoundState(AssertionError):
    """The state of a member contradicts itself. The message names the contradiction and the input before it."""


class CheckedMachine(MemberMachine):
    """A member that ends with `UnsoundState` when a step leaves it with a state that contradicts itself."""

    __slots__ = ()

    def step(self, now: int, input: Input, because: RecordId | None = None) -> Sequence[Effect]:
        effects = super().step(now, input, because)
        if effects and (found := faults(self.inspect())):
            raise UnsoundState(f"{self.address}, after {input!r}: {'; '.join(found)}")
        return effects
