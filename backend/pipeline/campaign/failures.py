"""Failures of a campaign: ranked by signature, recorded, and one of each made small."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from msgspec import Struct

from quarterdeck.backend.journal.files import run_directory
from quarterdeck.backend.journal.writer import JournalWriter
from quarterdeck.backend.pipeline.campaign.attempt import WALL_TIMES_CPU, OutOfTime, failure_of, record, run_name
from quarterdeck.backend.pipeline.campaign.plan import (
    FAILURES,
    Campaign,
    PlannedRun,
    VerdictRow,
    origin_of,
    scenario_of,
)
from quarterdeck.backend.scenarios.format.scenario import Scenario
from quarterdeck.backend.scenarios.format.writing import scenario_text
from quarterdeck.backend.simulation.simulated_driver import simulate
from quarterdeck.backend.simulation.swarm_testing.guided import Origin
from quarterdeck.backend.simulation.swarm_testing.parallel_trials import shrunk_trial
from quarterdeck.backend.simulation.swarm_testing.shrinking import shrink
from quarterdeck.backend.simulation.swarm_testing.trial import run_trial

MAX_SIGNATURES = 50
"""How many kinds of failure are reported: a core with more of them is broken anyway."""
SHRINKING_BUDGETS = 20
"""Making a failure small may take as long as so many runs: each attempt is one."""

ENDLESS = ("timeout", "died")
"""Verdicts of runs that would take along the process which runs them again."""

MAX_SEEDS = 5
"""Seeds of one signature that are named, and whose journals are written."""


class Failure(Struct, frozen=True):
    """One kind of failure. `seeds` are the first of those that fail so; `error` is that of the first one."""

    signature: str
    verdict: str
    runs: int
    seeds: tuple[int, ...]
    settings: dict[str, Any]
    error: str
    reproduce: str
    """The command that runs the first of them again."""
    journals: tuple[str, ...] = ()
    scenario: str = ""
    """A small scenario that fails alike, or the whole one when its process did not survive."""


class FailureCount(Struct):
    """Failures of one signature while they are counted; `first` are those of the smallest seeds, in that order."""

    runs: int
    first: list[VerdictRow]


def count_failures(rows: Iterable[VerdictRow]) -> list[FailureCount]:
    """Count the failures by signature, the most frequent first."""
    ways: dict[tuple[str, str], FailureCount] = {}
    for row in rows:
        if row.verdict in FAILURES:
            way = ways.setdefault((row.verdict, row.signature), FailureCount(0, []))
            way.runs += 1
            way.first = sorted((*way.first, row), key=_planned_run)[:MAX_SEEDS]
    return sorted(ways.values(), key=lambda way: (-way.runs, way.first[0].signature))


def investigate(campaign: Campaign, way: FailureCount, folder: Path, *, scenario_file: str, shrinks: bool) -> Failure:
    """Record the first runs of this kind of failure and write a scenario for it, in `folder`. Existing files are kept.

    `scenario_file` is where the campaign's scenario was read. Raises OSError.
    """
    journals, failures = folder / "journals", folder / "failures"
    recorded = [path for row in way.first if (path := _recorded(campaign, row, journals)) is not None]
    row = way.first[0]
    file = failures / f"{run_name(campaign, _planned_run(row))}.yaml"
    if not file.exists() and shrinks:
        failures.mkdir(exist_ok=True)
        _in_a_child(_write_small, (campaign, row, file), SHRINKING_BUDGETS * WALL_TIMES_CPU * campaign.cpu_seconds)
    return Failure(
        signature=row.signature,
        verdict=row.verdict,
        runs=way.runs,
        seeds=tuple(row.seed for row in way.first),
        settings=dict(campaign.variants[row.variant]),
        error=row.error,
        reproduce=_reproduction(campaign, row, scenario_file, file),
        journals=tuple(str(path) for path in recorded),
        scenario=str(file) if file.exists() else "",
    )


def _planned_run(row: VerdictRow) -> PlannedRun:
    return PlannedRun(row.variant, row.seed)


# Running it again


def _reproduction(campaign: Campaign, row: VerdictRow, scenario_file: str, small: Path) -> str:
    if campaign.is_sweep or campaign.variants[row.variant]:
        words = ["simulate", str(small), "--seed", str(row.seed)] if small.exists() else []
    elif campaign.scenario:
        words = ["simulate", scenario_file, "--seed", str(row.seed)]
    else:
        fewest, most = campaign.sizes
        origin = origin_of(campaign, _planned_run(row)) if row.verdict not in ENDLESS else Origin(row.seed)
        seeds = origin.text if origin.variations else f"{row.seed}:{row.seed}"
        words = ["swarm", "--seeds", seeds, "--sizes", f"{fewest}:{most}"]
    return shlex.join(["quarterdeck", *words]) if words else ""


def _recorded(campaign: Campaign, row: VerdictRow, journals: Path) -> Path | None:
    """Write the journal of the run in a process of its own, which the run may end too.

    Return None when there is nothing to run.
    """
    planned_run = _planned_run(row)
    folder = run_directory(journals, run_name(campaign, planned_run))
    if not folder.exists():
        journals.mkdir(exist_ok=True)
        _in_a_child(_record, (campaign, planned_run, journals), WALL_TIMES_CPU * campaign.cpu_seconds)
    return folder if folder.exists() else None


def _in_a_child(work: Callable[..., None], arguments: tuple[object, ...], timeout_seconds: float) -> None:
    """Do `work` in a process of its own, which a run may end or block for ever."""
    child = get_context("spawn").Process(target=work, args=arguments, daemon=True)
    child.start()
    child.join(timeout_seconds)
    if child.is_alive():
        child.kill()
        child.join()


def _record(campaign: Campaign, planned_run: PlannedRun, journals: Path) -> None:
    """Record the run in a child process. What the run raises is known already, and is in its row."""
    with JournalWriter(journals, run_name(campaign, planned_run), "campaign") as writer, suppress(Exception, OutOfTime):
        record(campaign, planned_run, writer)


# Making it small


def _write_small(campaign: Campaign, row: VerdictRow, file: Path) -> None:
    """Write the small scenario in a child process, whole or not at all."""
    text = _small_text(campaign, row)
    if text:
        building = file.with_suffix(".building")
        building.write_text(text, encoding="utf-8")
        building.replace(file)


def _small_text(campaign: Campaign, row: VerdictRow) -> str:
    """Return a scenario file that fails alike; empty when its seed draws none, or it fails no more."""
    try:
        scenario = scenario_of(campaign, _planned_run(row))
    except Exception:  # noqa: BLE001 - drawing it is what failed, and the row says how
        return ""
    last_line = "".join(row.error.strip().splitlines()[-1:])
    heading = f"# Under seed {row.seed}: {row.signature}: {last_line}\n"
    if row.verdict in ENDLESS:  # every attempt to make it smaller would end this process as well
        return heading + scenario_text(scenario)
    if not campaign.scenario:
        trial = run_trial(scenario, row.seed, elide_heartbeats=not campaign.is_sweep)
        return shrunk_trial(trial, scenario) if trial.verdict in FAILURES else ""
    return heading + scenario_text(shrink(scenario, _fails_with(row)))


def _fails_with(row: VerdictRow) -> Callable[[Scenario], bool]:
    def still_fails(scenario: Scenario) -> bool:
        return failure_of(simulate(scenario, row.seed)).get("signature") == row.signature

    return still_fails
