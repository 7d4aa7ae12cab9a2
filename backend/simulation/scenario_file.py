"""Reading scenario files: whatever is wrong becomes one error with file, line, field and a hint (design 5.1)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from backend.core.events import EVENT_KINDS
from backend.core.properties import BadProperty
from backend.simulation.scenario import (
    ClockSettings,
    Expect,
    Found,
    Jump,
    LatencySettings,
    Migrations,
    Scenario,
    Step,
)
from backend.simulation.scenario_actions import (
    Action,
    Cut,
    Delay,
    Drop,
    Duplicate,
    Entry,
    Groups,
    Healing,
    KillPoint,
    Load,
    Lose,
    NewValue,
    Patience,
)
from backend.simulation.scenario_values import Members, Part, did_you_mean

Place = tuple[str | int, ...]
"""Keys and positions that lead from the whole file to one field."""

DEEPEST_NESTING = 20


class BadScenario(ValueError):
    """A scenario file that cannot be used. The message names file, line and field, the problem, and a remedy."""

    def __init__(self, file: str, line: int, field: str, problem: str) -> None:
        super().__init__(f"{file}:{line}: {field + ': ' if field else ''}{problem}")
        self.file = file
        self.line = line
        self.field = field


def load_scenario(path: Path) -> Scenario:
    """The scenario in the file `path`. Raises `BadScenario`."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as problem:
        raise BadScenario(str(path), 1, "", f"cannot be read: {problem.strerror}; check the path") from problem
    except UnicodeDecodeError as problem:
        raise BadScenario(str(path), 1, "", f"is not UTF-8 text: {problem.reason} at byte {problem.start}") from problem
    return read_scenario(text, str(path))


def read_scenario(text: str, file: str) -> Scenario:
    """The scenario that `text` holds; `file` names it in errors. Raises `BadScenario`."""
    try:
        tree = _parse(text, file)
        data = _plain(tree)
    except RecursionError as too_deep:
        raise BadScenario(file, 1, "", f"is nested more than {DEEPEST_NESTING} deep; check its anchors") from too_deep
    if not isinstance(data, dict):
        raise BadScenario(file, 1, "", "is no scenario; write title, members and steps as keys")
    problems: list[tuple[Place, str]] = []
    try:
        labels = TypeAdapter(Members).validate_python(data["members"]) if "members" in data else None
    except ValidationError as failure:
        problems = [(("members", *place), problem) for place, problem in _explained(failure)]
    else:
        try:
            scenario = Scenario.model_validate(data, context={"labels": labels})
        except ValidationError as failure:
            problems = list(_explained(failure))
        else:
            problems = [*_property_problems(scenario), *_event_problems(scenario)]
    if problems:
        place, problem = min(problems, key=lambda found: _line(tree, found[0]))
        raise BadScenario(file, _line(tree, place), _field(place), problem)
    return scenario


def _parse(text: str, file: str) -> Any:
    try:
        return YAML(typ="rt").load(text)
    except MarkedYAMLError as failure:
        mark = failure.problem_mark or failure.context_mark
        line = mark.line + 1 if mark else 1
        raise BadScenario(
            file, line, "", f"is not YAML: {(failure.problem or str(failure)).splitlines()[0]}"
        ) from failure
    except (YAMLError, ValueError) as failure:
        raise BadScenario(file, 1, "", f"is not YAML: {str(failure).splitlines()[0]}") from failure


def _plain(node: Any, depth: int = 0) -> Any:
    """The tree in plain Python types: the loader's own carry positions, and would show in error messages."""
    if depth > DEEPEST_NESTING:
        raise RecursionError
    match node:
        case CommentedMap():
            return {_plain(key, depth + 1): _plain(value, depth + 1) for key, value in node.items()}
        case CommentedSeq():
            return [_plain(value, depth + 1) for value in node]
        case bool():
            return bool(node)
        case int() | float() | str():
            plain: type = next(kind for kind in (int, float, str) if isinstance(node, kind))
            return plain(node)
    return node


# Where a field stands


def _line(tree: Any, place: Place) -> int:
    """The line, from 1, of the field at `place`, or of the innermost thing around it that has one."""
    line, node = 0, tree
    for step in place:
        if isinstance(node, CommentedMap) and step in node.lc.data:
            line = node.lc.key(step)[0]
        elif isinstance(node, CommentedSeq) and isinstance(step, int) and step < len(node):
            line = node.lc.item(step)[0]
        elif step == "groups":  # a partition may be written without this key
            continue
        else:
            break
        node = node[step]
    return int(line) + 1


