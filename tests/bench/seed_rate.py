"""How many seeds a campaign tries in a second, as one line of JSON.

Each seed is five members for 120 virtual seconds with a few random faults, with the fingerprint and the online invariants, calm
heartbeats left out; spread over two processes. Run it as ``python tests/bench/seed_rate.py``.
"""

from __future__ import annotations

import json
import time
from concurrent.futures import ProcessPoolExecutor
from random import Random

from quarterdeck.backend.core.commands import (
    Command,
    CommandRefused,
    CutLink,
    Heal,
    KillMember,
    Partition,
    StartMember,
)
from quarterdeck.backend.core.properties import SECOND_US, Settings
from quarterdeck.backend.invariants import InvariantChecker
from quarterdeck.backend.simulation.virtual_time.world import World

SEEDS = 10_000
PROCESSES = 2
LABELS = ("n1", "n2", "n3", "n4", "n5")
FAULTS = 3
RUN_US = 120 * SECOND_US
SETTINGS = Settings.of(preset="training")


def try_seed(seed: int) -> tuple[int, int]:
    """Run one seed; its events and the violations that were found."""
    rng = Random(seed)
    invariant_checker = InvariantChecker()
    world = World(LABELS, seed=seed, settings=SETTINGS, on_record=invariant_checker.observe, elide_heartbeats=True)
    for label in LABELS:
        world.execute(StartMember(label))
        world.run_until(world.now_us + 10_000)
    for at_us in sorted(rng.randrange(5 * SECOND_US, 60 * SECOND_US) for _ in range(FAULTS)):
        world.run_until(at_us)
        try:
            world.execute(random_fault(rng))
        except CommandRefused:
            continue
    world.execute(Heal())
    world.run_until(RUN_US)
    world.fingerprint()
    return world.events, len(invariant_checker.violations)


def random_fault(rng: Random) -> Command:
    one, other = rng.sample(LABELS, 2)
    split = rng.randrange(1, len(LABELS))
    faults: list[Command] = [
        KillMember(one),
        StartMember(one),
        CutLink((one,), (other,), one_way=rng.random() < 0.5),
        Partition((LABELS[:split], LABELS[split:])),
        Heal(),
    ]
    return rng.choice(faults)


if __name__ == "__main__":
    began = time.perf_counter()
    with ProcessPoolExecutor(PROCESSES) as processes:
        results = list(processes.map(try_seed, range(SEEDS), chunksize=250))
    seconds = time.perf_counter() - began
    print(
        json.dumps(
            {
                "bench": "seed_rate",
                "seeds": SEEDS,
                "processes": PROCESSES,
                "seconds": round(seconds, 1),
                "seeds_per_second": round(SEEDS / seconds),
                "events": sum(events for events, _ in results),
                "violations": sum(violations for _, violations in results),
            }
        )
    )
