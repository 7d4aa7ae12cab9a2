"""The search through all states of a model, those that few choices lead to first."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable
from typing import NamedTuple

from msgspec import Struct

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.simulation.invariants import InvariantChecker, Violation
from quarterdeck.backend.simulation.model_checking.incarnations import FrozenIncarnations, Inputs
from quarterdeck.backend.simulation.model_checking.model import Model
from quarterdeck.backend.simulation.model_checking.schedule import (
    INVARIANTS,
    ScheduledStep,
    formed,
    recorded,
    repeated,
    scheduled,
)
from quarterdeck.backend.simulation.model_checking.transitions import Choice, State, Transitions

PROGRESS_INTERVAL_SECONDS = 2.0


class Progress(Struct, frozen=True):
    """How far the search has come."""

    states: int
    transitions: int
    depth: int
    """How many choices lead to the states that are looked at now."""
    frontier: int
    """How many states were found and not looked at."""
    seconds: float


class Found(Struct, frozen=True):
    """A way to a violation."""

    violation: Violation
    steps: tuple[ScheduledStep, ...]


class Exploration(Struct, frozen=True):
    """What a search has found."""

    model: str
    progress: Progress
    exhausted: bool
    """Whether every state within the bounds was looked at."""
    ends: int
    """Ways that were judged: every state lies on one of them, and so does all that is recorded on the way from state to state."""
    converged: int
    """After how many of them the cluster was left alone, and had to become one."""
    seen: dict[str, int]
    """How often each kind of event was recorded on the way to a new state: a model in which little happens proves little."""
    found: Found | None


class Explorer:
    """Explores one model. Every new state is reached on one way; all ways together pass through all states."""

    def __init__(self, model: Model, *, most_states: int) -> None:
        """The search ends after `most_states`."""
        self.model = model
        self._most_states = most_states
        self._inputs = Inputs()
        self.incarnations = FrozenIncarnations(self._inputs)
        self.transitions = Transitions(model, self._inputs, self.incarnations)
        self._checker = InvariantChecker(INVARIANTS)
        self._told: set[tuple[State, str]] = set()
        """By known states, what was recorded on the ways into them."""

    def explore(self, on_progress: Callable[[Progress], None] = lambda progress: None) -> Exploration:
        """Look at all states, until one breaks an invariant or there are too many."""
        transitions = self.transitions
        forming, initial = recorded(transitions, lambda: formed(transitions))
        came_from: dict[State, Edge | None] = {initial: None}
        records: list[Record] = []
        transitions.on_record = records.append
        frontier: deque[tuple[State, int]] = deque([(initial, 0)])
        seen: Counter[str] = Counter()
        made = ends = also = converged = depth = 0
        began = told = time.monotonic()
        found: Found | None = None

        def progress() -> Progress:
            return Progress(len(came_from), made, depth, len(frontier), time.monotonic() - began)

        while frontier and len(came_from) < self._most_states and found is None:
            state, depth = frontier.popleft()
            is_end = True
            for choice in transitions.choices(state):
                made += 1
                records.clear()
                following = transitions.after(state, choice)
                edge = Edge(state, choice, tuple(records))
                if following not in came_from:
                    is_end = False
                    came_from[following] = edge
                    seen.update(str(record.event.__struct_config__.tag) for record in records)
                    frontier.append((following, depth + 1))
                elif self._is_news(following, edge):
                    also += 1
                    found = self._judge(forming, [*_way_to(state, came_from), edge], is_calm=False)
                if found is not None:
                    break
            if is_end and found is None:
                ends += 1
                is_calm = ends % self.model.calm_every == 1 or self.model.calm_every == 1
                converged += is_calm
                found = self._judge(forming, _way_to(state, came_from), is_calm=is_calm)
            if time.monotonic() - told > PROGRESS_INTERVAL_SECONDS:
                told = time.monotonic()
                on_progress(progress())
        exhausted = not frontier and found is None
        return Exploration(
            self.model.name, progress(), exhausted, ends + also, converged, dict(seen.most_common()), found
        )

    def _is_news(self, following: State, edge: Edge) -> bool:
        """Whether what is recorded on this way into a known state was not recorded on another way there before."""
        events = [
            f"{record.uuid} {record.event}" for record in edge.records if self._checker.is_relevant(type(record.event))
        ]
        if not events:
            return False
        told = (following, "\n".join(events))
        is_news = told not in self._told
        self._told.add(told)
        return is_news

    def _judge(self, forming: list[Record], way: list[Edge], *, is_calm: bool) -> Found | None:
        """Show the records of one way to the invariants; then leave the cluster alone, if that is wanted."""
        checker = InvariantChecker(INVARIANTS)
        for record in forming:
            checker.observe(record)
        for place, edge in enumerate(way):
            for record in edge.records:
                checker.observe(record)
            if checker.violations:
                return Found(checker.violations[0], self._steps(way[: place + 1]))
        violation = repeated(self.model, self._steps(way)).violation if is_calm else None
        return None if violation is None else Found(violation, self._steps(way))

    def _steps(self, way: list[Edge]) -> tuple[ScheduledStep, ...]:
        return scheduled((edge.choice for edge in way), self.model, self._inputs)


class Edge(NamedTuple):
    """How a state was reached first."""

    before: State
    choice: Choice
    records: tuple[Record, ...]


def _way_to(state: State, came_from: dict[State, Edge | None]) -> list[Edge]:
    way = []
    while (edge := came_from[state]) is not None:
        way.append(edge)
        state = edge.before
    way.reverse()
    return way
