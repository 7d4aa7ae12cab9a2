"""The members of a model: incarnations that can be gone back to, and incarnations that are run once.

Both are named by numbers. To the explorer every number is a state, and stepping leads to another one; to the repeated run of
one schedule a number is a member that changes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.commands.commands import CommandRefused, KillAt
from quarterdeck.backend.core.data.calls.operations import Answer
from quarterdeck.backend.core.effects import Deliveries, Effect, carry_out
from quarterdeck.backend.core.events import ListInstalled, Record
from quarterdeck.backend.core.inputs import START, Input
from quarterdeck.backend.core.member import MemberConfiguration, MemberMachine

Sent = tuple[Address, int]
"""To whom, and the number of the message."""


class Step(Struct, frozen=True):
    """What came of one input: the state after it, what was sent, and whether the process ended by itself."""

    state: int
    sent: tuple[Sent, ...]
    records: tuple[Record, ...]
    ended: bool


class Incarnations(Protocol):
    """Members that can be started, stepped and asked for their next deadline."""

    def start(self, member: MemberConfiguration, life: int, now_us: int) -> Step: ...

    def step(self, state: int, now_us: int, number: int) -> Step: ...

    def deadline_us(self, state: int) -> int: ...


class Inputs:
    """Every input and message that was ever met, by number: equal ones have the same."""

    def __init__(self) -> None:
        self.known: list[object] = []
        self._numbers: dict[str, int] = {}

    def number(self, input: object) -> int:
        """The number of `input`."""
        text = repr(input)
        number = self._numbers.get(text)
        if number is None:
            number = self._numbers[text] = len(self.known)
            self.known.append(input)
        return number


class CountedRandomness:
    """Numbers that differ for every draw of every life, and are the same in every order of events."""

    __slots__ = ("_drawn", "_name")

    def __init__(self, name: str) -> None:
        self._name = name
        self._drawn = 0

    def getrandbits(self, bits: int, /) -> int:
        """The next number of so many bits."""
        self._drawn += 1
        digest = hashlib.blake2b(f"{self._name}/{self._drawn}".encode()).digest()
        return int.from_bytes(digest) & ((1 << bits) - 1)


class FrozenIncarnations:
    """Members as states to which the explorer can go back. No step is made twice, and equal states are one."""

    def __init__(self, inputs: Inputs) -> None:
        self._inputs = inputs
        self._configurations: list[MemberConfiguration] = []
        self._frozen: list[bytes] = []
        self._lists: list[tuple[str, ...]] = []
        """The lists that led to each state: what invariants know of the past belongs to a state."""
        self._deadlines: list[int] = []
        self._numbers: dict[bytes, int] = {}
        self._made: dict[tuple[int, int, int], Step] = {}
        self._started: dict[tuple[str, int, int], Step] = {}

    def __len__(self) -> int:
        return len(self._frozen)

    def start(self, member: MemberConfiguration, life: int, now_us: int) -> Step:
        """A new process of `member`, the `life`-th one."""
        key = (member.label, life, now_us)
        step = self._started.get(key)
        if step is None:
            machine = MemberMachine(member, CountedRandomness(f"{member.label}/{life}"))
            effects = machine.step(now_us, START)
            step = self._started[key] = self._after(machine, member, effects, ())
        return step

    def step(self, state: int, now_us: int, number: int) -> Step:
        """What the input of this number leads to."""
        key = (state, now_us, number)
        step = self._made.get(key)
        if step is None:
            member = self._configurations[state]
            machine = MemberMachine.restored(self._frozen[state], member)
            input: Input = self._inputs.known[number]  # type: ignore[assignment]
            try:
                effects = machine.step(now_us, input)
            except CommandRefused:
                effects = ()
            step = self._made[key] = self._after(machine, member, effects, self._lists[state])
        return step

    def deadline_us(self, state: int) -> int:
        """When the member wants its next tick."""
        return self._deadlines[state]

    def _after(
        self, machine: MemberMachine, member: MemberConfiguration, effects: Sequence[Effect], lists: tuple[str, ...]
    ) -> Step:
        outcome = Outcome(self._inputs)
        carry_out(effects, outcome)
        lists += tuple(
            f"{record.uuid} {record.event.lineage} {record.event.version}"
            for record in outcome.records
            if isinstance(record.event, ListInstalled)
        )
        text = f"{member.label}{lists}{machine.canonical(0)}"
        digest = hashlib.blake2b(text.encode(), digest_size=16).digest()
        state = self._numbers.get(digest)
        if state is None:
            state = self._numbers[digest] = len(self._frozen)
            self._frozen.append(machine.snapshot())
            self._configurations.append(member)
            self._lists.append(lists)
            self._deadlines.append(machine.next_deadline)
        return Step(state, tuple(outcome.sent), tuple(outcome.records), outcome.ended)


class RunningIncarnations:
    """Members that run once and are never gone back to."""

    def __init__(self, inputs: Inputs) -> None:
        self._inputs = inputs
        self.machines: list[MemberMachine] = []

    def start(self, member: MemberConfiguration, life: int, now_us: int) -> Step:
        """A new process of `member`, the `life`-th one."""
        machine = MemberMachine(member, CountedRandomness(f"{member.label}/{life}"))
        self.machines.append(machine)
        return self._after(len(self.machines) - 1, machine.step(now_us, START))

    def step(self, state: int, now_us: int, number: int) -> Step:
        """What the input of this number leads to."""
        input: Input = self._inputs.known[number]  # type: ignore[assignment]
        try:
            return self._after(state, self.machines[state].step(now_us, input))
        except CommandRefused:
            return self._after(state, ())

    def deadline_us(self, state: int) -> int:
        """When the member wants its next tick."""
        return self.machines[state].next_deadline

    def _after(self, state: int, effects: Sequence[Effect]) -> Step:
        outcome = Outcome(self._inputs)
        carry_out(effects, outcome)
        return Step(state, tuple(outcome.sent), tuple(outcome.records), outcome.ended)


class Outcome:
    """Collects the effects of one step: a `backend.core.effects.MemberProcess`."""

    kill_point: KillAt | None = None

    def __init__(self, inputs: Inputs) -> None:
        self._inputs = inputs
        self.sent: list[Sent] = []
        self.records: list[Record] = []
        self.ended = False

    def transmit(self, deliveries: Deliveries) -> None:
        self.sent += [(address, self._inputs.number(message)) for address, message in deliveries]

    def record(self, record: Record) -> None:
        self.records.append(record)

    def answer(self, call: int, answer: Answer) -> None:
        """Nobody waits for answers here: what was acknowledged is in the records."""

    def reconnect(self) -> None:
        """There are no connections here."""

    def halt(self, reason: str, *, failed: bool) -> None:
        self.ended = True

    def reach_kill_point(self) -> None:
        """Kills are choices of the explorer."""
