"""The schedule of a campaign: planned runs become tasks of a few seconds, and tasks become waves. Pure.

Runs that are a task alone come first: one that begins when all others are done leaves every other core idle.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from quarterdeck.backend.pipeline.campaign.plan import PlannedRun

TASK_SECONDS = 2.0
"""A task costs Spark 20 to 50 ms whatever it does: this keeps that below 3 %."""
FIRST_TASK_SECONDS = 0.5
"""Used until the speed of this machine is known."""
SHORTEST_TASK_SECONDS = 0.2
TASKS_PER_CORE = 2
WAVES_IN_FLIGHT = 4
"""So many together keep cores busy while some wait for their last task, which may take much longer than was estimated."""

Task = tuple[PlannedRun, ...]


class CampaignSchedule:
    """Planned runs that wait, each with the seconds that it is expected to cost, and how many of them make a task."""

    def __init__(self, costs: Iterable[tuple[PlannedRun, float]], cores: int) -> None:
        # Others keep their order: it is independent of cost, so that what has been run shows how much is left.
        self._waiting = deque(sorted(costs, key=lambda one: -one[1] if one[1] >= TASK_SECONDS else 0.0))
        self._left = sum(cost for _, cost in self._waiting)
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

    def wave(self) -> tuple[list[Task], float]:
        """Return the next tasks, and what they are expected to cost in the plan's seconds."""
        count = max(1, self.cores * TASKS_PER_CORE)
        slowness = self._spent / self._expected if self._spent and self._expected else 1.0
        aim = TASK_SECONDS if self._spent else FIRST_TASK_SECONDS
        aim = min(aim, max(SHORTEST_TASK_SECONDS, self._left * slowness / count))
        tasks: list[Task] = []
        before = self._left
        while self._waiting and len(tasks) < count:
            tasks.append(self._task(aim / slowness))
        return tasks, before - self._left

    def _task(self, plan_seconds: float) -> Task:
        task: list[PlannedRun] = []
        cost = 0.0
        while self._waiting and cost < plan_seconds:
            planned_run, seconds = self._waiting.popleft()
            task.append(planned_run)
            cost += seconds
        self._left -= cost
        return tuple(task)
