"""A whole campaign, from its plan to its summary. Each wave of its schedule is one small Spark job.

Its folder holds the plan and the rows of its runs, which survive whatever ends the campaign: ``campaign.json``,
``verdicts/chunk-N.parquet``, ``journals/``, ``failures/``. Only whole chunks ever get their names.

A wave comes back whole, so its rows are safe whatever happens next, and the campaign learns from it how long tasks really take.
Some waves run at a time: while the last tasks of one run, free cores begin the next.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from msgspec import Struct
from pyspark import TaskContext
from pyspark.sql import SparkSession

from quarterdeck.backend.invariants.data.linearizability import JudgedWrites, together
from quarterdeck.backend.pipeline.campaign.attempt import WALL_TIMES_CPU, lost_row, run_in_child
from quarterdeck.backend.pipeline.campaign.attempt import attempt as attempt_once
from quarterdeck.backend.pipeline.campaign.comparison import VariantResult, compare_variants
from quarterdeck.backend.pipeline.campaign.failures import MAX_SIGNATURES, Failure, count_failures, investigate
from quarterdeck.backend.pipeline.campaign.plan import (
    FAILURES,
    VERDICTS,
    WAVES_IN_FLIGHT,
    Campaign,
    CampaignSchedule,
    PlannedRun,
    Task,
    VerdictRow,
    digest,
    expected_seconds,
    in_order,
)
from quarterdeck.backend.pipeline.commit import BUILDING, locked, remove, write_whole
from quarterdeck.backend.pipeline.schemas import arrow_schema, columns_of
from quarterdeck.backend.pipeline.spark.arrow import exit_with_task
from quarterdeck.backend.pipeline.spark.session import parallelism, sources_digest
from quarterdeck.backend.simulation.swarm_testing.reached_rules import ReachedSummary

COLUMNS = columns_of(VerdictRow)


# The folder


class CampaignRefused(ValueError):
    """The folder cannot hold this campaign; the message says why and what to do."""


class StoredPlan(Struct, frozen=True):
    """The content of ``campaign.json``."""

    campaign: Campaign
    code: str
    """Digest of the package that ran it first."""


class CampaignStore:
    """The folder of one campaign, opened with `open_campaign`."""

    def __init__(self, folder: Path, *, code_changed: bool) -> None:
        self.folder = folder
        self.code_changed = code_changed
        """Whether another version of the package began this campaign: its rows and new ones may not fit together."""
        self._verdicts = folder / "verdicts"
        self._verdicts.mkdir(exist_ok=True)
        for torn in self._verdicts.glob(f"{BUILDING}*"):
            remove(torn)
        numbers = (int(chunk.name.removesuffix(".parquet").partition("-")[2]) for chunk in self._chunks())
        self._next = max(numbers, default=0) + 1

    def append_rows(self, rows: Sequence[VerdictRow]) -> None:
        """Write the rows as one more chunk, which survives a kill once this returns. Raises OSError."""
        table = pa.Table.from_pylist(msgspec.to_builtins(rows), schema=arrow_schema(COLUMNS))
        content = pa.BufferOutputStream()
        pq.write_table(table, content, compression="zstd")
        write_whole(self._verdicts, f"chunk-{self._next:06d}.parquet", content.getvalue().to_pybytes())
        self._next += 1

    def done(self) -> set[PlannedRun]:
        return {
            PlannedRun(*pair)
            for chunk in self._chunks()
            for pair in zip(*_table(chunk, ["variant", "seed"]).to_pydict().values(), strict=True)
        }

    def rows(self) -> Iterator[VerdictRow]:
        for chunk in self._chunks():
            yield from msgspec.convert(_table(chunk).to_pylist(), list[VerdictRow])

    def _chunks(self) -> list[Path]:
        return sorted(self._verdicts.glob("chunk-*.parquet"))


def _table(chunk: Path, columns: list[str] | None = None) -> pa.Table:
    return pq.ParquetFile(chunk).read(columns)


@contextmanager
def open_campaign(folder: Path, campaign: Campaign, *, resume: bool) -> Iterator[CampaignStore]:
    """Open the folder, or make it, and lock out other drivers. Raises `CampaignRefused` and OSError.

    With `resume` it may hold the same campaign already; its seeds may differ.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder / "lock", CampaignRefused(f"{folder}: a campaign is running there")):
        plan = folder / "campaign.json"
        code = sources_digest()
        if plan.exists():
            try:
                kept = msgspec.json.decode(plan.read_bytes(), type=StoredPlan)
            except msgspec.DecodeError as problem:
                raise CampaignRefused(f"{plan}: {problem}; choose another folder") from problem
            if kept.campaign != campaign:
                raise CampaignRefused(f"{plan}: another campaign, with other options; choose another folder")
            if not resume:
                raise CampaignRefused(f"{folder} holds this campaign already; add --resume, or choose another folder")
        elif any(path.name != "lock" and not path.name.startswith(BUILDING) for path in folder.iterdir()):
            raise CampaignRefused(f"{folder} is not empty and holds no campaign; choose another folder")
        else:
            kept = StoredPlan(campaign, code)
            write_whole(folder, plan.name, msgspec.json.format(msgspec.json.encode(kept)))
        yield CampaignStore(folder, code_changed=kept.code != code)


