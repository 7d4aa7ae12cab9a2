"""`quarterdeck plan`: what a master would decide, worked out from stdin and without a cluster (design 5.2)."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Annotated

import typer

from cli import plan_merge, plan_migrations, plan_rebalance
from cli.exits import ExitCode, failing_as
from cli.output import Format, FormatOption, say, write_document

if TYPE_CHECKING:
    from cli.plan_disconnections_input import Disconnections

group = typer.Typer(help="Work out what a master would decide.", rich_markup_mode=None)


@group.command()
def disconnections(
    explain: Annotated[
        bool, typer.Option("--explain", help="Add why: the conflicts that force it, and what else would keep as many.")
    ] = False,
    output: FormatOption = Format.JSON,
) -> None:
    """Read members and whom they suspect as JSON from stdin; print who would stay and who would be removed."""
    from backend.core.membership.conflict_graph import Candidate, settle
    from cli.plan_disconnections_input import BadDisconnections, read_disconnections

    with failing_as(ExitCode.BAD_INPUT, BadDisconnections, about="stdin"):
        given = read_disconnections(sys.stdin.buffer.read())
    for reporter, suspect in given.about_the_master():
        say(
            f"ignored: {reporter} suspects {suspect}; suspicions of and by the master are settled without this decision"
        )
    began = time.monotonic()
    until = began + given.timeout_seconds
    settlement = settle(
        [Candidate(member.name, member.lite) for member in given.members],
        given.conflicts(),
        out_of_time=(lambda: time.monotonic() > until) if given.timeout_seconds else None,
    )
    document: dict[str, object] = {
        "keep": settlement.keep,
        "remove": settlement.remove,
        "exact": settlement.exact,
        "seconds": round(time.monotonic() - began, 6),
    }
    if explain:
        document["why"] = f"{settlement.why} {_one_way_in_words(given)}".strip()
    write_document(document, output)


plan_merge.register(group)
plan_migrations.register(group)
plan_rebalance.register(group)


def register(app: typer.Typer) -> None:
    app.add_typer(group, name="plan")


def _one_way_in_words(given: Disconnections) -> str:
    """The suspicions that nobody returned, and what they count; nothing if there are none."""
    from backend.core.membership.conflict_wording import shortened

    one_way = [f"{reporter} suspects {suspect}" for reporter, suspect in given.one_way()]
    if not one_way:
        return ""
    return f"One-way only: {shortened(one_way)}; a link that fails one way counts as failed both ways."
