"""`quarterdeck plan migrations`: the steps that bring partitions from their current to their targeted replicas."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Annotated, cast

import typer

from quarterdeck.cli.exits import ExitCode, failing_as
from quarterdeck.cli.output import Format, FormatOption, say, write_document, write_rows

if TYPE_CHECKING:
    from quarterdeck.backend.planning.migrations import PlannedPartition


def migrations(
    explain: Annotated[
        bool, typer.Option("--explain", help="Add the target without cyclic migrations, and why each step is done.")
    ] = False,
    output: FormatOption = Format.JSON,
) -> None:
    """Read current and targeted replicas of a partition, or a list of such, as JSON from stdin; print the steps in order."""
    from quarterdeck.backend.planning.migrations import COLUMNS, BadMigrations, explained_plan, read_and_plan, steps_of

    with failing_as(ExitCode.BAD_INPUT, BadMigrations, about="stdin"):
        planned = read_and_plan(sys.stdin.buffer.read())
    several = planned if isinstance(planned, list) else [planned]
    for number, one in enumerate(several, start=1):
        _tell_what_was_cancelled(one, f"[{number}]: " if isinstance(planned, list) else "")
    if explain:
        if isinstance(planned, list):
            write_rows(map(explained_plan, several), ("steps", "target_after_cycle_fix", "why"), output)
        else:
            write_document(explained_plan(planned), output)
    elif not isinstance(planned, list):
        write_rows(steps_of(planned), COLUMNS, output)
    elif output.is_flat:
        numbered = ({"row": number, **step} for number, one in enumerate(several, start=1) for step in steps_of(one))
        write_rows(numbered, ("row", *COLUMNS), output)
    else:
        # A format that is not flat prints whatever a row is: here the list of a partition's steps.
        write_rows(cast("Iterable[Mapping[str, object]]", map(steps_of, several)), (), output)


def register(plan: typer.Typer) -> None:
    plan.command()(migrations)


def _tell_what_was_cancelled(planned: PlannedPartition, about: str) -> None:
    from quarterdeck.backend.core.partitions.migration.migration_planner import cancelled

    kept = cancelled(planned.target, planned.plan)
    if kept:
        say(f"{about}cancelled: {', '.join(kept)} would have to pass their places on in a circle, so they keep them")
