"""`quarterdeck plan rebalance`: who would hold which replica after members came or went."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from quarterdeck.cli.exits import ExitCode, failing_as
from quarterdeck.cli.output import Format, FormatOption, write_document


def rebalance(
    explain: Annotated[
        bool,
        typer.Option("--explain", help="Add what each member holds at each index, and which partitions were lost."),
    ] = False,
    output: FormatOption = Format.JSON,
) -> None:
    """Read members and the table of partitions as JSON from stdin; print the table that the master would aim at."""
    from quarterdeck.backend.planning.rebalance import BadRebalance, plan_rebalance, read_rebalance

    with failing_as(ExitCode.BAD_INPUT, BadRebalance, about="stdin"):
        given = read_rebalance(sys.stdin.buffer.read())
    write_document(plan_rebalance(given, explain=explain), output)


def register(plan: typer.Typer) -> None:
    plan.command()(rebalance)
