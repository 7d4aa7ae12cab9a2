"""`quarterdeck simulate`: one scenario under one seed, in simulated time; and how commands find scenarios and run them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from quarterdeck.cli.commands.run_options import JournalOption, new_run, recording
from quarterdeck.cli.exits import ExitCode, fail_if, failing_as
from quarterdeck.cli.output import Format, FormatOption, argument, option, write_result

if TYPE_CHECKING:
    from quarterdeck.backend.scenarios.format.scenario import Scenario
    from quarterdeck.backend.scenarios.outcome import Outcome


def simulate(
    file: Annotated[Path, argument("A scenario.")],
    seed: Annotated[int, option("The same seed gives the same run.")],
    journal: JournalOption = None,
    output: FormatOption = Format.JSON,
) -> None:
    """Simulate a scenario. Exits with 1 when an expectation is missed or an invariant violated."""
    from quarterdeck.backend.scenarios.format.reading import load_scenario

    report(simulated(load_scenario(file), file.stem, seed, journal), output)


def scenario_of(demo: str) -> Scenario:
    """Return the built-in demo of this name, or else the scenario in this file.

    Raises:
        BadScenario: The file holds none.
        UnknownDemo: It is neither.
    """
    from quarterdeck.backend.scenarios.format.reading import load_scenario
    from quarterdeck.backend.training.demos import demo_names, load_demo

    path = Path(demo)
    return load_scenario(path) if demo not in demo_names() and (path.suffix or path.exists()) else load_demo(demo)


def play(
    scenario: Scenario,
    name: str,
    narrate: Callable[[str], None],
    journal: Path | None,
    wanted: bool,
    *,
    processes: bool = False,
) -> Outcome:
    """Run `scenario` on live members, giving `narrate` each step and what every member believes after it.

    With `processes`, every member is a process of its own.
    """
    from quarterdeck.backend.clusters.local import LocalCluster, ProcessCluster
    from quarterdeck.backend.training.runner import CommandTimedOut, run_live

    with (
        recording(journal, new_run(name), wanted=wanted) as writer,
        failing_as(ExitCode.UNREACHABLE, OSError, CommandTimedOut, about="the live cluster failed"),
    ):
        return run_live(scenario, narrate, writer, kind=ProcessCluster if processes else LocalCluster)


def simulated(scenario: Scenario, name: str, seed: int, journal: Path | None) -> Outcome:
    """Return the outcome of `scenario` under `seed`, recorded when `journal` says where."""
    from quarterdeck.backend.journal.files import seeded_run
    from quarterdeck.backend.simulation.simulated_driver import simulate

    run = seeded_run(name, seed)
    with recording(journal, run, wanted=journal is not None) as writer:
        return simulate(scenario, seed, writer, run=run)


def report(outcome: Outcome, output: Format | None) -> None:
    """Print the outcome; exit with 1 unless it passed."""
    write_result(outcome.as_json(), output)
    fail_if(not outcome.passed)
