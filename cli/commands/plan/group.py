"""`quarterdeck plan`: what a master would decide, worked out from stdin and without a cluster."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from quarterdeck.cli.commands.plan import merge, migrations, rebalance
from quarterdeck.cli.exits import ExitCode, failing_as
from quarterdeck.cli.output import Format, FormatOption, say, write_document

group = typer.Typer(help="Work out what a master would decide.", rich_markup_mode=None)


@group.command()
def disconnections(
    explain: Annotated[
        bool,
        typer.Option(
            "--explain",
            help="Add the reasons: the conflicts that force the decision, and other choices that keep as many.",
        ),
    ] = False,
    output: FormatOption = Format.JSON,
) -> None:
    """Read members and whom they suspect as JSON from stdin; print who would stay and who would be removed."""
    from quarterdeck.backend.planning.disconnections import BadDisconnections, plan_disconnections, read_disconnections

    with failing_as(ExitCode.BAD_INPUT, BadDisconnections, about="stdin"):
        given = read_disconnections(sys.stdin.buffer.read())
    for reporter, suspect in given.about_the_master():
        say(
            f"ignored: {reporter} suspects {suspect}; suspicions of and by the master are settled without this decision"
        )
    write_document(plan_disconnections(given, explain=explain), output)


merge.register(group)
migrations.register(group)
rebalance.register(group)


def register(app: typer.Typer) -> None:
    app.add_typer(group, name="plan")
