"""The schedule of a campaign in a simulation of Spark: what share of a hundred cores is in use, with costs that were measured."""

from __future__ import annotations

import heapq
from random import Random

import pytest

from quarterdeck.backend.pipeline.campaign.plan import (
    WAVES_IN_FLIGHT,
    Campaign,
    CampaignSchedule,
    PlannedRun,
    expected_seconds,
)
from quarterdeck.backend.simulation.swarm_testing.drawing import draw_scenario, members_drawn, partitions_drawn

A_TASK = 0.05
"""What a task costs Spark."""
A_JOB = 0.2
"""How long a job takes to begin, and its rows to be kept."""
SLOWNESS = 1.4
"""This machine is slower than the one of the estimates."""


def drawn_costs(seeds: int) -> list[tuple[PlannedRun, float]]:
    """Estimates in the proportions of a swarm: one run in a thousand has 50,021 partitions."""
    draws = Random(7)
    costs = []
    for seed in range(seeds):
        chance, members = draws.random(), 3 + int(18 * draws.random() ** 3)
        seconds = 33.1 if chance < 0.001 else 3.4 if chance < 0.003 else 0.1 + 0.0015 * members**2
        costs.append((PlannedRun(0, seed), seconds))
    return costs


def share_in_use(costs: list[tuple[PlannedRun, float]], cores: int) -> float:
    """Run a campaign as Spark does, jobs in the order of their beginning; the share of the cores' time that runs had."""
    draws = Random(11)
    really = {planned_run: cost * SLOWNESS * draws.lognormvariate(-0.12, 0.5) for planned_run, cost in costs}
    schedule = CampaignSchedule(costs, cores)
    free = [0.0] * cores
    waves: list[tuple[float, float, float]] = []
    now = 0.0
    while schedule or waves:
        while schedule and len(waves) < WAVES_IN_FLIGHT:
            tasks, expected = schedule.wave()
            ended = spent = 0.0
            for task in tasks:
                seconds = sum(really[planned_run] for planned_run in task)
                end = max(heapq.heappop(free), now + A_JOB) + A_TASK + seconds
                heapq.heappush(free, end)
                ended, spent = max(ended, end), spent + seconds
            heapq.heappush(waves, (ended, expected, spent))
        now, expected, spent = heapq.heappop(waves)
        schedule.learn(expected, spent)
    return sum(really.values()) / (cores * max(free))


@pytest.mark.parametrize(("seeds", "cores", "least"), [(100_000, 100, 0.95), (1_000, 2, 0.95), (20_000, 1, 0.95)])
def test_cores_are_in_use_until_the_end(seeds: int, cores: int, least: float) -> None:
    assert share_in_use(drawn_costs(seeds), cores) >= least


def test_every_run_is_planned_once_and_those_that_are_slow_come_first() -> None:
    costs = drawn_costs(5_000)
    schedule = CampaignSchedule(costs, 10)
    planned = []
    while schedule:
        tasks, _ = schedule.wave()
        planned += [planned_run for task in tasks for planned_run in task]
    slow = sum(cost > 3 for _, cost in costs)
    estimate = dict(costs)
    assert sorted(planned) == [planned_run for planned_run, _ in costs]
    assert slow > 5 and [estimate[planned_run] > 3 for planned_run in planned] == [True] * slow + [False] * (
        5_000 - slow
    )


def test_estimates_look_at_members_and_partitions() -> None:
    campaign = Campaign()
    seed = next(seed for seed in range(1, 10_000) if partitions_drawn(seed) > 50_000)
    assert len(draw_scenario(seed).scenario.members) == members_drawn(seed, campaign.sizes) == 3
    assert expected_seconds(campaign, PlannedRun(0, seed)) > 20
