"""The plan of a campaign: seeds of the swarm or of one scenario, under one or several settings, in tasks of a few seconds. Pure.

Runs that are a task alone come first: one that begins when all others are done leaves every other core idle.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from functools import lru_cache
from hashlib import blake2b, sha256
from itertools import product
from typing import Literal, get_args

from msgspec import Struct

from quarterdeck.backend.core.properties import PropertyValue, Settings
from quarterdeck.backend.invariants.data.linearizability import JudgedWrites
from quarterdeck.backend.scenarios.format.reading import read_scenario
from quarterdeck.backend.scenarios.format.scenario import Scenario
from quarterdeck.backend.simulation.swarm_testing.drawing import members_drawn, partitions_drawn
from quarterdeck.backend.simulation.swarm_testing.guided import Origin
from quarterdeck.backend.simulation.swarm_testing.parallel_trials import WALK, walk

RunVerdict = Literal["ok", "violation", "no-convergence", "expectation", "crash", "timeout", "died", "unknown"]
VERDICTS: tuple[RunVerdict, ...] = get_args(RunVerdict)
FAILURES: tuple[RunVerdict, ...] = ("violation", "no-convergence", "expectation", "crash", "timeout", "died")


class TimesReached(Struct, frozen=True):
    """How often a run reached a rule or a branch of the core (`reached_rules`)."""

    name: str
    times: int


class VerdictRow(Struct, frozen=True):
    """How one run ended. The fields are the columns of the Parquet files under `verdicts` of a campaign's folder."""

    variant: int
    """Place of its settings among those that are compared, from 0; 0 without a sweep."""
    seed: int
    members: int
    verdict: RunVerdict
    signature: str = ""
    """Equal for failures that seem to have one cause; empty when nothing failed."""
    invariant: str = ""
    error: str = ""
    virtual_seconds: float = 0.0
    events: int = 0
    """Messages delivered and timers fired; without heartbeats that changed nothing, unless settings are compared."""
    messages: int | None = None
    """Sent by all members, whether they arrived or not, all heartbeats included; None in rows of versions that did
    not count them.
    """
    converged_seconds: float | None = None
    """How long the members took to become one cluster after the last fault."""
    bound_seconds: float | None = None
    detections: tuple[float, ...] = ()
    """For each killed or paused member: virtual seconds until another one suspected or removed it."""
    writes: JudgedWrites = JudgedWrites(0, 0, 0)
    """How much of what was written was judged."""
    reached: tuple[TimesReached, ...] = ()
    """Empty when that is not counted."""
    fingerprint: str = ""
    cpu_seconds: float = 0.0
    attempt: int = 0
    """How often the task was tried before, because a worker or an executor was lost."""


def digest(rows: Iterable[VerdictRow]) -> str:
    """Return a digest that is equal for campaigns with equal runs, whatever the machine, the order and the speed."""
    lines = sorted(f"{row.variant} {row.seed} {row.verdict} {row.signature} {row.fingerprint}\n" for row in rows)
    return sha256("".join(lines).encode()).hexdigest()[:32]


Variant = dict[str, PropertyValue]
"""Settings that replace those of the scenario."""

CPU_SECONDS = 240.0
"""Default limit of what one seed may cost. Most take a fraction of a second, the few with 50,021 partitions a minute."""


class Campaign(Struct, frozen=True):
    """What is done with every seed. `scenario` is the text of a scenario file; empty for the swarm, which draws its own.

    `sizes` are the swarm's. With several `variants` each seed is run under each of them, and measured. If it is `guided`, some
    variations of what a seed draws are tried before, and the last of them, or the first that fails, is the run of the seed.
    With `counts_reached` each row says how often its run reached each rule and branch.
    """

    scenario: str = ""
    sizes: tuple[int, int] = (3, 20)
    variants: tuple[Variant, ...] = ({},)
    cpu_seconds: float = CPU_SECONDS
    guided: bool = False
    counts_reached: bool = False

    @property
    def is_sweep(self) -> bool:
        """Whether several settings are compared."""
        return len(self.variants) > 1


class PlannedRun(Struct, frozen=True, order=True):
    """One run: a seed under one variant, by the variant's place in the campaign."""

    variant: int
    seed: int


def variants_of(sweep: Mapping[str, Iterable[PropertyValue]]) -> tuple[Variant, ...]:
    """Return all combinations of the values, the last setting changing fastest. Raises `BadProperty` for impossible settings."""
    variants = tuple(dict(zip(sweep, values, strict=True)) for values in product(*sweep.values()))
    for variant in variants:
        Settings.of(variant, preset="training")
    return variants


def scenario_of(campaign: Campaign, planned_run: PlannedRun) -> Scenario:
    """Return the scenario of a run. Raises `BadScenario`."""
    if campaign.scenario:
        scenario = _read(campaign.scenario)
    else:
        scenario = origin_of(campaign, planned_run).scenario(campaign.sizes)
    variant = campaign.variants[planned_run.variant]
    return scenario.model_copy(update={"settings": {**scenario.settings, **variant}}) if variant else scenario


def origin_of(campaign: Campaign, planned_run: PlannedRun) -> Origin:
    """Return where the scenario of a swarm run comes from."""
    return walk(planned_run.seed, campaign.sizes) if campaign.guided else Origin(planned_run.seed)


@lru_cache(maxsize=1)
def _read(text: str) -> Scenario:
    return read_scenario(text, "the scenario")


def in_order(campaign: Campaign, seeds: range) -> list[PlannedRun]:
    """Return all planned runs in an order that is independent of their cost; the schedule moves only the slow ones."""
    planned_runs = [PlannedRun(variant, seed) for variant in range(len(campaign.variants)) for seed in seeds]
    return sorted(planned_runs, key=lambda one: blake2b(b"%d/%d" % (one.variant, one.seed), digest_size=8).digest())


# Costs, measured on one core of a small server; only their proportions matter once a wave is done.

SCENARIO_SECONDS = 0.1
SWARM_SECONDS = 0.1
PAIR_SECONDS = 0.0015
PARTITION_SECONDS = 0.00066
ALL_HEARTBEATS = 4
"""How many times as much a run costs that leaves out no heartbeats."""


def expected_seconds(campaign: Campaign, planned_run: PlannedRun) -> float:
    """Estimate what a planned run will cost, without running it."""
    if campaign.scenario:
        return SCENARIO_SECONDS
    times = (ALL_HEARTBEATS if campaign.is_sweep else 1) * (WALK + 1 if campaign.guided else 1)
    members, partitions = members_drawn(planned_run.seed, campaign.sizes), partitions_drawn(planned_run.seed)
    return times * (SWARM_SECONDS + PAIR_SECONDS * members**2 + PARTITION_SECONDS * partitions)


# The schedule

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
