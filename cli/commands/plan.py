"""`quarterdeck plan`: what a master would decide, worked out from stdin and without a cluster."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, TypeVar, cast

import typer

from quarterdeck.cli.exits import ExitCode, failing_as
from quarterdeck.cli.output import Format, FormatOption, flag, say, write_document, write_rows

T = TypeVar("T")

group = typer.Typer(help="Work out what a master would decide.", rich_markup_mode=None)


@group.command()
def disconnections(
    explain: Annotated[
        bool,
        flag(
            "Add the reasons: the conflicts that force the decision, and other choices that keep as many.", "--explain"
        ),
    ] = False,
    output: FormatOption = Format.JSON,
) -> None:
    """Read members and whom they suspect as JSON from stdin; print who would stay and who would be removed."""
    from quarterdeck.backend.planning.disconnections import Disconnections, plan_disconnections

    given = _from_stdin(Disconnections.read)
    for reporter, suspect in given.about_the_master():
        why = "suspicions of and by the master are settled without this decision"
        say(f"ignored: {reporter} suspects {suspect}; {why}")
    write_document(plan_disconnections(given, explain=explain), output)


@group.command()
def merge(
    explain: Annotated[bool, flag("Add the rules that were passed before one decided.", "--explain")] = False,
    output: FormatOption = Format.JSON,
) -> None:
    """Read what two masters say of their clusters as JSON from stdin; print which one merges into the other, and why."""
    from quarterdeck.backend.planning.merge import Meeting, plan_merge

    document = plan_merge(_from_stdin(Meeting.read), explain=explain)
    if explain and output.is_flat:
        passed = document.pop("passed")
        assert isinstance(passed, dict)
        document |= {f"passed {rule}": held for rule, held in passed.items()}
    write_document(document, output)


@group.command()
def migrations(
    explain: Annotated[
        bool, flag("Add the target without cyclic migrations, and why each step is done.", "--explain")
    ] = False,
    output: FormatOption = Format.JSON,
) -> None:
    """Read current and targeted replicas of a partition, or a list of such, as JSON from stdin; print the steps in order."""
    from quarterdeck.backend.core.partitions.migration.migration_planner import cancelled
    from quarterdeck.backend.planning.migrations import COLUMNS, explained_plan, read_and_plan, steps_of

    planned = _from_stdin(read_and_plan)
    several = planned if isinstance(planned, list) else [planned]
    for number, partition in enumerate(several, start=1):
        if kept := cancelled(partition.target, partition.plan):
            about = f"[{number}]: cancelled" if isinstance(planned, list) else "cancelled"
            say(f"{about}: {', '.join(kept)} would have to pass their places on in a circle, so they keep them")
    if explain:
        if isinstance(planned, list):
            write_rows(map(explained_plan, several), ("steps", "target_after_cycle_fix", "why"), output)
        else:
            write_document(explained_plan(planned), output)
    elif not isinstance(planned, list):
        write_rows(steps_of(planned), COLUMNS, output)
    elif output.is_flat:
        numbered = enumerate(map(steps_of, several), start=1)
        rows = ({"row": number, **step} for number, steps in numbered for step in steps)
        write_rows(rows, ("row", *COLUMNS), output)
    else:
        # A format that is not flat prints whatever a row is: here the list of a partition's steps.
        write_rows(cast("Iterable[Mapping[str, object]]", map(steps_of, several)), (), output)


@group.command()
def rebalance(
    explain: Annotated[
        bool, flag("Add what each member holds at each index, and which partitions were lost.", "--explain")
    ] = False,
    output: FormatOption = Format.JSON,
) -> None:
    """Read members and the table of partitions as JSON from stdin; print the table that the master would aim at."""
    from quarterdeck.backend.planning.rebalance import Rebalance, plan_rebalance

    write_document(plan_rebalance(_from_stdin(Rebalance.read), explain=explain), output)


def _from_stdin(read: Callable[[bytes], T]) -> T:
    from quarterdeck.backend.planning.strict_input import BadInput

    with failing_as(ExitCode.BAD_INPUT, BadInput, about="stdin"):
        return read(sys.stdin.buffer.read())
