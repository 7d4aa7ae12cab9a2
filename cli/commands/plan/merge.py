"""`quarterdeck plan merge`: which of two clusters that meet would merge into the other, and why."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from quarterdeck.cli.exits import ExitCode, failing_as
from quarterdeck.cli.output import Format, FormatOption, write_document


def merge(
    explain: Annotated[
        bool, typer.Option("--explain", help="Add the rules that were passed before one decided.")
    ] = False,
    output: FormatOption = Format.JSON,
) -> None:
    """Read what two masters say of their clusters as JSON from stdin; print which one merges into the other, and why."""
    from quarterdeck.backend.planning.merge import BadMergeInput, plan_merge, read_meeting

    with failing_as(ExitCode.BAD_INPUT, BadMergeInput, about="stdin"):
        meeting = read_meeting(sys.stdin.buffer.read())
    document = plan_merge(meeting, explain=explain)
    if explain and output.is_flat:
        passed = document.pop("passed")
        assert isinstance(passed, dict)
        document |= {f"passed {rule}": held for rule, held in passed.items()}
    write_document(document, output)


def register(plan: typer.Typer) -> None:
    plan.command()(merge)
