"""A run in which nothing happens by itself: what comes next is said, one thing after another.

Its members run once and are never gone back to. Where time is let pass, the cluster is left alone: messages arrive at once, and
clocks go on together.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from quarterdeck.backend.core.commands import Command, CommandRefused
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.inputs import PeerUnreachable
from quarterdeck.backend.core.properties import SECOND_US, Settings
from quarterdeck.backend.scenarios.format.scenario import UNREACHABLE, OnItsWay, ScheduledChoice, ScheduleDoesNotFit
from quarterdeck.backend.simulation.model_checking.incarnations import Inputs, RunningIncarnations
from quarterdeck.backend.simulation.model_checking.model import DOWN, KNOWN_COMMANDS, MessageInFlight, Model, Transition
from quarterdeck.backend.simulation.model_checking.transitions import Transitions

FORMING_US = 5 * SECOND_US
"""So long after each start the cluster is left alone."""


class ScheduledRun:
    """A cluster that follows a schedule: the driver of a scenario with a schedule."""

    def __init__(self, model: Model, on_record: Callable[[Record], None]) -> None:
        """Of `model` the members, settings, join lists and prompt messages count; what happens to them comes later."""
        self._inputs = Inputs()
        self._incarnations = RunningIncarnations(self._inputs)
        self._on_record = on_record
        self._digest = hashlib.blake2b(digest_size=16)
        plain = Model(
            *(model.name, model.title, (), model.bounds),
            later=model.labels,
            properties=model.properties,
            join_lists=model.join_lists,
            prompt=model.prompt,
        )
        self._transitions = Transitions(plain, self._inputs, self._incarnations, self._record)
        self._members = model.members
        self.labels = model.labels
        self._state = self._transitions.down()
        self.events = 0
        """How many steps of the schedule have happened."""

    @property
    def settings(self) -> Settings:
        return self._transitions.settings

    def fingerprint(self) -> str:
        return self._digest.hexdigest()

    def start_members(self) -> None:
        """Start all members that do not wait for a command, each when the cluster was left alone after the one before."""
        for label in self._members:
            self._state = self._transitions.start(self._state, label)
            self.advance(FORMING_US)

    def now_us(self) -> int:
        return self._state.now_us

    def execute(self, command: Command) -> None:
        if not isinstance(command, KNOWN_COMMANDS):
            raise CommandRefused(
                "a run with a schedule cannot do that; what happens to messages stands in its schedule"
            )
        self.events += 1
        self._state = self._transitions.execute(self._state, command)

    def advance(self, by_us: int) -> None:
        if by_us > 0:
            self._state = self._transitions.calm(self._state, self._state.now_us + by_us)

    def take(self, scheduled: ScheduledChoice) -> None:
        """Carry out the scheduled event. Raises `ScheduleDoesNotFit`."""
        if scheduled.tick is not None:
            place = self.labels.index(scheduled.tick)
            if self._state.members[place] == DOWN:
                raise ScheduleDoesNotFit(f"{scheduled.tick} does not run")
            choice = Transition("tick", place)
        else:
            assert scheduled.message is not None
            one = self._in_flight(scheduled.message)
            choice = Transition(scheduled.kind, one.receiver, one.sender, one.content)
        self.events += 1
        self._state = self._transitions.after(self._state, choice)

    def on_its_way(self, source: str, target: str, text: str) -> OnItsWay:
        """How a scenario names the message, or the news, of this text between two members. Raises `ScheduleDoesNotFit`."""
        known = self._inputs.known
        for message in self._between(source, target):
            if repr(known[message.content]) == text:
                kind = self._kind(message)
                alike = [other for other in self._between(source, target) if self._kind(other) == kind]
                which = {"which": alike.index(message) + 1} if message != alike[0] else {}
                return OnItsWay.model_validate({"from": source, "to": target, "kind": kind, **which})
        raise ScheduleDoesNotFit(f"nothing like {text} is on its way from {source} to {target}")

    def why_not_one_cluster(self) -> str:
        """Why the members that run do not follow one list; empty when they do."""
        machines = self._incarnations.machines
        lists = {machines[member].inspect().members for member in self._state.members if member != DOWN}
        if len(lists) <= 1 and None not in lists:
            return ""
        return f"the members that run follow {len(lists)} lists"

    def _in_flight(self, message: OnItsWay) -> MessageInFlight:
        found = [sent for sent in self._between(message.source, message.target) if self._kind(sent) == message.kind]
        if message.which > len(found):
            raise ScheduleDoesNotFit(
                f"{len(found)} messages {message.kind} are on their way from {message.source} to {message.target}"
            )
        return found[message.which - 1]

    def _between(self, source: str, target: str) -> list[MessageInFlight]:
        """Return the messages on their way between two members, each once, in the order of their texts."""
        places = (self.labels.index(source), self.labels.index(target))
        found = {message for message in self._state.in_flight if (message.sender, message.receiver) == places}
        return sorted(found, key=lambda one: repr(self._inputs.known[one.content]))

    def _kind(self, one: MessageInFlight) -> str:
        content = self._inputs.known[one.content]
        return UNREACHABLE if isinstance(content, PeerUnreachable) else self._transitions.kind(one.content)

    def _record(self, record: Record) -> None:
        self._digest.update(repr(record).encode())
        self._on_record(record)
