"""Many swarm runs: spread over processes, and reported in the order in which they were chosen, whichever process was faster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from functools import lru_cache, partial
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

from quarterdeck.backend.scenarios.format.scenario import Scenario
from quarterdeck.backend.simulation.swarm_testing.guided import GuidedSearch, Origin, WatchedRun
from quarterdeck.backend.simulation.swarm_testing.reached_rules import ReachedRules
from quarterdeck.backend.simulation.swarm_testing.shrinking import fails_alike, shrink, shrunk_text, with_ending
from quarterdeck.backend.simulation.swarm_testing.trial import FAILURES, Trial, run_trial

CHUNK = 10
"""Seeds that a process is given at a time."""


WALK = 8
"""Runs of a search from one seed."""


class SwarmRun(NamedTuple):
    """One run, where its scenario comes from, and what it reached, as far as that was watched."""

    origin: Origin
    trial: Trial
    states: frozenset[int] = frozenset()
    """The abstract states that it was in."""
    reached: Mapping[str, int] = {}
    """How often it reached each rule and branch."""


def swarm_runs(
    origins: Iterable[Origin], sizes: tuple[int, int], jobs: int, *, counts: bool = False
) -> Iterator[SwarmRun]:
    """Try every origin in `jobs` processes; with one job in this one. In the order of `origins`."""
    attempt = partial(swarm_run, sizes=sizes, counts=counts)
    with trial_processes(jobs) as processes:
        yield from processes.map(attempt, origins, chunksize=CHUNK) if processes else map(attempt, origins)


def guided_runs(search: GuidedSearch, sizes: tuple[int, int], jobs: int, *, counts: bool = False) -> Iterator[SwarmRun]:
    """Try what `search` chooses, generation by generation; the same runs for any number of `jobs`."""
    attempt = partial(swarm_run, sizes=sizes, counts=counts, watches=True)
    with trial_processes(jobs) as processes:
        while origins := search.generation():
            for run in processes.map(attempt, origins) if processes else map(attempt, origins):
                search.corpus.add(run.origin, run.trial.events, run.states)
                yield run


def swarm_run(origin: Origin, sizes: tuple[int, int], *, counts: bool = False, watches: bool = False) -> SwarmRun:
    """Make one run. With `counts` it says which rules it reached, with `watches` in which abstract states it was."""
    rules = ReachedRules() if counts else None
    watched = WatchedRun(rules) if watches else None
    with rules.counting() if rules else nullcontext():
        trial = run_trial(origin.scenario(sizes), origin.seed, rules, run_state=watched)
    return SwarmRun(origin, trial, frozenset(watched.reached if watched else ()), dict(rules.counts) if rules else {})


@lru_cache(maxsize=1)
def walk(seed: int, sizes: tuple[int, int]) -> Origin:
    """Search from one seed alone: its run, and then variations. Return the first that fails, or the last."""
    search = GuidedSearch(range(seed, seed + 1), runs=WALK, generation=1)
    origin = Origin(seed)
    for run in guided_runs(search, sizes, 1):
        origin = run.origin
        if run.trial.verdict in FAILURES:
            break
    return origin


class _Processes(ProcessPoolExecutor):
    """Processes that begin nothing more once the results are not wanted any more."""

    def __exit__(self, *_: object) -> None:
        self.shutdown(cancel_futures=True)


def trial_processes(jobs: int) -> _Processes | nullcontext[None]:
    """Return that many processes for trials; with one job none, for then this process does it."""
    return nullcontext() if jobs == 1 else _Processes(jobs, mp_context=get_context("spawn"))


def write_shrunk(run: SwarmRun, sizes: tuple[int, int], folder: Path) -> Path:
    """Shrink a run that failed and write it into `folder`; the file. Raises OSError.

    Run again under its seed, the file fails in the same way.
    """
    text = shrunk_trial(run.trial, run.origin.scenario(sizes))
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"seed-{run.origin.text}.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def shrunk_trial(trial: Trial, scenario: Scenario) -> str:
    """Return the file of the smallest scenario found that fails as `trial` did when `scenario` was tried."""
    small = shrink(scenario, fails_alike(trial))
    found = run_trial(small, trial.seed)
    if trial.verdict == "no-convergence" or found.added:
        small = with_ending(small, found.added)
    return shrunk_text(found, small)
