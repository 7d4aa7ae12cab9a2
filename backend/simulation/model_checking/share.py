"""A share of a model's states: those whose codes belong to one process of the search.

Codes, and the numbers of all that a state is made of, are the same in every process. So a process sends on the states that it
comes to and that belong to another one as they are, and with them what it has learnt since it last did.
"""

from __future__ import annotations

import hashlib
import pickle
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.invariants import InvariantChecker, Violation
from quarterdeck.backend.simulation.model_checking.calm import Calm
from quarterdeck.backend.simulation.model_checking.histories import BEGINNING, INVARIANTS, Histories
from quarterdeck.backend.simulation.model_checking.incarnations import FrozenIncarnations, Inputs, KnownRecords
from quarterdeck.backend.simulation.model_checking.model import Model, State
from quarterdeck.backend.simulation.model_checking.schedule import formed, repeated, scheduled
from quarterdeck.backend.simulation.model_checking.spilling import (
    CODE_BYTES,
    ENTRY_BYTES,
    STATE_BYTES,
    MetStates,
    SpillingFolder,
    SpillingQueue,
)
from quarterdeck.backend.simulation.model_checking.transitions import Transitions, configurations_of, recorded

CHOICE_BYTES = 2
"""The number of bytes of a way that name the choice taken."""

MOST_SENT = 1_000_000
"""The number of remembered codes of states that were sent on, so that most states are sent once."""


class Reached(NamedTuple):
    """A state and the first way in which the search came to it."""

    state: State
    way: bytes
    """The numbers of the choices from the first state on."""
    history: int


class Broken(Struct, frozen=True):
    """A violation, and the way to it."""

    way: bytes
    violation: Violation


class ShareReport(Struct):
    """How far a share has come."""

    states: int = 0
    left: int = 0
    """States of the present depth that are to be looked at."""
    next: int = 0
    """States that lie one choice deeper."""
    on_their_way: int = 0
    """States that belong to other shares, which have not heard of them."""
    transitions: int = 0
    calm: int = 0
    """The number of states after which the cluster was left alone."""
    histories: int = 0
    seen: Counter[str] = msgspec.field(default_factory=Counter)
    """In how many transitions each kind of event was recorded."""
    broken: Broken | None = None


class ShareSettings(Struct, frozen=True):
    """The common part of all shares of a search."""

    model: Model
    shares: int = 1
    memory_bytes: int = 1_000_000_000
    """The bytes of states and snapshots that each share may hold before they go into files."""
    by_history: bool = False
    """Whether a state that was reached by another history is another state."""


