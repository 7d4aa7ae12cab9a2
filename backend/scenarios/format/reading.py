"""Reading scenario files: every mistake becomes one error with file, line, field and a hint."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from quarterdeck.backend.core.properties import BadProperty, Settings
from quarterdeck.backend.documents.yaml_document import (
    BadDocument,
    FieldPath,
    Problem,
    YamlDocument,
    field_text,
    problems_of,
    text_of,
)
from quarterdeck.backend.scenarios.event_patterns import pattern_problems
from quarterdeck.backend.scenarios.format.actions import MODELS as ACTION_MODELS
from quarterdeck.backend.scenarios.format.actions import ScenarioAction
from quarterdeck.backend.scenarios.format.questions import AnswerSource
from quarterdeck.backend.scenarios.format.scenario import (
    ClockSettings,
    Expect,
    ExpectedValue,
    Jump,
    LatencySettings,
    MigrationsExpectation,
    OnItsWay,
    Scenario,
    ScenarioQuestion,
    ScenarioStep,
    ScheduledChoice,
)
from quarterdeck.backend.scenarios.format.values import Members, ScenarioModel


class BadScenario(BadDocument):
    """A scenario file that cannot be used. The message names file, line and field, the problem, and a remedy."""


def load_scenario(path: Path) -> Scenario:
    """Read the scenario in the file `path`.

    Raises:
        BadScenario: It cannot be read, or is no scenario.
    """
    return read_scenario(text_of(path, BadScenario), str(path))


def read_scenario(text: str, file: str) -> Scenario:
    """Read the scenario that `text` holds; `file` names it in errors.

    Raises:
        BadScenario: The text is no scenario.
    """
    document = YamlDocument(text, file, BadScenario)
    data = document.fields("is not a scenario; write title, members and steps as keys")
    problems: list[Problem]
    try:
        labels = TypeAdapter(Members).validate_python(data["members"]) if "members" in data else None
    except ValidationError as failure:
        problems = [(("members", *place), problem) for place, problem in problems_of(failure, known_in_scenarios)]
    else:
        try:
            scenario = Scenario.model_validate(data, context={"labels": labels})
        except ValidationError as failure:
            problems = list(problems_of(failure, known_in_scenarios))
        else:
            problems = [*_property_problems(scenario), *_event_problems(scenario, data), *_order_problems(scenario)]
    if problems:
        raise document.first(problems, ("groups",), _field)  # a partition may be written without its key `groups`
    return scenario


def _field(place: FieldPath) -> str:
    """Return a place as people read it; steps are counted from 1, as in outcomes."""
    if len(place) >= 2 and place[0] == "steps" and isinstance(place[1], int):
        rest = _field(place[2:])
        return f"step {place[1] + 1}{', ' + rest if rest else ''}"
    return field_text(place)


# What is wrong


def known_in_scenarios(place: FieldPath) -> tuple[str, Iterable[str]]:
    """Return the known name that an unknown name at this place of a scenario could mean."""
    model = _model_around(place)
    nouns = {ScenarioAction: "action", Expect: "expectation", ScenarioStep: "kind of step"}
    return nouns.get(model, "field"), [field.alias or name for name, field in model.model_fields.items()]


MODELS: dict[FieldPath, type[ScenarioModel]] = {
    (): Scenario,
    ("ask",): ScenarioQuestion,
    ("ask", "right"): AnswerSource,
    ("do",): ScenarioAction,
    ("expect",): Expect,
    **{("do", word): model for word, model in ACTION_MODELS.items()},
    ("expect", "migrations"): MigrationsExpectation,
    ("expect", "value"): ExpectedValue,
}


def _model_around(place: FieldPath) -> type[ScenarioModel]:
    if place[:1] == ("latency",) and len(place) > 1:
        return LatencySettings
    if place[:1] == ("clocks",) and len(place) > 2:
        return Jump if len(place) > 3 else ClockSettings
    if place[:1] != ("steps",):
        return Scenario
    if place[2:3] == ("schedule",) and len(place) > 3:
        return ScheduledChoice if len(place) == 5 else OnItsWay if len(place) > 5 else ScenarioStep
    if place[2:4] == ("do", "kill-at"):
        return ACTION_MODELS["kill-at"]
    return MODELS[place[2:-1]] if len(place) > 3 else ScenarioStep


def _property_problems(scenario: Scenario) -> Iterator[Problem]:
    settings = Settings()
    try:
        settings = scenario.timing()
    except BadProperty as problem:
        yield ("settings", problem.name), problem.problem
    for label, values in scenario.member_settings.items():
        try:
            settings.with_properties(values)
        except BadProperty as problem:
            yield ("member-settings", label, problem.name), problem.problem


def _order_problems(scenario: Scenario) -> Iterator[Problem]:
    """Check that an expectation answers each question, and that free play comes last."""
    for number, step in enumerate(scenario.steps):
        expected = sum(later.expect is not None for later in scenario.steps[number:])
        if step.ask is not None and not expected:
            yield ("steps", number, "ask"), "nothing is expected after this question; add an expect step to answer it"
        elif step.ask is not None and step.ask.after > expected:
            problem = f"{step.ask.after} is too much, for {expected} expectations follow; write at most that"
            yield ("steps", number, "ask", "after"), problem
        if step.free_play and number + 1 < len(scenario.steps):
            yield ("steps", number, "free-play"), "comes before other steps; make it the last one"


def _event_problems(scenario: Scenario, data: Any) -> Iterator[Problem]:
    """Event patterns: their kind must exist, and have the fields that the pattern names."""
    for number, step in enumerate(scenario.steps):
        if step.expect is None:
            continue
        for name, patterns in (("event", step.expect.event), ("never", step.expect.never)):
            for entry, pattern in enumerate(patterns):
                listed = isinstance(data["steps"][number]["expect"][name], list)
                place: FieldPath = ("steps", number, "expect", name, *((entry,) if listed else ()))
                for field, problem in pattern_problems(pattern, scenario.members, counted=name == "event"):
                    yield (*place, *field), problem
