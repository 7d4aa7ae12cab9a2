"""`quarterdeck demo`: scripted demos, built in or of your own, on a live cluster without a screen or simulated."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.exits import CommandFailed, ExitCode, failing_as
from cli.journal import JournalOption, NoJournalOption, new_run, recording
from cli.live import LogOption, ProcessesOption, write_log
from cli.output import Format, FormatOption, say, write_rows
from cli.simulate import load, report, simulated

if TYPE_CHECKING:
    from backend.simulation.run import Outcome
    from backend.simulation.scenario import Scenario

group = typer.Typer(help="List and run scripted demos.", rich_markup_mode=None)


@group.command("list")
def list_demos(output: FormatOption = Format.TABLE) -> None:
    """List the built-in demos."""
    from backend.training.demos import demo_names, load_demo

    def row(name: str) -> dict[str, object]:
        scenario = load_demo(name)
        return {"name": name, "title": scenario.title, "summary": scenario.summary, "steps": len(scenario.steps)}

    write_rows(map(row, demo_names()), ("name", "title", "summary", "steps"), output)


@group.command("run")
def run_demo(
    demo: Annotated[str, typer.Argument(metavar="NAME|FILE", help="A built-in demo or a scenario file.")],
    simulate: Annotated[
        bool, typer.Option("--simulated", help="In simulated time instead of on live members.")
    ] = False,
    seed: Annotated[int | None, typer.Option(help="Seed of a simulated run; 0 when not given.")] = None,
    journal: JournalOption = None,
    no_journal: NoJournalOption = False,
    processes: ProcessesOption = False,
    log: LogOption = None,
    output: FormatOption = Format.JSON,
) -> None:
    """Run a demo, telling each step on stderr. Exits with 1 when an expectation is missed.

    A live run is recorded unless told otherwise, a simulated one only when told where.
    """
    if seed is not None and not simulate:
        raise CommandFailed(ExitCode.BAD_INPUT, "--seed: only a simulated run has a seed; add --simulated")
    for option, given in (("--processes", processes), ("--no-journal", no_journal), ("--log", log is not None)):
        if given and simulate:
            raise CommandFailed(ExitCode.BAD_INPUT, f"{option}: only for live members; leave out --simulated")
    write_log(log)
    scenario = scenario_of(demo)
    name = Path(demo).stem
    if simulate:
        report(simulated(scenario, name, seed or 0, journal), output)
    else:
        report(play(scenario, name, say, journal, wanted=not no_journal, processes=processes), output)


def register(app: typer.Typer) -> None:
    app.add_typer(group, name="demo")


def scenario_of(demo: str) -> Scenario:
    """The built-in demo of this name, or else the scenario in this file. Raises `CommandFailed` when it is neither."""
    from backend.training.demos import UnknownDemo, demo_names, load_demo

    path = Path(demo)
    if demo not in demo_names() and (path.suffix or path.exists()):
        return load(path)
    with failing_as(ExitCode.BAD_INPUT, UnknownDemo):
        return load_demo(demo)


def play(
    scenario: Scenario,
    name: str,
    narrate: Callable[[str], None],
    journal: Path | None,
    wanted: bool,
    *,
    processes: bool = False,
) -> Outcome:
    """Run `scenario` on live members, telling `narrate` each step and what every member believes after it.

    With `processes`, every member is a process of its own.
    """
    from backend.clusters.local import LocalCluster, ProcessCluster
    from backend.training.runner import CommandStuck, run_live

    with (
        recording(journal, new_run(name), wanted=wanted) as writer,
        failing_as(ExitCode.UNREACHABLE, OSError, CommandStuck, about="the live cluster failed"),
    ):
        return run_live(scenario, narrate, writer, kind=ProcessCluster if processes else LocalCluster)
