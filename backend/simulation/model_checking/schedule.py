"""Schedules: one order of events of a model, in words, and how it is carried out once more.

A schedule is repeated by members that run once and are never gone back to, so that nothing of the search is needed to believe
what it found. Then the cluster is left alone, and has to become one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct

from quarterdeck.backend.core.commands import CallMap, Command, Heal, KillMember, StartMember
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.invariants import Violation
from quarterdeck.backend.invariants.convergence import convergence_bound_us
from quarterdeck.backend.scenarios.format.scenario import Scenario, ScheduledChoice, ScheduleDoesNotFit
from quarterdeck.backend.scenarios.format.values import duration_text
from quarterdeck.backend.scenarios.format.writing import action_tree, scenario_of_tree
from quarterdeck.backend.scenarios.interpreter import read_everything
from quarterdeck.backend.scenarios.run_state import RunState
from quarterdeck.backend.simulation.model_checking.incarnations import Inputs
from quarterdeck.backend.simulation.model_checking.model import DOWN, ChoiceKind, Model, Spent, State, Transition
from quarterdeck.backend.simulation.model_checking.scheduled_run import FORMING_US, ScheduledRun
from quarterdeck.backend.simulation.model_checking.transitions import Transitions

SETTLING_TIMEOUTS = 3
"""The number of heartbeat timeouts of calm after each command before the exploration."""


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
    """The result of a schedule and of the calm after it: the first violation, and all records."""

    violation: Violation | None
    records: tuple[Record, ...]


def scheduled(choices: Iterable[Transition], model: Model, inputs: Inputs) -> tuple[ScheduledStep, ...]:
    """Return the choices in words."""
    labels = (*model.labels, "")
    steps = []
    for choice in choices:
        message = repr(inputs.known[choice.content]) if choice.content != DOWN else ""
        steps.append(ScheduledStep(choice.kind, labels[choice.member], labels[choice.sender], message))
    return tuple(steps)


def repeated(model: Model, steps: Iterable[ScheduledStep]) -> Repetition:
    """Form the cluster of `model`, carry out `steps`, heal all links, and let the members become one cluster.

    Raises `ScheduleDoesNotFit`.
    """
    records: list[Record] = []
    run_state = RunState()

    def on_record(record: Record) -> None:
        records.append(record)
        run_state.observe(record)

    checker = run_state.invariant_checker
    run = ScheduledRun(model, on_record)
    for happening in happenings(run, model, steps):
        happen(run, happening)
    if checker.violations:
        return Repetition(checker.violations[0], tuple(records))
    run.execute(Heal())
    bound_us = convergence_bound_us(run.settings, len(model.labels))
    run.advance(2 * bound_us)
    read_everything(run, run_state, run.settings.call_timeout_us)
    violations = checker.conclude(run.now_us(), bound_us).violations
    if not violations and (problem := run.why_not_one_cluster()):
        violations = (Violation("convergence", problem, ()),)
    return Repetition(violations[0] if violations else None, tuple(records))


Happening = Command | ScheduledChoice | int
"""An action of a run: a command, the next event, or the number of microseconds for which the cluster is left alone."""


def happenings(run: ScheduledRun, model: Model, steps: Iterable[ScheduledStep]) -> Iterator[Happening]:
    """Yield what `run` must do to come to the end of `steps`. Each has to happen before the next one is asked for.

    Raises:
        ScheduleDoesNotFit: A step cannot be taken in this model.
    """
    run.start_members()
    for command in model.before:
        yield command
        yield SETTLING_TIMEOUTS * run.settings.max_no_heartbeat_us
    commands = iter(model.commands)
    for number, step in enumerate(steps, start=1):
        try:
            yield _happening(run, step, commands)
        except ScheduleDoesNotFit as problem:
            raise ScheduleDoesNotFit(f"step {number}: {problem}") from None


def as_scenario(model: Model, schedule: Schedule) -> Scenario:
    """Return a scenario that repeats a schedule and asks for what it violates.

    Raises:
        ScheduleDoesNotFit: A step cannot be taken in this model.
    """
    run = ScheduledRun(model, lambda record: None)
    steps: list[dict[str, Any]] = [{"say": schedule.text}]
    for happening in happenings(run, model, schedule.steps):
        happen(run, happening)
        match happening:
            case ScheduledChoice():
                if "schedule" not in steps[-1]:
                    steps.append({"schedule": []})
                steps[-1]["schedule"].append(happening.model_dump(mode="json", by_alias=True, exclude_unset=True))
            case int():
                steps.append({"do": {"wait": duration_text(happening)}})
            case _:
                steps.append({"do": action_tree(happening)})
    bound_us = convergence_bound_us(run.settings, len(model.labels))
    expected = {"within": duration_text(2 * bound_us), "one-cluster": True, "no-lost-writes": True}
    if not any(isinstance(command, CallMap) for command in (*model.before, *model.commands)):
        del expected["no-lost-writes"]
    if not any("schedule" in step for step in steps):
        steps.append({"schedule": []})
    steps += [{"do": "heal"}, {"expect": expected}]
    tree = {
        **{"title": f"{model.name}: {schedule.invariant}", "summary": model.title},
        **{"members": list(model.labels), "late": list(model.later)},
        **{
            "settings": dict(model.properties),
            "join-lists": {one: list(them) for one, them in model.join_lists.items()},
        },
        **{"prompt": list(model.prompt), "steps": steps},
    }
    return scenario_of_tree({key: value for key, value in tree.items() if value})


def happen(run: ScheduledRun, happening: Happening) -> None:
    """Make `run` do it. Raises `ScheduleDoesNotFit`. A command that is refused changes nothing, as in a search."""
    match happening:
        case ScheduledChoice():
            run.take(happening)
        case int():
            run.advance(happening)
        case _:
            run.execute(happening)


def _happening(run: ScheduledRun, step: ScheduledStep, commands: Iterator[Command]) -> Happening:
    for label in filter(None, (step.member, step.sender)):
        if label not in run.labels:
            raise ScheduleDoesNotFit(f"the model has no member {label!r}")
    match step.do:
        case "crash":
            return KillMember(step.member)
        case "restart":
            return StartMember(step.member)
        case "tick":
            return ScheduledChoice(tick=step.member)
        case "command":
            command = next(commands, None)
            if command is None:
                raise ScheduleDoesNotFit("the model has no more commands")
            return command
        case _:
            message = run.on_its_way(step.sender, step.member, step.message)
            return ScheduledChoice.model_validate({step.do: message})


def formed(transitions: Transitions) -> State:
    """Return the cluster of the model, formed and left alone, with everything done that comes before the exploration."""
    model = transitions.model
    state = transitions.down()
    for label in model.members:
        state = transitions.calm(transitions.start(state, label), state.now_us + FORMING_US)
    settling_us = SETTLING_TIMEOUTS * transitions.settings.max_no_heartbeat_us
    for _ in model.before:
        state = transitions.calm(transitions.after(state, Transition("command", DOWN)), state.now_us + settling_us)
    return state._replace(spent=Spent(commands=state.spent.commands))
