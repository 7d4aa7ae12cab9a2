"""`quarterdeck plan rebalance`: who would hold which replica after members came or went (design 5.2)."""

from __future__ import annotations

import sys
import time
from typing import Annotated

import typer

from cli.exits import ExitCode, failing_as
from cli.output import Format, FormatOption, write_document


def rebalance(
    explain: Annotated[
        bool,
        typer.Option("--explain", help="Add what each member holds at each index, and which partitions were lost."),
    ] = False,
    output: FormatOption = Format.JSON,
) -> None:
    """Read members and the table of partitions as JSON from stdin; print the table that the master would aim at."""
    from backend.core.partitions.arrangement import arrange
    from cli.plan_rebalance_input import BadRebalance, read_rebalance

    with failing_as(ExitCode.BAD_INPUT, BadRebalance, about="stdin"):
        given = read_rebalance(sys.stdin.buffer.read())
    began = time.monotonic()
    found = arrange(given.table, given.grouped(), given.partitions, given.backups, leaving=given.leaving)
    document: dict[str, object] = {
        "table": found.table,
        "moves": found.moves,
        "lower_bound": found.lower_bound,
        "imbalance": found.imbalance,
        "seconds": round(time.monotonic() - began, 6),
    }
    if explain:
        columns = list(zip(*found.table, strict=True))
        document["counts"] = {
            member.name: [column.count(member.name) for column in columns] for member in given.members
        }
        document["lost"] = found.lost
    write_document(document, output)


def register(plan: typer.Typer) -> None:
    plan.command()(rebalance)
