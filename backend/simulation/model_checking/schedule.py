"""Schedules: one order of events of a model, in words, and how it is carried out once more.

A schedule is repeated by members that run once and are never gone back to, so that nothing of the search is needed to believe
what it found. Then the cluster is left alone, and has to become one.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from quarterdeck.backend.core.commands.commands import CallMap
from quarterdeck.backend.core.data.calls.operations import Get, Put
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.simulation.invariants import InvariantChecker, Violation
from quarterdeck.backend.simulation.invariants.convergence_bounds import convergence_bound_us
from quarterdeck.backend.simulation.model_checking.incarnations import Inputs, RunningIncarnations
from quarterdeck.backend.simulation.model_checking.model import Model
from quarterdeck.backend.simulation.model_checking.transitions import (
    DOWN,
    Choice,
    ChoiceKind,
    State,
    Transitions,
)

FORMING_US = 5 * SECOND_US
"""So long after each start the cluster is left alone."""

SETTLING_TIMEOUTS = 3
"""So many heartbeat timeouts after each command before the exploration, it is left alone."""


class ScheduledStep(Struct, frozen=True, omit_defaults=True):
    """One choice of a schedule, by labels. `message` is the whole message, or the news that a member cannot be reached."""

    do: ChoiceKind
    member: str = ""
    sender: str = ""
    message: str = ""


class Schedule(Struct, frozen=True):
    """A way through a model, as it is kept in a file. `model` is the name of a shipped model or the path of one."""

    model: str
    invariant: str
    text: str
    """Which invariant it violates, and how; empty when it violates none."""
    steps: tuple[ScheduledStep, ...]


class Repetition(Struct, frozen=True):
    """What came of a schedule and of the calm after it: the first violation, and all records."""

    violation: Violation | None
    records: tuple[Record, ...]


class ScheduleDoesNotFit(ValueError):
    """A schedule asks for what cannot happen in its model: the model or the core is not the one that it was made of."""


def scheduled(choices: Iterable[Choice], model: Model, inputs: Inputs) -> tuple[ScheduledStep, ...]:
    """The choices in words."""
    labels = (*model.labels, "")
    return tuple(
        ScheduledStep(
            *(one.kind, labels[one.member], labels[one.sender]),
            repr(inputs.known[one.content]) if one.content != DOWN else "",
        )
        for one in choices
    )


def repeated(model: Model, steps: Iterable[ScheduledStep]) -> Repetition:
    """Form the cluster of `model`, carry out `steps`, heal all links, and let the members become one cluster.

    Raises `ScheduleDoesNotFit`.
    """
    inputs = Inputs()
    incarnations = RunningIncarnations(inputs)
    checker, records = InvariantChecker(), list[Record]()

    def on_record(record: Record) -> None:
        records.append(record)
        checker.observe(record)

    transitions = Transitions(model, inputs, incarnations, on_record)
    state = formed(transitions)
    for number, step in enumerate(steps, start=1):
        state = transitions.after(state, _choice(transitions, state, inputs, step, number))
    if checker.violations:
        return Repetition(checker.violations[0], tuple(records))
    state = transitions.healed(state)
    bound_us = convergence_bound_us(transitions.settings, len(model.labels))
    state = transitions.calm(state, state.now_us + 2 * bound_us)
    state = _read_everything(transitions, state)
    violations = checker.conclude(state.now_us, bound_us).violations
    violation = violations[0] if violations else _why_not_one_cluster(state, incarnations)
    return Repetition(violation, tuple(records))


def _read_everything(transitions: Transitions, state: State) -> State:
    """Read what was written, at the first member that runs: the invariants judge what it finds."""
    place = next((place for place, member in enumerate(state.members) if member != DOWN), DOWN)
    calls = [command.operation for command in transitions.sequence if isinstance(command, CallMap)]
    keys = dict.fromkeys((one.map, one.key) for one in calls if isinstance(one, Put))
    if place != DOWN and keys:
        for number, (map, key) in enumerate(keys, start=len(transitions.sequence) + 1):
            state = transitions.ask(state, place, number, Get(map, key))
        state = transitions.calm(state, state.now_us + transitions.settings.call_timeout_us)
    return state


def _choice(transitions: Transitions, state: State, inputs: Inputs, step: ScheduledStep, number: int) -> Choice:
    labels = transitions.model.labels
    for label in filter(None, (step.member, step.sender)):
        if label not in labels:
            raise ScheduleDoesNotFit(f"step {number}: the model has no member {label!r}")
    member, sender = (labels.index(one) if one else DOWN for one in (step.member, step.sender))
    if not step.message:
        return Choice(step.do, member)
    for one in state.in_flight:
        if (one.sender, one.receiver) == (sender, member) and repr(inputs.known[one.content]) == step.message:
            return Choice(step.do, member, sender, one.content)
    raise ScheduleDoesNotFit(f"step {number}: nothing like {step.message} is on its way to {step.member}")


def _why_not_one_cluster(state: State, incarnations: RunningIncarnations) -> Violation | None:
    lists = {incarnations.machines[one].inspect().members for one in state.members if one != DOWN}
    if len(lists) <= 1 and None not in lists:
        return None
    return Violation("convergence", f"the members that run follow {len(lists)} lists", ())


def formed(transitions: Transitions) -> State:
    """The cluster of the model, formed and left alone, with everything done that comes before the exploration."""
    model = transitions.model
    state = transitions.down()
    for label in model.members:
        state = transitions.calm(transitions.start(state, label), state.now_us + FORMING_US)
    settling_us = SETTLING_TIMEOUTS * transitions.settings.max_no_heartbeat_us
    for _ in model.before:
        state = transitions.calm(transitions.after(state, Choice("command", DOWN)), state.now_us + settling_us)
    return transitions.at_beginning(state)
