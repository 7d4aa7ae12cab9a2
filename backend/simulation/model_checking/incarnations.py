"""The members of a model: incarnations that can be gone back to, and incarnations that are run once.

Both are named by numbers. To the explorer every number is a state, and stepping leads to another one; to the repeated run of
one schedule a number is a member that changes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from msgspec import Struct

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.causes import RecordId
from quarterdeck.backend.core.commands import CommandRefused, KillAt
from quarterdeck.backend.core.effects import Deliveries, Effect, Incarnations, carry_out
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.inputs import START, Input
from quarterdeck.backend.core.member import MemberConfiguration, MemberMachine
from quarterdeck.backend.core.membership.events import ListInstalled
from quarterdeck.backend.core.membership.views.member_list import MemberList
from quarterdeck.backend.core.operations import Answer
from quarterdeck.backend.simulation.checked_machine import CheckedMachine
from quarterdeck.backend.simulation.model_checking.spilling import Snapshots

Sent = tuple[Address, int]
"""To whom, and the number of the message."""


class SteppedMember(Struct, frozen=True):
    """The result of one input: the state after it, the sent messages, and whether the process ended by itself."""

    state: int
    sent: tuple[Sent, ...]
    records: tuple[Record, ...]
    ended: bool


class MemberStepper(Protocol):
    """Members that can be started, stepped and asked for their next deadline."""

    def start(self, member: MemberConfiguration, process: int, now_us: int) -> SteppedMember: ...

    def step(self, state: int, now_us: int, number: int) -> SteppedMember: ...

    def deadline_us(self, state: int) -> int: ...


def number_of(text: str) -> int:
    """Return a number for the text: the same in every process, and another one for every other text."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest()) >> 1


class Inputs:
    """Every input and message that was ever met, by number: equal ones have the same."""

    def __init__(self) -> None:
        self.known: dict[int, object] = {}
        self._numbers: dict[str, int] = {}

    def number(self, input: object) -> int:
        text = repr(input)
        number = self._numbers.get(text)
        if number is None:
            number = self._numbers[text] = number_of(text)
            self.known[number] = input
        return number

    def adopt(self, number: int, input: object) -> None:
        if number not in self.known:
            self._numbers[repr(input)] = number
            self.known[number] = input


class CountedRandomness:
    """Numbers that differ for every draw of every incarnation, and are the same in every order of events."""

    __slots__ = ("_drawn", "_name")

    def __init__(self, name: str) -> None:
        self._name = name
        self._drawn = 0

    def getrandbits(self, bits: int, /) -> int:
        self._drawn += 1
        digest = hashlib.blake2b(f"{self._name}/{self._drawn}".encode()).digest()
        return int.from_bytes(digest) & ((1 << bits) - 1)


class KnownRecords:
    """Every record that a search has met. Two that differ in nothing but their number and their cause are one."""

    def __init__(self, relevant: Callable[[type], bool]) -> None:
        """`relevant` says of which events it makes a difference in which order they happened."""
        self.known: dict[int, Record] = {}
        self._relevant = relevant
        self._numbers: dict[int, int] = {}
        """The numbers of known records by identity. Known records are kept, so that no other record ever has their identity."""

    def number(self, record: Record) -> int:
        number = self._numbers.get(id(record))
        if number is None:
            number = number_of(f"{record.uuid} {record.at} {record.event}")
            self.adopt(number, record)
        return number

    def adopt(self, number: int, record: Record) -> None:
        if number not in self.known:
            self.known[number] = record
            self._numbers[id(record)] = number

    def is_relevant(self, number: int) -> bool:
        """Whether it matters in which order it happened."""
        return self._relevant(type(self.known[number].event))


class KnownMember(Struct, frozen=True):
    """A member between two steps, as the search knows it. Two with the same future that installed the same lists are one."""

    label: str
    lists: tuple[str, ...]
    """The lists that led here: the invariants' knowledge of the past belongs to a state."""
    deadline_us: int
    members: MemberList | None
    """The list that it follows, if any."""


MOST_STEPS = 200_000
"""The number of remembered steps of members. A forgotten step is computed again when it is needed."""