class StateShare:
    """The states of one process, and how it looks at them."""

    def __init__(self, settings: ShareSettings, place: int) -> None:
        model, memory_bytes = settings.model, settings.memory_bytes
        self.model = model
        self._place, self._shares, self._by_history = place, settings.shares, settings.by_history
        self._inputs = Inputs()
        self._records = KnownRecords(InvariantChecker(INVARIANTS).is_relevant)
        self._incarnations = FrozenIncarnations(
            self._inputs, self._records, configurations_of(model), memory_bytes // 4
        )
        self._transitions = Transitions(model, self._inputs, self._incarnations)
        forming, self._initial = recorded(self._transitions, lambda: formed(self._transitions))
        self._happened: list[Record] = []
        self._transitions.on_record = self._happened.append
        self._histories = Histories(self._records, forming)
        self._calm = Calm(self._transitions, self._incarnations, self._records, self._histories)
        self._encode = msgspec.msgpack.Encoder().encode
        self._decode = msgspec.msgpack.Decoder(list[Reached]).decode
        self._folder = SpillingFolder()
        self._met = MetStates(memory_bytes // 4 // STATE_BYTES, self._folder)
        most = memory_bytes // 4 // ENTRY_BYTES
        self._level, self._next = (
            SpillingQueue[Reached](most, self._folder, self._encode, self._decode) for _ in range(2)
        )
        self._sent: set[int] = set()
        self._outgoing: list[list[Reached]] = [[] for _ in range(self._shares)]
        self._stores: tuple[Any, ...] = (self._inputs, self._incarnations, self._records, self._histories)
        """The inputs, members, records and histories, each known by number; `known` and `_learnt` keep this order."""
        self.reported = (0,) * len(self._stores)
        self._last: Reached | None = None
        self._report = ShareReport()
        self._recorded: Counter[int] = Counter()

    def begin(self) -> None:
        self._reach(Reached(self._initial, b"", BEGINNING))
        self._outgoing = [[] for _ in range(self._shares)]

    def go_deeper(self) -> None:
        """From now on look at the states one choice deeper."""
        self._level, self._next = self._next, self._level

    def look(self, most: int) -> None:
        """Look at this number of states of the present depth; stop at a violation."""
        while most and self._level and self._report.broken is None:
            most -= 1
            self._last = self._level.pop()
            self._look_at(self._last)

    def leave_last_alone(self) -> None:
        """Judge at the end of the search the state that was looked at last, after calm."""
        if self._last is not None:
            self.leave_alone(self._last)
            self._last = None

    def report(self) -> ShareReport:
        report = self._report
        report.states, report.left, report.next = self._met.count, len(self._level), len(self._next)
        report.on_their_way = sum(map(len, self._outgoing))
        report.histories = len(self._histories.known)
        known = self._records.known
        for number, times in self._recorded.items():
            report.seen[str(known[number].event.__struct_config__.tag)] += times
        self._recorded.clear()
        return report

    def _look_at(self, reached: Reached) -> None:
        state, way, history = reached
        happened, number_of, after = self._happened, self._records.number, self._transitions.after
        for choice_number, choice in enumerate(self._transitions.choices(state)):
            self._report.transitions += 1
            happened.clear()
            following = after(state, choice)
            following_way, following_history = way + choice_number.to_bytes(CHOICE_BYTES), history
            if happened:
                numbers = [number_of(record) for record in happened]
                self._recorded.update(numbers)
                following_history = self._histories.after(history, numbers)
                violation = self._histories.violation(following_history)
                if violation is not None:
                    self._report.broken = Broken(following_way, violation)
                    return
            self._reach(Reached(following, following_way, following_history))

    def _reach(self, reached: Reached) -> None:
        code = int.from_bytes(self._code_of(self._encode(reached.state), reached.history))
        owner = code % self._shares
        if owner == self._place:
            self._take(code, reached)
        elif code not in self._sent:
            if len(self._sent) >= MOST_SENT:
                self._sent.clear()
            self._sent.add(code)
            self._outgoing[owner].append(reached)

    def _code_of(self, state: bytes, history: int) -> bytes:
        if self._by_history:
            state += history.to_bytes(8)
        return hashlib.blake2b(state, digest_size=CODE_BYTES).digest()

    def _take(self, code: int, reached: Reached) -> None:
        if not self._met.add(code):
            return
        self._next.append(reached)
        if self.is_left_alone(code, reached):
            self.leave_alone(reached)

    def is_left_alone(self, code: int, reached: Reached) -> bool:
        """Whether the state is one of those after which the cluster is left alone."""
        return (code >> 64) % self.model.calm_every == 0 or not reached.way

    def leave_alone(self, reached: Reached) -> None:
        """See whether the members become one cluster after this state."""
        self._report.calm += 1
        if self._calm.settles(reached.state, reached.history):
            return
        violation = repeated(self.model, self.steps(reached.way)).violation
        if violation is not None and self._report.broken is None:
            self._report.broken = Broken(reached.way, violation)

    def steps(self, way: bytes) -> tuple[Any, ...]:
        """Return the choices of a way in words."""
        state, choices = self._initial, []
        on_record, self._transitions.on_record = self._transitions.on_record, None
        for place in range(0, len(way), CHOICE_BYTES):
            number = int.from_bytes(way[place : place + CHOICE_BYTES])
            choice = next(islice(self._transitions.choices(state), number, None))
            choices.append(choice)
            state = self._transitions.after(state, choice)
        self._transitions.on_record = on_record
        return scheduled(choices, self.model, self._inputs)

    # What other processes hear, and what is kept

    def news(self) -> bytes:
        """Return the new findings since the last call."""
        news = self._learnt(self.reported)
        self.reported = self.known
        return news

    @property
    def known(self) -> tuple[int, ...]:
        """How much it knows of inputs, members, records and histories."""
        return tuple(len(store.known) for store in self._stores)

    def _learnt(self, reported: tuple[int, ...]) -> bytes:
        stores = zip(self._stores, reported, strict=True)
        learnt = [list(islice(store.known.items(), known, None)) for store, known in stores]
        snapshots = [self._incarnations.snapshot(number) for number, _ in learnt[1]]
        return pickle.dumps((*learnt, snapshots), protocol=pickle.HIGHEST_PROTOCOL)

    def learn(self, news: bytes) -> None:
        inputs, members, records, histories, snapshots = pickle.loads(news)
        for number, content in inputs:
            self._inputs.adopt(number, content)
        for (number, member), snapshot in zip(members, snapshots, strict=True):
            self._incarnations.adopt(number, member, snapshot)
        for number, record in records:
            self._records.adopt(number, record)
        for number, history in histories:
            self._histories.adopt(number, history)

    def outgoing(self) -> list[bytes]:
        """By place, the states that belong to other processes, once."""
        outgoing = [self._encode(reached) if reached else b"" for reached in self._outgoing]
        self._outgoing = [[] for _ in range(self._shares)]
        return outgoing

    def receive(self, states: bytes) -> None:
        for reached in self._decode(states):
            self._reach(reached)

    # Checkpoints

    def write(self, folder: Path) -> None:
        report = pickle.dumps(self.report(), protocol=pickle.HIGHEST_PROTOCOL)
        self._file(folder, "report").write_bytes(report)
        self._file(folder, "learnt").write_bytes(self._learnt((0,) * len(self._stores)))
        self._met.write(self._file(folder, "met"))
        self._level.write(self._file(folder, "level"))
        self._next.write(self._file(folder, "next"))

    def read(self, folder: Path) -> None:
        self._report = pickle.loads(self._file(folder, "report").read_bytes())
        self.learn(self._file(folder, "learnt").read_bytes())
        self._met.read(self._file(folder, "met"))
        self._level.read(self._file(folder, "level"))
        self._next.read(self._file(folder, "next"))

    def _file(self, folder: Path, what: str) -> Path:
        return folder / f"share-{self._place}.{what}"

    def close(self) -> None:
        self._folder.remove()
