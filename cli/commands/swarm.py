"""`quarterdeck swarm`: many simulated runs with faults drawn from their seeds, each judged by the invariants."""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from quarterdeck.cli.commands.run_options import JobsOption
from quarterdeck.cli.exits import BadUsage, ExitCode, fail_if, failing_as
from quarterdeck.cli.output import Format, FormatOption, flag, option, say, write_document, write_text

if TYPE_CHECKING:
    from quarterdeck.backend.simulation.swarm_testing.guided import GuidedSearch, Origin
    from quarterdeck.backend.simulation.swarm_testing.parallel_trials import SwarmRun

GREATEST_SEED = 2**53
"""Every program that reads the JSON reads this number right."""

PROGRESS_INTERVAL_SECONDS = 5.0


def swarm(
    seeds: Annotated[
        str, option("The seeds to run; both ends are run. 7+120 is one varied run.", "FIRST:LAST")
    ] = "1:100",
    guided: Annotated[
        bool, flag("As many runs, most of which vary one that reached a rare state.", "--guided")
    ] = False,
    reached: Annotated[
        bool, flag("Say how often each rule and branch was reached, and which never was.", "--reached")
    ] = False,
    conclusions: Annotated[
        bool, flag("Compare what is concluded of each cluster with what is true.", "--conclusions")
    ] = False,
    jobs: JobsOption = None,
    sizes: Annotated[str | None, option("How many members a run may have; 3:20.", "FEWEST:MOST")] = None,
    shrink: Annotated[Path | None, option("Write the smallest scenario for each way of failing there.", "DIR")] = None,
    print_scenario: Annotated[
        bool, flag("Print the scenario of the only seed instead of running it.", "--print")
    ] = False,
    output: FormatOption = Format.JSON,
) -> None:
    """Simulate a run for each seed: faults first, with data in use, then calm, in which the members must form one cluster.

    Exits with 1 when a run violates an invariant, does not converge, or ends in an error of the core; with --conclusions, when a
    conclusion is false.
    """
    from quarterdeck.backend.simulation.swarm_testing.guided import GuidedSearch, Origin

    origin, bounds = Origin.of(seeds.strip()), size_bounds(sizes or "3:20", fewest=1 if conclusions else None)
    numbers = seed_range(seeds) if origin is None else range(origin.seed, origin.seed + 1)
    origins = [Origin(seed) for seed in numbers] if origin is None else [origin]
    if print_scenario:
        if len(origins) != 1:
            raise BadUsage(f"--print: {seeds} is more than one seed; write one, as in 7:7")
        write_text(scenario_of(origins[0], bounds))
        return
    if guided and origin is not None:
        raise BadUsage(f"--guided: {seeds} is one run; write a range of seeds, as in 1:2000")
    if shrink is not None:
        with failing_as(ExitCode.BAD_INPUT, OSError, about="--shrink"):
            shrink.mkdir(parents=True, exist_ok=True)
    if conclusions:
        if guided or reached or origin is not None:
            raise BadUsage("--conclusions: takes a range of seeds, as in 1:2000, without --guided and --reached")
        fail_if(judge_conclusions(numbers, bounds, jobs or os.cpu_count() or 1, output, shrink))
        return
    search = GuidedSearch(numbers) if guided else None
    fail_if(run(origins, search, bounds, jobs or os.cpu_count() or 1, shrink, output, counts=reached))


def seed_range(text: str, *, alone_from: int | None = None) -> range:
    """Return the seeds of ``FIRST:LAST``, or of one number alone: it, or all from `alone_from` to it.

    Raises:
        CommandFailed: The text is neither.
    """
    alone = alone_from is not None and ":" not in text and text.strip().isdecimal()
    first, last = _numbers(f"{alone_from}:{text.strip()}" if alone else text, "--seeds", "1:2000")
    if last > GREATEST_SEED:
        raise BadUsage(f"--seeds: {last} is too great; the greatest seed is {GREATEST_SEED}")
    return range(first, last + 1)