class FrozenIncarnations:
    """Members as states to which the explorer can go back. Steps are remembered, and equal states are one."""

    def __init__(
        self, inputs: Inputs, records: KnownRecords, configurations: Iterable[MemberConfiguration], memory_bytes: int
    ) -> None:
        """Past `memory_bytes`, snapshots go into a file."""
        self._inputs = inputs
        self._records = records
        self._configurations = {configuration.label: configuration for configuration in configurations}
        self.known: dict[int, KnownMember] = {}
        self._snapshots = Snapshots(memory_bytes)
        self._made: dict[tuple[int, int, int], SteppedMember] = {}
        self._started: dict[tuple[str, int, int], SteppedMember] = {}

    def start(self, member: MemberConfiguration, process: int, now_us: int) -> SteppedMember:
        key = (member.label, process, now_us)
        step = self._started.get(key)
        if step is None:
            machine = CheckedMachine(member, CountedRandomness(f"{member.label}/{process}"))
            effects = machine.step(now_us, START)
            step = self._started[key] = self._after(machine, member.label, effects, ())
        return step

    def step(self, state: int, now_us: int, number: int) -> SteppedMember:
        key = (state, now_us, number)
        step = self._made.get(key)
        if step is None:
            before = self.known[state]
            machine = CheckedMachine.restored(self._snapshots[state], self._configurations[before.label])
            input: Input = self._inputs.known[number]  # type: ignore[assignment]
            try:
                effects = machine.step(now_us, input)
            except CommandRefused:
                effects = ()
            if len(self._made) >= MOST_STEPS:
                self._made.clear()
            step = self._made[key] = self._after(machine, before.label, effects, before.lists)
        return step

    def deadline_us(self, state: int) -> int:
        return self.known[state].deadline_us

    def snapshot(self, number: int) -> bytes:
        return self._snapshots[number]

    def adopt(self, number: int, member: KnownMember, snapshot: bytes) -> None:
        if number not in self.known:
            self.known[number] = member
            self._snapshots[number] = snapshot

    def _after(
        self, machine: MemberMachine, label: str, effects: Sequence[Effect], lists: tuple[str, ...]
    ) -> SteppedMember:
        outcome = StepEffects(self._inputs)
        carry_out(effects, outcome)
        for record in outcome.records:
            if isinstance(record.event, ListInstalled):
                lists += (f"{record.uuid} {record.event.lineage} {record.event.version}",)
        text = f"{label}{lists}{machine.canonical()}"
        state = number_of(text)
        if state not in self.known:
            known = KnownMember(label, lists, machine.next_deadline, machine.inspect().members)
            self.adopt(state, known, machine.snapshot())
        # Of all records that are equal, the one that was met first.
        records = tuple(self._records.known[self._records.number(record)] for record in outcome.records)
        return SteppedMember(state, tuple(outcome.sent), records, outcome.ended)


class RunningIncarnations:
    """Members that run once and are never gone back to."""

    def __init__(self, inputs: Inputs) -> None:
        self._inputs = inputs
        self.machines: list[MemberMachine] = []

    def start(self, member: MemberConfiguration, process: int, now_us: int) -> SteppedMember:
        machine = CheckedMachine(member, CountedRandomness(f"{member.label}/{process}"))
        self.machines.append(machine)
        return self._after(len(self.machines) - 1, machine.step(now_us, START))

    def step(self, state: int, now_us: int, number: int) -> SteppedMember:
        input: Input = self._inputs.known[number]  # type: ignore[assignment]
        try:
            return self._after(state, self.machines[state].step(now_us, input))
        except CommandRefused:
            return self._after(state, ())

    def deadline_us(self, state: int) -> int:
        return self.machines[state].next_deadline

    def _after(self, state: int, effects: Sequence[Effect]) -> SteppedMember:
        outcome = StepEffects(self._inputs)
        carry_out(effects, outcome)
        return SteppedMember(state, tuple(outcome.sent), tuple(outcome.records), outcome.ended)


class StepEffects:
    """Collects the effects of one step: a `backend.core.effects.MemberProcess`."""

    kill_point: KillAt | None = None

    def __init__(self, inputs: Inputs) -> None:
        self._inputs = inputs
        self.sent: list[Sent] = []
        self.records: list[Record] = []
        self.ended = False

    def transmit(self, deliveries: Deliveries, because: RecordId | None) -> None:
        """Causes are left out: they would make two states of one."""
        self.sent += [(address, self._inputs.number(message)) for address, message in deliveries]

    def record(self, record: Record) -> None:
        self.records.append(record)

    def answer(self, call: int, answer: Answer) -> None:
        """Ignore the answer: no client waits for it here; acknowledgements are in the records."""

    def disconnect(self, incarnations: Incarnations | None) -> None:
        """Do nothing: a model has no connections."""

    def halt(self, reason: str, *, failed: bool) -> None:
        self.ended = True

    def reach_kill_point(self) -> None:
        """Kills are choices of the explorer."""
