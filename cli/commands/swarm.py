"""`quarterdeck swarm`: many simulated runs with faults drawn from their seeds, each judged by the invariants."""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quarterdeck.cli.exits import CommandFailed, ExitCode, failing_as
from quarterdeck.cli.output import Format, FormatOption, say, write_document

if TYPE_CHECKING:
    from quarterdeck.backend.simulation.swarm_testing.trial import Trial

GREATEST_SEED = 2**53
"""Every program that reads the JSON reads this number right."""

PROGRESS_INTERVAL_SECONDS = 5.0


def swarm(
    seeds: Annotated[str, typer.Option(metavar="FIRST:LAST", help="The seeds to run; both ends are run.")] = "1:100",
    jobs: Annotated[int | None, typer.Option(min=1, help="Processes; as many as processors when not given.")] = None,
    sizes: Annotated[
        str | None,
        typer.Option(metavar="FEWEST:MOST", help="How many members a run may have; 3:20."),
    ] = None,
    shrink: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write the smallest scenario for each way of failing there.")
    ] = None,
    print_scenario: Annotated[
        bool, typer.Option("--print", help="Print the scenario of the only seed instead of running it.")
    ] = False,
    output: FormatOption = Format.JSON,
) -> None:
    """Simulate a run for each seed: faults first, with data in use, then calm, in which the members must form one cluster.

    Exits with 1 when a run violates an invariant, does not converge, or ends in an error of the core.
    """
    numbers, bounds = seed_range(seeds), size_bounds(sizes or "3:20")
    if print_scenario:
        if len(numbers) != 1:
            raise CommandFailed(ExitCode.BAD_INPUT, f"--print: {seeds} is more than one seed; write one, as in 7:7")
        typer.echo(scenario_of(numbers[0], bounds), nl=False)
        return
    if shrink is not None:
        with failing_as(ExitCode.BAD_INPUT, OSError, about="--shrink"):
            shrink.mkdir(parents=True, exist_ok=True)
    failed = run(numbers, bounds, jobs or os.cpu_count() or 1, shrink, output)
    if failed:
        raise typer.Exit(ExitCode.CHECK_FAILED)


def seed_range(text: str) -> range:
    """Return the seeds of ``FIRST:LAST`` or of one number alone.

    Raises:
        CommandFailed: The text is neither.
    """
    first, last = _numbers(text, "--seeds", "1:2000")
    if last > GREATEST_SEED:
        raise CommandFailed(ExitCode.BAD_INPUT, f"--seeds: {last} is too great; the greatest seed is {GREATEST_SEED}")
    return range(first, last + 1)


def size_bounds(text: str) -> tuple[int, int]:
    """Fewest and most members of ``FEWEST:MOST``. Raises `CommandFailed`."""
    from quarterdeck.backend.scenarios.format.values import MOST_MEMBERS
    from quarterdeck.backend.simulation.swarm_testing.drawing import FEWEST

    fewest, most = _numbers(text, "--sizes", "3:20")
    if not FEWEST <= fewest <= most <= MOST_MEMBERS:
        raise CommandFailed(ExitCode.BAD_INPUT, f"--sizes: {text} does not lie between {FEWEST} and {MOST_MEMBERS}")
    return fewest, most


def scenario_of(seed: int, sizes: tuple[int, int]) -> str:
    """Return what `seed` draws, as a scenario file."""
    from quarterdeck.backend.scenarios.format.writing import scenario_text
    from quarterdeck.backend.simulation.swarm_testing.drawing import draw_scenario

    return scenario_text(draw_scenario(seed, sizes).scenario)


