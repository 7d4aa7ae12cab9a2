"""The steps that bring partitions from their current to their targeted replicas (Avoid Data Loss on Migration)."""

from __future__ import annotations

from functools import partial

import msgspec
from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from quarterdeck.backend.core.partitions.migration.migration_planner import (
    BadRows,
    Plan,
    plan_migrations,
    why_each_step,
)
from quarterdeck.backend.core.partitions.table.partition_table import Row
from quarterdeck.backend.planning.strict_input import BadInput, Name, StrictModel, problem_text, refuse_repeated_fields

COLUMNS = ("type", "src", "srcCurrentIndex", "srcNewIndex", "dst", "dstCurrentIndex", "dstNewIndex")
"""The fields of a step."""

EXAMPLE = '{"current": ["A", null], "target": ["A", "B"]}'


Replica = Name | None


class PlannedRows(StrictModel):
    """The replicas of one partition, by replica index: a member's name, or null for none."""

    current: tuple[Replica, ...]
    target: tuple[Replica, ...]


class PlannedPartition:
    """One partition's rows and the plan between them."""

    def __init__(self, rows: PlannedRows) -> None:
        self.current: Row = rows.current
        self.target: Row = rows.target
        self.plan: Plan = plan_migrations(rows.current, rows.target)


def read_and_plan(text: bytes) -> PlannedPartition | list[PlannedPartition]:
    """Plan the rows that `text` describes, or each of a list of them.

    Raises:
        BadInput: The text is wrong.
    """
    if not text.strip():
        raise BadInput(f"is empty; write {EXAMPLE}")
    refuse_repeated_fields(text)
    many = text.lstrip().startswith(b"[")
    try:
        given = TypeAdapter(list[PlannedRows]).validate_json(text) if many else [PlannedRows.model_validate_json(text)]
    except ValidationError as failure:
        error = failure.errors()[0]
        raise BadInput(_explained(error, many)) from failure
    plans = []
    for number, rows in enumerate(given, start=1):
        try:
            plans.append(PlannedPartition(rows))
        except BadRows as problem:
            raise BadInput(f"[{number}].{problem}" if many else str(problem)) from problem
    return plans if many else plans[0]


def steps_of(planned: PlannedPartition) -> list[dict[str, object]]:
    """Return the steps, each with just the fields of a migration."""
    steps = [msgspec.to_builtins(step) for step in planned.plan.steps]
    return [{name: step[name] for name in COLUMNS} for step in steps]


def explained_plan(planned: PlannedPartition) -> dict[str, object]:
    """Return the plan and its reasons; a step that loses a replica although nothing asks for it has `unavoidable`."""
    document: dict[str, object] = msgspec.to_builtins(planned.plan)
    document["why"] = why_each_step(planned.current, planned.plan)
    return document


def _explained(error: ErrorDetails, many: bool) -> str:
    """Field, problem and hint in one line. Rows in a list are counted from 1, replica indices from 0."""
    place = list(error["loc"])
    number = f"[{int(place.pop(0)) + 1}]" if many and place else ""
    field = ".".join(part for part in (number, str(place[0]) if place else "") if part)
    index = f"index {place[1]}" if len(place) > 1 else ""
    problem = problem_text(error, PlannedRows, partial(_remedy, inside=bool(place)))
    return ": ".join(part for part in (field, index, problem) if part)


def _remedy(error: ErrorDetails, *, inside: bool) -> str:
    match error["type"]:
        case "missing" | "model_type" | "model_attributes_type":
            return f"write {EXAMPLE}"
        case "tuple_type":
            return 'write a list, as in ["A", null]'
        case "string_too_short":
            return "write null where no member is"
    return "write the name of a member, or null for none" if inside else f"write {EXAMPLE}, or a list of such rows"
