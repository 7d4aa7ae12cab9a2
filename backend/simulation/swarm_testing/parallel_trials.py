"""Many swarm runs: spread over processes, and reported in the order of their seeds, whichever process was faster."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from quarterdeck.backend.scenarios.format.scenario import Scenario
from quarterdeck.backend.simulation.swarm_testing.drawing import draw_scenario
from quarterdeck.backend.simulation.swarm_testing.shrinking import fails_alike, shrink, shrunk_text, with_ending
from quarterdeck.backend.simulation.swarm_testing.trial import Trial, run_seed, run_trial

CHUNK = 10
"""Seeds that a process is given at a time."""


def trials(seeds: range, sizes: tuple[int, int], jobs: int) -> Iterator[Trial]:
    """Try every seed in `jobs` processes; with one job in this one. In the order of `seeds`."""
    attempt = partial(run_seed, sizes=sizes)
    if jobs == 1:
        yield from map(attempt, seeds)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as processes:
        try:
            yield from processes.map(attempt, seeds, chunksize=CHUNK)
        finally:
            processes.shutdown(wait=False, cancel_futures=True)


def write_shrunk(trial: Trial, sizes: tuple[int, int], folder: Path) -> Path:
    """Shrink the run that failed as `trial` says and write it into `folder`; the file. Raises OSError.

    Run again under its seed, the file fails in the same way.
    """
    text = shrunk_trial(trial, draw_scenario(trial.seed, sizes).scenario)
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"seed-{trial.seed}.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def shrunk_trial(trial: Trial, scenario: Scenario) -> str:
    """Return the file of the smallest scenario found that fails as `trial` did when `scenario` was tried."""
    small = shrink(scenario, fails_alike(trial))
    found = run_trial(small, trial.seed)
    if trial.verdict == "no-convergence" or found.added:
        small = with_ending(small, found.added)
    return shrunk_text(found, small)
