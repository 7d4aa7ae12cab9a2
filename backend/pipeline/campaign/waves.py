"""A campaign on Spark: each wave of its schedule is one small Spark job.

A wave comes back whole, so its rows are safe whatever happens next, and the campaign learns from it how long tasks really take.
Some waves run at a time: while the last tasks of one run, free cores begin the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import partial
from typing import Any

import msgspec
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession

from quarterdeck.backend.pipeline.campaign.attempt import attempt as attempt_once
from quarterdeck.backend.pipeline.campaign.attempt import lost_row
from quarterdeck.backend.pipeline.campaign.child_process import WALL_TIMES_CPU, run_in_child
from quarterdeck.backend.pipeline.campaign.plan import (
    WAVES_IN_FLIGHT,
    Campaign,
    CampaignSchedule,
    PlannedRun,
    Task,
    expected_seconds,
)
from quarterdeck.backend.pipeline.campaign.store import COLUMNS
from quarterdeck.backend.pipeline.campaign.verdicts import VerdictRow
from quarterdeck.backend.pipeline.schemas import arrow_schema
from quarterdeck.backend.pipeline.spark.arrow import exit_with_task
from quarterdeck.backend.pipeline.spark.session import parallelism

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