# From the plan to the summary


class CampaignProgress(Struct, frozen=True):
    """How far a campaign is. `share` is of the expected cost, from which the time left is estimated."""

    runs: int
    runs_before: int
    """Of those, the runs of an earlier driver."""
    of_runs: int
    failed: int
    share: float
    seconds: float
    left_seconds: float | None
    """None until the first runs have come back."""
    new_failures: tuple[VerdictRow, ...]

    @property
    def rate(self) -> float:
        """Runs a second by this driver."""
        return (self.runs - self.runs_before) / self.seconds if self.seconds else 0.0


OnProgress = Callable[[CampaignProgress], None]


class Throughput(Struct, frozen=True):
    """How fast this driver was, which differs each time."""

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
    """Kinds of failure beyond those in `failures`."""
    settings: tuple[VariantResult, ...]
    """The variants of a sweep."""
    reached: ReachedSummary | None
    """How often the core's rules and branches were reached; None when that is not counted."""
    took: Throughput
    folder: str

    @property
    def failed(self) -> bool:
        return any(self.verdicts[verdict] for verdict in FAILURES)


def run_campaign(
    spark: SparkSession,
    campaign: Campaign,
    seeds: range,
    folder: Path,
    *,
    resume: bool = False,
    scenario_file: str = "",
    shrinks: bool = True,
    on_progress: OnProgress = lambda progress: None,
    on_warning: Callable[[str], None] = lambda text: None,
    attempt: Attempt | None = None,
) -> CampaignSummary:
    """Run what `folder` does not hold yet, then investigate failures. Raises `CampaignRefused`, OSError, what Spark raises.

    `on_progress` is called as waves come back, `on_warning` with other messages for the user. The summary is written to
    ``summary.json`` too.
    """
    began = time.monotonic()
    with open_campaign(folder, campaign, resume=resume) as store:
        if store.code_changed:
            on_warning(f"{folder} was begun with other code: its results and new ones may not fit together")
        ran = _run_the_rest(spark, campaign, seeds, store, began, on_progress, attempt)
        rows = [row for row in store.rows() if row.seed in seeds]
        took = time.monotonic() - began
        counts = count_failures(rows)
        failures = []
        for count in counts[:MAX_SIGNATURES]:
            on_warning(f"looking into {count.first[0].signature}: {count.runs} runs")
            failures.append(investigate(campaign, count, folder, scenario_file=scenario_file, shrinks=shrinks))
        verdicts = Counter(row.verdict for row in rows)
        summary = CampaignSummary(
            seeds=f"{seeds[0]}:{seeds[-1]}",
            runs=len(rows),
            verdicts={verdict: verdicts[verdict] for verdict in VERDICTS},
            writes=together(row.writes for row in rows),
            events=sum(row.events for row in rows),
            virtual_seconds=round(sum(row.virtual_seconds for row in rows), 3),
            cpu_seconds=round(sum(row.cpu_seconds for row in rows), 1),
            digest=digest(rows),
            slowest_convergence=_slowest_convergence(rows),
            failures=tuple(failures),
            failures_left_out=len(counts) - len(failures),
            settings=compare_variants(campaign, rows) if campaign.is_sweep else (),
            reached=_reached(rows) if campaign.counts_reached else None,
            took=Throughput(ran, round(took, 1), round(ran / took, 1) if took else 0.0),
            folder=str(folder),
        )
        write_whole(folder, "summary.json", msgspec.json.format(msgspec.json.encode(summary)))
        return summary


