"""A whole campaign, from its plan to its summary."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import msgspec
from msgspec import Struct, structs
from pyspark.sql import SparkSession

from quarterdeck.backend.invariants.acknowledged_writes import JudgedWrites, together
from quarterdeck.backend.pipeline.campaign.comparison import VariantResult, compare_variants
from quarterdeck.backend.pipeline.campaign.failures import MAX_SIGNATURES, Failure, count_failures, investigate
from quarterdeck.backend.pipeline.campaign.plan import Campaign, PlannedRun, expected_seconds, in_order
from quarterdeck.backend.pipeline.campaign.store import CampaignStore, open_campaign, write_whole
from quarterdeck.backend.pipeline.campaign.verdicts import FAILURES, VERDICTS, VerdictRow, digest
from quarterdeck.backend.pipeline.campaign.waves import Attempt, run_waves
from quarterdeck.backend.pipeline.commit import Place


class CampaignProgress(Struct, frozen=True):
    """How far a campaign is. `share` is of the expected cost, so that time left can be told from it."""

    runs: int
    runs_before: int
    """Of those, the ones that an earlier driver ran."""
    of_runs: int
    failed: int
    share: float
    seconds: float
    left_seconds: float | None
    """None until something has come back."""
    new_failures: tuple[VerdictRow, ...]

    @property
    def rate(self) -> float:
        """Runs a second by this driver."""
        return (self.runs - self.runs_before) / self.seconds if self.seconds else 0.0


class Throughput(Struct, frozen=True):
    """What this driver did. Not the same at the next time."""

    runs: int
    wall_seconds: float
    runs_per_second: float


class CampaignSummary(Struct, frozen=True):
    """The campaign's result. But for `took` and `cpu_seconds`, equal seeds give equal summaries."""

    seeds: str
    runs: int
    verdicts: dict[str, int]
    writes: JudgedWrites
    events: int
    virtual_seconds: float
    cpu_seconds: float
    digest: str
    slowest_convergence: dict[str, float | int] | None
    failures: tuple[Failure, ...]
    failures_left_out: int
    """Ways of failing beyond those in `failures`."""
    settings: tuple[VariantResult, ...]
    """With a sweep, what is compared."""
    took: Throughput
    folder: str

    @property
    def failed(self) -> bool:
        """Whether any run failed."""
        return any(self.verdicts[verdict] for verdict in FAILURES)


def run_campaign(
    spark: SparkSession,
    campaign: Campaign,
    seeds: range,
    folder: Place,
    *,
    resume: bool = False,
    scenario_file: str = "",
    shrinks: bool = True,
    on_progress: Callable[[CampaignProgress], None] = lambda progress: None,
    on_warning: Callable[[str], None] = lambda text: None,
    attempt: Attempt | None = None,
) -> CampaignSummary:
    """Run what `folder` does not hold yet, then look into what failed. Raises `CampaignRefused`, OSError, what Spark raises.

    `on_progress` is called as waves come back, `on_warning` with what people should know besides. The summary is written to
    ``summary.json`` too.
    """
    began = time.monotonic()
    with open_campaign(folder, campaign, resume=resume) as store:
        if store.code_changed:
            on_warning(f"{folder} was begun with other code: what it found and what is found now may not fit together")
        ran = _run_the_rest(spark, campaign, seeds, store, began, on_progress, attempt)
        rows = [row for row in store.rows() if row.seed in seeds]
        took = time.monotonic() - began
        ways = count_failures(rows)
        failures = []
        with store.here() as here:
            for way in ways[:MAX_SIGNATURES]:
                on_warning(f"looking into {way.first[0].signature}: {way.runs} runs")
                failure = investigate(campaign, way, here, scenario_file=scenario_file, shrinks=shrinks)
                failures.append(_kept(failure, store, here))
        summary = _summary(campaign, seeds, rows, failures, len(ways) - len(failures), store.folder, ran, took)
        write_whole(folder, "summary.json", msgspec.json.format(msgspec.json.encode(summary)))
        return summary


def _kept(failure: Failure, store: CampaignStore, here: Path) -> Failure:
    """What is said of a failure, with the places at which its files are found."""
    return structs.replace(
        failure,
        reproduce=store.kept(failure.reproduce, here),
        journals=tuple(store.kept(one, here) for one in failure.journals),
        scenario=store.kept(failure.scenario, here),
    )


def _run_the_rest(
    spark: SparkSession,
    campaign: Campaign,
    seeds: range,
    store: CampaignStore,
    began: float,
    on_progress: Callable[[CampaignProgress], None],
    attempt: Attempt | None,
) -> int:
    """Run what has not been run; how many that were."""
    done = store.done()
    planned_runs = in_order(campaign, seeds)
    left = [planned_run for planned_run in planned_runs if planned_run not in done]
    before = len(planned_runs) - len(left)
    whole = sum(expected_seconds(campaign, planned_run) for planned_run in left)
    ran, failed, spent = 0, 0, 0.0
    for rows in run_waves(spark, campaign, left, attempt) if left else ():
        store.append_rows(rows)
        ran += len(rows)
        new_failures = tuple(row for row in rows if row.verdict in FAILURES)
        failed += len(new_failures)
        spent += sum(expected_seconds(campaign, PlannedRun(row.variant, row.seed)) for row in rows)
        share = spent / whole if whole else 1.0
        seconds = time.monotonic() - began
        left_seconds = seconds / share - seconds if share else None
        on_progress(
            CampaignProgress(
                before + ran, before, len(planned_runs), failed, share, seconds, left_seconds, new_failures
            )
        )
    return ran


def _summary(
    campaign: Campaign,
    seeds: range,
    rows: list[VerdictRow],
    failures: list[Failure],
    left_out: int,
    folder: Place,
    ran: int,
    wall_seconds: float,
) -> CampaignSummary:
    counts = Counter(row.verdict for row in rows)
    converged = [row for row in rows if row.converged_seconds is not None]
    slowest = max(converged, key=lambda row: (row.converged_seconds or 0.0, -row.seed), default=None)
    return CampaignSummary(
        seeds=f"{seeds[0]}:{seeds[-1]}",
        runs=len(rows),
        verdicts={verdict: counts[verdict] for verdict in VERDICTS},
        writes=together(row.writes for row in rows),
        events=sum(row.events for row in rows),
        virtual_seconds=round(sum(row.virtual_seconds for row in rows), 3),
        cpu_seconds=round(sum(row.cpu_seconds for row in rows), 1),
        digest=digest(rows),
        slowest_convergence=_convergence(slowest) if slowest else None,
        failures=tuple(failures),
        failures_left_out=left_out,
        settings=compare_variants(campaign, rows) if campaign.is_sweep else (),
        took=Throughput(ran, round(wall_seconds, 1), round(ran / wall_seconds, 1) if wall_seconds else 0.0),
        folder=str(folder),
    )


def _convergence(row: VerdictRow) -> dict[str, float | int]:
    bound = {} if row.bound_seconds is None else {"bound_seconds": row.bound_seconds}
    return {"seed": row.seed, "seconds": row.converged_seconds or 0.0, **bound}
