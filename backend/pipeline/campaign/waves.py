"""A campaign on Spark: planned runs become tasks of a few seconds, tasks become waves, and each wave is one small Spark job.

A wave comes back whole, so its rows are safe whatever happens next, and the campaign learns from it how long tasks really take.
Two waves run at a time: while the last tasks of one run, free cores begin the next.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import partial
from typing import Any

import msgspec
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from quarterdeck.backend.pipeline.campaign.attempt import attempt as attempt_once
from quarterdeck.backend.pipeline.campaign.attempt import lost_row
from quarterdeck.backend.pipeline.campaign.child_process import WALL_TIMES_CPU, run_in_child
from quarterdeck.backend.pipeline.campaign.plan import Campaign, PlannedRun, expected_seconds
from quarterdeck.backend.pipeline.campaign.verdicts import VerdictRow
from quarterdeck.backend.pipeline.schemas import struct_type
from quarterdeck.backend.pipeline.spark.arrow import exit_with_task
from quarterdeck.backend.pipeline.spark.session import parallelism

Attempt = Callable[[PlannedRun], VerdictRow]

ROWS = struct_type(msgspec.inspect.type_info(VerdictRow))  # type: ignore[arg-type]
"""The columns of `VerdictRow`."""

TASK_SECONDS = 2.0
"""A task costs Spark 20 to 50 ms whatever it does: this keeps that below 3 %."""
FIRST_TASK_SECONDS = 0.5
"""Used until the speed of this machine is known."""
SHORTEST_TASK_SECONDS = 0.2
TASKS_PER_CORE = 4
WAVES_IN_FLIGHT = 2


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
        queue = _Queue(campaign, planned_runs, threads.submit(parallelism, spark).result())
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


class _Queue:
    """Planned runs that wait, and how many of them make a task."""

    def __init__(self, campaign: Campaign, planned_runs: Sequence[PlannedRun], cores: int) -> None:
        self._campaign = campaign
        self._waiting = deque(planned_runs)
        self._expected = 0.0
        self._spent = 0.0
        self._learnt = 0
        self.cores = cores

    def __bool__(self) -> bool:
        return bool(self._waiting)

    @property
    def is_new(self) -> bool:
        """Whether only the first waves have come back."""
        return self._learnt <= WAVES_IN_FLIGHT

    def learn(self, expected: float, spent: float) -> None:
        """Note that a wave of which `expected` seconds were expected took `spent`."""
        self._learnt += 1
        self._expected += expected
        self._spent += spent

    def wave(self) -> tuple[list[tuple[PlannedRun, ...]], float]:
        """Return the next tasks, and what they are expected to cost in the plan's seconds."""
        aim = TASK_SECONDS if self._spent else FIRST_TASK_SECONDS
        tasks: list[tuple[PlannedRun, ...]] = []
        whole = 0.0
        count = max(1, self.cores * TASKS_PER_CORE)
        aim = min(aim, max(SHORTEST_TASK_SECONDS, self._left_seconds(aim * count) / count))
        while self._waiting and len(tasks) < count:
            task, cost = self._task(aim / self._slowness)
            tasks.append(task)
            whole += cost
        return tasks, whole

    @property
    def _slowness(self) -> float:
        """Seconds here for each second of the plan."""
        return self._spent / self._expected if self._spent and self._expected else 1.0

    def _left_seconds(self, most: float) -> float:
        """Estimate the cost of all waiting runs, but no more than `most`."""
        seconds = 0.0
        for planned_run in self._waiting:
            seconds += expected_seconds(self._campaign, planned_run) * self._slowness
            if seconds >= most:
                break
        return seconds

    def _task(self, plan_seconds: float) -> tuple[tuple[PlannedRun, ...], float]:
        task: list[PlannedRun] = []
        cost = 0.0
        while self._waiting and cost < plan_seconds:
            planned_run = self._waiting.popleft()
            task.append(planned_run)
            cost += expected_seconds(self._campaign, planned_run)
        return tuple(task), cost


def _one_wave(
    spark: SparkSession, tasks: Sequence[tuple[PlannedRun, ...]], work: Callable[..., Any]
) -> list[VerdictRow]:
    # A range has one row for each of its parts, whatever the session's settings are: one part, one task, no shuffle.
    numbers = spark.range(0, len(tasks), 1, numPartitions=len(tasks))
    table = numbers.mapInArrow(partial(work, tasks=tasks), ROWS).toArrow()
    return msgspec.convert(table.to_pylist(), list[VerdictRow])


def _work(
    batches: Iterator[pa.RecordBatch], *, tasks: Sequence[tuple[PlannedRun, ...]], attempt: Attempt, wall_seconds: float
) -> Iterator[pa.RecordBatch]:
    """Carry out a task on an executor: its planned runs one after the other in a child process that may be lost."""
    exit_with_task()
    context = TaskContext.get()
    tries = context.attemptNumber() if context is not None else 0
    schema = to_arrow_schema(ROWS)
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