def _reached(rows: Iterable[VerdictRow]) -> ReachedSummary:
    counts: Counter[str] = Counter()
    for row in rows:
        counts.update({each.name: each.times for each in row.reached})
    return ReachedSummary.of(counts)


def _run_the_rest(
    spark: SparkSession,
    campaign: Campaign,
    seeds: range,
    store: CampaignStore,
    began: float,
    on_progress: OnProgress,
    attempt: Attempt | None,
) -> int:
    """Run what has not been run. Return how many runs that were."""
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


def _slowest_convergence(rows: list[VerdictRow]) -> dict[str, float | int] | None:
    converged = [(row.converged_seconds, -row.seed, row) for row in rows if row.converged_seconds is not None]
    if not converged:
        return None
    seconds, _, row = max(converged, key=lambda found: found[:2])
    bound = {} if row.bound_seconds is None else {"bound_seconds": row.bound_seconds}
    return {"seed": row.seed, "seconds": seconds, **bound}


# Waves

Attempt = Callable[[PlannedRun], VerdictRow]


def run_waves(
    spark: SparkSession, campaign: Campaign, planned_runs: Sequence[PlannedRun], attempt: Attempt | None = None
) -> Iterator[list[VerdictRow]]:
    """Run all planned runs; yield the rows of each wave as it comes back. Raises what Spark raises when executors are lost.

    Leaving the iterator early cancels running waves. `attempt` carries out a planned run on an executor.
    """
    work = partial(
        _work, attempt=attempt or partial(attempt_once, campaign), wall_seconds=WALL_TIMES_CPU * campaign.cpu_seconds
    )
    under_way: dict[Future[list[VerdictRow]], float] = {}
    with ThreadPoolExecutor(WAVES_IN_FLIGHT, thread_name_prefix="wave") as threads:
        # Spark is spoken to by these threads only: one that waits for a future can be interrupted at any time.
        costs = [(planned_run, expected_seconds(campaign, planned_run)) for planned_run in planned_runs]
        queue = CampaignSchedule(costs, threads.submit(parallelism, spark).result())
        try:
            while queue or under_way:
                while queue and len(under_way) < WAVES_IN_FLIGHT:
                    tasks, expected = queue.wave()
                    under_way[threads.submit(_one_wave, spark, tasks, work)] = expected
                done, _ = wait(under_way, return_when=FIRST_COMPLETED)
                for wave in done:
                    expected = under_way.pop(wave)
                    rows = wave.result()
                    queue.learn(expected, sum(row.cpu_seconds for row in rows))
                    if queue.is_new:
                        # By now the executors of a cluster have come up.
                        queue.cores = threads.submit(parallelism, spark).result()
                    yield rows
        finally:
            if under_way:
                threads.shutdown(wait=False, cancel_futures=True)
                spark.interruptAll()


def _one_wave(spark: SparkSession, tasks: Sequence[Task], work: Callable[..., Any]) -> list[VerdictRow]:
    # A range has one row for each of its parts, whatever the session's settings are: one part, one task, no shuffle.
    numbers = spark.range(0, len(tasks), 1, numPartitions=len(tasks))
    table = numbers.mapInArrow(partial(work, tasks=tasks), COLUMNS).toArrow()
    return msgspec.convert(table.to_pylist(), list[VerdictRow])


def _work(
    batches: Iterator[pa.RecordBatch], *, tasks: Sequence[Task], attempt: Attempt, wall_seconds: float
) -> Iterator[pa.RecordBatch]:
    """Carry out a task on an executor: its planned runs one after the other in a child process that may be lost."""
    exit_with_task()
    context = TaskContext.get()
    tries = context.attemptNumber() if context is not None else 0
    schema = arrow_schema(COLUMNS)
    encode, decode = msgspec.msgpack.encode, msgspec.msgpack.Decoder(VerdictRow).decode
    for batch in batches:
        for number in batch.column(0).to_pylist():
            answers = run_in_child(
                tasks[number],
                lambda planned_run: encode(attempt(planned_run)),
                lambda planned_run, loss: encode(lost_row(planned_run, loss)),
                wall_seconds,
            )
            rows = [msgspec.structs.replace(decode(answer), attempt=tries) for answer in answers]
            yield pa.RecordBatch.from_pylist(msgspec.to_builtins(rows), schema=schema)
