"""Writing scenarios as files that `backend.scenarios.format.reading` reads back to equal ones."""

from __future__ import annotations

from collections.abc import Callable
from io import StringIO
from typing import Any

from pydantic import TypeAdapter
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.scalarstring import SingleQuotedScalarString

from quarterdeck.backend.commands.catalogue import ArgumentKind, description_of
from quarterdeck.backend.core.commands import Command, HealLink
from quarterdeck.backend.scenarios.format.scenario import Scenario
from quarterdeck.backend.scenarios.format.values import Members, duration_text

LINE_WIDTH = 118


def scenario_tree(scenario: Scenario) -> dict[str, Any]:
    """Return the scenario in plain types, as a file holds it, without fields that have their default."""
    tree: dict[str, Any] = scenario.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return tree


def scenario_of_tree(tree: dict[str, Any]) -> Scenario:
    """Make the scenario of this tree.

    Raises:
        pydantic.ValidationError: The tree is no scenario.
    """
    labels = TypeAdapter(Members).validate_python(tree["members"])
    return Scenario.model_validate(tree, context={"labels": labels})


def scenario_text(scenario: Scenario) -> str:
    """Return the scenario as YAML: one line for each step, as people write them."""
    yaml = YAML(typ="rt")
    yaml.width = LINE_WIDTH
    yaml.indent(mapping=2, sequence=4, offset=2)
    out = StringIO()
    yaml.dump(_block(scenario_tree(scenario), depth=0), out)
    return out.getvalue()


def action_tree(command: Command) -> Any:
    """Return the plain types with which a scenario writes a command behind `do`."""
    description = description_of(command)
    values = {
        argument.name: WRITTEN_KINDS.get(argument.kind, _unchanged)(value)
        for argument in description.arguments
        if (value := description.values(command)[argument.name]) not in (None, (), "", 0, False)
    }
    keys = {argument.name: argument.key for argument in description.arguments}
    by_key = {keys[name]: value for name, value in values.items()}
    match description.target:
        case "everything":
            return description.tag
        case "groups":
            return {description.tag: by_key}
        case "links":
            return {"heal" if isinstance(command, HealLink) else description.tag: by_key}
    if description.operation is not None:
        return {description.tag: by_key}
    label, details = str(values["member"]), description.details
    if not details:
        return {description.tag: label}
    fields = {detail.key: values[detail.name] for detail in details if detail.name in values}
    return {description.tag: {label: fields if len(details) > 1 else values[details[0].name]}}


def _unchanged(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


WRITTEN_KINDS: dict[ArgumentKind, Callable[[Any], Any]] = {
    "bytes": bytes.decode,
    "duration": duration_text,
    "groups": lambda groups: [list(group) for group in groups],
    "properties": dict,
}
"""How arguments are written of the kinds that are not written as they are."""


def _block(value: Any, depth: int) -> Any:
    """Lay out the tree: the scenario's own fields and its steps on lines of their own, the rest in one line each."""
    laid: Any
    match value:
        case dict():
            laid = CommentedMap((key, _block(one, depth + 1)) for key, one in value.items())
            on_own_lines = depth in (0, 2)
        case list():
            laid = CommentedSeq(_block(part, depth + 1) for part in value)
            on_own_lines = depth == 1 and any(isinstance(part, dict) for part in value)
        case str() if value.startswith(("?", ":")):
            # The library writes it without quotes, and cannot read that in a flow.
            return SingleQuotedScalarString(value)
        case _:
            return value
    if not on_own_lines:
        laid.fa.set_flow_style()
    return laid