def _field(place: Place) -> str:
    """A place as people read it; steps are counted from 1, as in outcomes."""
    if len(place) >= 2 and place[0] == "steps" and isinstance(place[1], int):
        rest = _field(place[2:])
        return f"step {place[1] + 1}{', ' + rest if rest else ''}"
    text = ""
    for step in place:
        text += f"[{step + 1}]" if isinstance(step, int) else f"{'.' if text else ''}{step}"
    return text


# What is wrong


def _explained(failure: ValidationError) -> Iterator[tuple[Place, str]]:
    """The errors in words. Those about the whole of something of which a part is wrong only follow from the latter."""
    found = [(tuple(step for step in error["loc"] if step != "[key]"), error) for error in failure.errors()]
    for place, error in found:
        if not any(len(other) > len(place) and other[: len(place)] == place for other, _ in found):
            yield place, _problem(place, error)


def _problem(place: Place, error: ErrorDetails) -> str:
    context = error.get("ctx", {})
    given = error["input"]
    match error["type"]:
        case "value_error":
            return str(context["error"])
        case "extra_forbidden":
            known = _names(_model_around(place))
            return f"there is no such {_noun(place)}; {did_you_mean(str(place[-1]), known)}"
        case "missing":
            return "is missing; add it"
        case "model_type" | "model_attributes_type" | "dict_type":
            return f"{given!r} does not fit here; write fields, as in {{name: value}}"
        case "tuple_type" | "list_type":
            return f"{given!r} does not fit here; write a list, as in [athens, byzantium]"
        case "string_type":
            return f"{given!r} is not a text; put quotes around it if it is meant as one"
        case "too_short":
            return f"has {context['actual_length']} entries; at least {context['min_length']} must be given"
        case "literal_error":
            return f"{given!r} is not known here; write {context['expected']}"
        case _:
            message = error["msg"]
            return f"{given!r} does not fit here; {message[0].lower()}{message[1:]}"


PARTS: dict[Place, type[Part]] = {
    (): Scenario,
    ("do",): Action,
    ("expect",): Expect,
    ("do", "partition"): Groups,
    ("do", "cut"): Cut,
    ("do", "delay"): Delay,
    ("do", "lose"): Lose,
    ("do", "duplicate"): Duplicate,
    ("do", "drop-messages"): Drop,
    ("do", "heal"): Healing,
    ("do", "put"): NewValue,
    ("do", "get"): Entry,
    ("do", "remove"): Entry,
    ("do", "load"): Load,
    ("do", "wait-until-safe"): Patience,
    ("expect", "migrations"): Migrations,
    ("expect", "value"): Found,
}


def _model_around(place: Place) -> type[Part]:
    if place[:1] == ("latency",) and len(place) > 1:
        return LatencySettings
    if place[:1] == ("clocks",) and len(place) > 2:
        return Jump if len(place) > 3 else ClockSettings
    if place[:1] != ("steps",):
        return Scenario
    if place[2:4] == ("do", "kill-at"):
        return KillPoint
    return PARTS[place[2:-1]] if len(place) > 3 else Step


def _noun(place: Place) -> str:
    return {Action: "action", Expect: "expectation", Step: "kind of step"}.get(_model_around(place), "field")


def _names(model: type[Part]) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items()]


def _property_problems(scenario: Scenario) -> Iterator[tuple[Place, str]]:
    try:
        scenario.timing()
    except BadProperty as problem:
        yield ("settings", problem.name), str(problem).removeprefix(f"{problem.name}: ")


def _event_problems(scenario: Scenario) -> Iterator[tuple[Place, str]]:
    """Event patterns: their kind must exist, and have the fields that the pattern names."""
    for number, step in enumerate(scenario.steps):
        if step.expect is None or not step.expect.event:
            continue
        place: Place = ("steps", number, "expect", "event")
        pattern = step.expect.event
        if "kind" not in pattern:
            yield place, f"names no kind; add kind: one of {', '.join(EVENT_KINDS)}"
            continue
        kind = pattern["kind"]
        if not isinstance(kind, str) or kind not in EVENT_KINDS:
            yield (*place, "kind"), f"there is no event {kind!r}; {did_you_mean(str(kind), EVENT_KINDS)}"
            continue
        known = ["member", *(field.name for field in msgspec.structs.fields(EVENT_KINDS[kind]))]
        for name in pattern:
            if name not in ("kind", *known):
                yield (*place, name), f"{kind} has no such field; {did_you_mean(name, known)}"
        recorder = pattern.get("member", scenario.members[0])
        if recorder not in scenario.members:
            yield (
                (*place, "member"),
                f"there is no member {recorder!r}; {did_you_mean(str(recorder), scenario.members)}",
            )