def size_bounds(text: str, option: str = "--sizes", fewest: int | None = None) -> tuple[int, int]:
    """Fewest and most members of ``FEWEST:MOST`` or ``FEWEST-MOST``, not under `fewest`. Raises `CommandFailed`."""
    from quarterdeck.backend.scenarios.format.values import MOST_MEMBERS
    from quarterdeck.backend.simulation.swarm_testing.drawing import FEWEST

    least = fewest or FEWEST
    few, most = _numbers(text, option, "3:20")
    if not least <= few <= most <= MOST_MEMBERS:
        raise BadUsage(f"{option}: {text} does not lie between {least} and {MOST_MEMBERS}")
    return few, most


def scenario_of(origin: Origin, sizes: tuple[int, int]) -> str:
    """Return what a seed draws, with its variations, as a scenario file."""
    from quarterdeck.backend.scenarios.format.writing import scenario_text

    return scenario_text(origin.scenario(sizes))


def run(
    origins: list[Origin],
    search: GuidedSearch | None,
    sizes: tuple[int, int],
    jobs: int,
    shrink: Path | None,
    output: Format,
    *,
    counts: bool,
) -> bool:
    """Make all runs and print the summary; whether any failed. With `search` that one chooses them."""
    from quarterdeck.backend.simulation.swarm_testing.parallel_trials import guided_runs, swarm_runs
    from quarterdeck.backend.simulation.swarm_testing.reached_rules import ReachedSummary
    from quarterdeck.backend.simulation.swarm_testing.trial import FAILURES

    began, reported = time.monotonic(), time.monotonic()
    processes, most = min(jobs, len(origins)), len(origins)
    done: list[SwarmRun] = []
    reached: Counter[str] = Counter()
    for seed_run in (
        guided_runs(search, sizes, processes, counts=counts)
        if search is not None
        else swarm_runs(origins, sizes, processes, counts=counts)
    ):
        reached.update(seed_run.reached)
        done.append(seed_run._replace(states=frozenset(), reached={}))
        trial = seed_run.trial
        if trial.verdict in FAILURES:
            what = f"{trial.verdict} {trial.invariant}".rstrip()
            say(f"seed {seed_run.origin.text}: {what}; {reproduction(seed_run.origin, sizes)}")
        if time.monotonic() - reported > PROGRESS_INTERVAL_SECONDS:
            reported = time.monotonic()
            say(f"{len(done)} of {most} seeds, {len(done) / (reported - began):.1f} a second")
    say(f"{len(done)} seeds, {len(done) / max(time.monotonic() - began, 1e-9):.1f} a second")
    failed = [run for run in done if run.trial.verdict in FAILURES]
    document = summary(origins, sizes, done, failed)
    if search is not None:
        document["guided"] = {"varied": search.varied, "states": len(search.corpus)}
    if counts:
        found = ReachedSummary.of(reached)
        say(found.text)
        document["reached"] = found
    write_document(document, output)
    if shrink is not None:
        _shrink_each_way_of_failing(failed, sizes, shrink)
    return bool(failed)


def judge_conclusions(
    seeds: range, sizes: tuple[int, int], jobs: int, output: Format, shrink: Path | None = None
) -> bool:
    """Judge the conclusions of each run and print the table; whether any was false."""
    from quarterdeck.backend.conclusion_testing.shrunk_conclusion import shrunk_conclusion
    from quarterdeck.backend.conclusion_testing.situations import judged_scenario
    from quarterdeck.backend.conclusion_testing.summary import ConclusionSummary, judged_runs

    began = reported = time.monotonic()
    summary = ConclusionSummary(sizes)
    for done, trial in enumerate(judged_runs(seeds, sizes, min(jobs, len(seeds))), start=1):
        summary.add(trial)
        if trial.crash:
            say(trial.crash)
        for false in trial.false:
            statement = false.statement
            what = f"{statement.question} {statement.subject}".rstrip()
            say(f"seed {trial.seed}, {false.at_us / 1e6:.3f} s: {what}: said {statement.said}, true {statement.true}")
        if time.monotonic() - reported > PROGRESS_INTERVAL_SECONDS:
            reported = time.monotonic()
            say(f"{done} of {len(seeds)} seeds, {done / (reported - began):.1f} a second")
    write_document(summary.as_fields(), output)
    for number, false in enumerate(summary.kinds() if shrink is not None else (), start=1):
        assert shrink is not None
        file = shrink / f"conclusion-{number}-seed-{false.seed}.yaml"
        with failing_as(ExitCode.BAD_INPUT, OSError, about="--shrink"):
            file.write_text(shrunk_conclusion(false, judged_scenario(false.seed, sizes)), encoding="utf-8")
        say(f"shrunk: {file}")
    return summary.has_failed


