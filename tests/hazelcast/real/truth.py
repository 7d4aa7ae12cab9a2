"""What was true of real members at each moment: the lists that they logged, and what was done to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from quarterdeck.backend.core.address import Address
from tests.hazelcast.real.member_logs import LoggedList

StepKind = Literal["start", "kill", "freeze", "thaw", "cut", "heal"]


class DoneStep(NamedTuple):
    """What the driver has done, and when."""

    at_us: int
    kind: StepKind
    members: tuple[Address, ...] = ()
    """Those that it was done to; of a cut one side, the others being the other."""


@dataclass(frozen=True, slots=True)
class TruthAtMoment:
    """What was true at one moment."""

    lists: Mapping[Address, LoggedList]
    """The list that each running member holds."""
    running: frozenset[Address]
    frozen: frozenset[Address]
    apart: frozenset[Address]
    """One side of the cut; nobody while all links are up."""

    @property
    def masters(self) -> frozenset[Address]:
        """The running members that stand first on their own list."""
        return frozenset(it for it, held in self.lists.items() if held.addresses[0] == it)

    @property
    def whole(self) -> bool:
        """Whether all running members hold one list, and all on it run."""
        held = {it.uuids for it in self.lists.values()}
        on_it = {address for it in self.lists.values() for address in it.addresses}
        return len(held) == 1 and on_it == self.running == self.lists.keys() and not self.frozen

    def is_cut(self, one: Address, other: Address) -> bool:
        """Return whether no packet passes between two members."""
        return (one in self.apart) != (other in self.apart)


@dataclass(frozen=True, slots=True)
class Truth:
    """The lists that each member logged, and the steps that were done, both oldest first."""

    logged: Mapping[Address, Sequence[LoggedList]]
    done: Sequence[DoneStep]

    def at(self, moment_us: int) -> TruthAtMoment:
        """Return what was true at a moment."""
        running: dict[Address, int] = {}
        frozen: set[Address] = set()
        apart: frozenset[Address] = frozenset()
        for step in self.done:
            if step.at_us > moment_us:
                break
            if step.kind == "start":
                running |= dict.fromkeys(step.members, step.at_us)
            elif step.kind == "kill":
                for member in step.members:
                    running.pop(member, None)
                    frozen.discard(member)
            elif step.kind == "freeze":
                frozen |= set(step.members)
            elif step.kind == "thaw":
                frozen -= set(step.members)
            else:
                apart = frozenset(step.members)
        lists = {
            member: held
            for member, since_us in running.items()
            if (held := self._held(member, since_us, moment_us)) is not None
        }
        return TruthAtMoment(lists, frozenset(running), frozenset(frozen), apart)

    def between(self, first_us: int, last_us: int) -> list[TruthAtMoment]:
        """Return all that was true at some moment of a window."""
        changes = [step.at_us for step in self.done]
        changes += [held.at_us for lists in self.logged.values() for held in lists]
        return [self.at(it) for it in (first_us, *sorted(it for it in changes if first_us < it <= last_us))]

    def _held(self, member: Address, since_us: int, moment_us: int) -> LoggedList | None:
        held = [it for it in self.logged.get(member, ()) if since_us <= it.at_us <= moment_us]
        return held[-1] if held else None
