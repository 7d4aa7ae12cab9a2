"""How long a silent member stays unnoticed, as one line of JSON.

In clean runs a member is frozen at a random moment; measured is the time until the first other member suspects or removes it.
With the interval I, the timeout T, a check at each interval and a delay of at most d it lies between T - I and T + I + d. Then
the same for a killed process, whose connections break. Run it as ``python tests/bench/detection_latency.py``.
"""

from __future__ import annotations

import json
from random import Random
from statistics import median

from quarterdeck.backend.core.commands import Command, KillMember, PauseMember, StartMember
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.membership.events import MemberRemoved, SuspicionRaised
from quarterdeck.backend.core.properties import SECOND_US, Settings
from quarterdeck.backend.simulation.virtual_time.world import PLAIN_LATENCY, World

RUNS = 1_000
SETTINGS = Settings.of({"hazelcast.max.no.heartbeat.seconds": 5}, preset="training")
EARLIEST_US = SETTINGS.max_no_heartbeat_us - SETTINGS.heartbeat_interval_us
LATEST_US = SETTINGS.max_no_heartbeat_us + SETTINGS.heartbeat_interval_us + PLAIN_LATENCY.most_us


def latency_us(seed: int, members: int, *, killed: bool) -> int:
    """From the end of a random member to the first that notices."""
    rng = Random(seed)
    noticed: list[Record] = []

    def watch(record: Record) -> None:
        if isinstance(record.event, SuspicionRaised | MemberRemoved):
            noticed.append(record)

    world = World([f"n{number}" for number in range(members)], seed=seed, settings=SETTINGS, on_record=watch)
    for label in world.labels:
        world.execute(StartMember(label))
        world.run_until(world.now_us + 10_000)
    world.run_until(5 * SECOND_US + rng.randrange(SECOND_US))
    target, ended_us = rng.choice(world.labels), world.now_us
    command: Command = KillMember(target) if killed else PauseMember(target)
    world.execute(command)
    while not noticed:
        world.run_until(world.now_us + SECOND_US)
    return noticed[0].at - ended_us


def summary(latencies_us: list[int]) -> dict[str, float]:
    return {
        "runs": len(latencies_us),
        "least_seconds": min(latencies_us) / SECOND_US,
        "median_seconds": round(median(latencies_us) / SECOND_US, 3),
        "greatest_seconds": max(latencies_us) / SECOND_US,
    }


if __name__ == "__main__":
    silent = [latency_us(seed, 3 + seed % 6, killed=False) for seed in range(RUNS)]
    broken = [latency_us(seed, 3 + seed % 6, killed=True) for seed in range(RUNS)]
    within = sum(EARLIEST_US <= silence <= LATEST_US for silence in silent) / len(silent)
    print(
        json.dumps(
            {
                "bench": "detection_latency",
                "bounds_seconds": [EARLIEST_US / SECOND_US, LATEST_US / SECOND_US],
                "within_bounds": within,
                "silent": summary(silent),
                "killed": summary(broken),
            }
        )
    )