def summary(
    origins: list[Origin], sizes: tuple[int, int], done: list[SwarmRun], failed: list[SwarmRun]
) -> dict[str, object]:
    """Return what is printed; equal seeds give equal summaries."""
    from quarterdeck.backend.invariants.data.linearizability import together
    from quarterdeck.backend.simulation.swarm_testing.trial import VERDICTS

    trials = [run.trial for run in done]
    verdicts = Counter(trial.verdict for trial in trials)
    slowest = max(
        (seed_run for seed_run in done if seed_run.trial.converged_seconds is not None),
        key=lambda seed_run: seed_run.trial.converged_seconds or 0.0,
        default=None,
    )
    return {
        "seeds": f"{origins[0].seed}:{origins[-1].seed}",
        "runs": len(done),
        "verdicts": {verdict: verdicts[verdict] for verdict in VERDICTS},
        "judged_runs": sum(trial.writes.survived > 0 for trial in trials),
        "writes": together(trial.writes for trial in trials),
        "events": sum(trial.events for trial in trials),
        "virtual_seconds": round(sum(trial.virtual_seconds for trial in trials), 3),
        "slowest_convergence": slowest
        and {
            "seed": slowest.trial.seed,
            "seconds": slowest.trial.converged_seconds,
            "bound_seconds": slowest.trial.bound_seconds,
        },
        "failures": [
            {name: getattr(seed_run.trial, name) for name in ("seed", "verdict", "invariant", "text", "witnesses")}
            | {"reproduce": reproduction(seed_run.origin, sizes)}
            for seed_run in failed
        ],
    }


def reproduction(origin: Origin, sizes: tuple[int, int]) -> str:
    """Return the command that makes this run again."""
    seeds = origin.text if origin.variations else f"{origin.seed}:{origin.seed}"
    return f"quarterdeck swarm --seeds {seeds} --sizes {sizes[0]}:{sizes[1]}"


def _shrink_each_way_of_failing(failed: list[SwarmRun], sizes: tuple[int, int], folder: Path) -> None:
    from quarterdeck.backend.simulation.swarm_testing.parallel_trials import write_shrunk
    from quarterdeck.backend.simulation.swarm_testing.shrinking import failure_signature

    ways: dict[tuple[str, str, str], SwarmRun] = {}
    for seed_run in failed:
        ways.setdefault(failure_signature(seed_run.trial), seed_run)
    for seed_run in ways.values():
        with failing_as(ExitCode.BAD_INPUT, OSError, about="--shrink"):
            file = write_shrunk(seed_run, sizes, folder)
        say(f"shrunk: quarterdeck simulate {file} --seed {seed_run.trial.seed}")


def _numbers(text: str, option: str, example: str) -> tuple[int, int]:
    fit = re.fullmatch(r"(\d+)(?:[:-](\d+))?", text.strip())
    if fit is None:
        raise BadUsage(f"{option}: {text!r} is not a range; write two numbers, as in {example}")
    first = int(fit[1])
    last = int(fit[2]) if fit[2] else first
    if last < first:
        raise BadUsage(f"{option}: {text} ends before it begins")
    return first, last