def run(seeds: range, sizes: tuple[int, int], jobs: int, shrink: Path | None, output: Format) -> bool:
    """Run all seeds and print the summary; whether any failed."""
    from quarterdeck.backend.simulation.swarm_testing.parallel_trials import trials
    from quarterdeck.backend.simulation.swarm_testing.trial import FAILURES

    began, told = time.monotonic(), time.monotonic()
    done: list[Trial] = []
    for trial in trials(seeds, sizes, min(jobs, len(seeds))):
        done.append(trial)
        if trial.verdict in FAILURES:
            say(f"seed {trial.seed}: {trial.verdict} {trial.invariant}".rstrip() + f"; {reproduction(trial, sizes)}")
        if time.monotonic() - told > PROGRESS_INTERVAL_SECONDS:
            told = time.monotonic()
            say(f"{len(done)} of {len(seeds)} seeds, {len(done) / (told - began):.1f} a second")
    say(f"{len(done)} seeds, {len(done) / max(time.monotonic() - began, 1e-9):.1f} a second")
    failed = [trial for trial in done if trial.verdict in FAILURES]
    write_document(summary(seeds, sizes, done, failed), output)
    if shrink is not None:
        _shrink_each_way_of_failing(failed, sizes, shrink)
    return bool(failed)


def summary(seeds: range, sizes: tuple[int, int], done: list[Trial], failed: list[Trial]) -> dict[str, object]:
    """Return what is printed; equal seeds give equal summaries."""
    from quarterdeck.backend.invariants.data.linearizability import together
    from quarterdeck.backend.simulation.swarm_testing.trial import VERDICTS

    counts = Counter(trial.verdict for trial in done)
    slowest = max(
        (trial for trial in done if trial.converged_seconds is not None),
        key=lambda trial: trial.converged_seconds or 0.0,
        default=None,
    )
    return {
        "seeds": f"{seeds[0]}:{seeds[-1]}",
        "runs": len(done),
        "verdicts": {verdict: counts[verdict] for verdict in VERDICTS},
        "judged_runs": sum(trial.writes.survived > 0 for trial in done),
        "writes": together(trial.writes for trial in done),
        "events": sum(trial.events for trial in done),
        "virtual_seconds": round(sum(trial.virtual_seconds for trial in done), 3),
        "slowest_convergence": slowest
        and {"seed": slowest.seed, "seconds": slowest.converged_seconds, "bound_seconds": slowest.bound_seconds},
        "failures": [
            {
                "seed": trial.seed,
                "verdict": trial.verdict,
                "invariant": trial.invariant,
                "text": trial.text,
                "witnesses": trial.witnesses,
                "reproduce": reproduction(trial, sizes),
            }
            for trial in failed
        ],
    }


def reproduction(trial: Trial, sizes: tuple[int, int]) -> str:
    """Return the command that runs this trial again."""
    return f"quarterdeck swarm --seeds {trial.seed}:{trial.seed} --sizes {sizes[0]}:{sizes[1]}"


def _shrink_each_way_of_failing(failed: list[Trial], sizes: tuple[int, int], folder: Path) -> None:
    from quarterdeck.backend.simulation.swarm_testing.parallel_trials import write_shrunk
    from quarterdeck.backend.simulation.swarm_testing.shrinking import failure_signature

    ways: dict[tuple[str, str, str], Trial] = {}
    for trial in failed:
        ways.setdefault(failure_signature(trial), trial)
    for trial in ways.values():
        with failing_as(ExitCode.BAD_INPUT, OSError, about="--shrink"):
            file = write_shrunk(trial, sizes, folder)
        say(f"shrunk: quarterdeck simulate {file} --seed {trial.seed}")


def _numbers(text: str, option: str, example: str) -> tuple[int, int]:
    fit = re.fullmatch(r"(\d+)(?::(\d+))?", text.strip())
    if fit is None:
        raise CommandFailed(
            ExitCode.BAD_INPUT, f"{option}: {text!r} is not a range; write two numbers, as in {example}"
        )
    first = int(fit[1])
    last = int(fit[2]) if fit[2] else first
    if last < first:
        raise CommandFailed(ExitCode.BAD_INPUT, f"{option}: {text} ends before it begins")
    return first, last
