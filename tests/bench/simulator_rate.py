"""How fast the simulator is: events per second of processor time for clusters of several sizes, as one line of JSON.

All members talk to all, under the training preset, with the fingerprint on; forming the cluster is not counted.
Run it as ``python tests/bench/simulator_rate.py``.
"""

from __future__ import annotations

import json
import time

from backend.core.commands import StartMember
from backend.core.properties import Settings
from backend.simulation.world import World

SIZES = (5, 50, 200)
ENOUGH_CPU_SECONDS = 3.0
SLICE_US = 1_000_000
FORMATION_SLICE_US = 10_000


def formed_world(size: int) -> World:
    """A world in which `size` members, started one by one, are one cluster. Raises RuntimeError if they are not."""
    world = World([f"n{number}" for number in range(1, size + 1)], seed=1, settings=Settings.of(preset="training"))
    for label in world.labels:
        start(world, label)
    world.run_until(world.now_us + 2 * SLICE_US)
    if not all(has_joined(world, label) for label in world.labels):
        raise RuntimeError(f"{size} members did not form a cluster")
    return world


def start(world: World, label: str) -> None:
    world.execute(StartMember(label))
    until = world.now_us + 3 * SLICE_US
    while not has_joined(world, label) and world.now_us < until:
        world.run_until(world.now_us + FORMATION_SLICE_US)


def has_joined(world: World, label: str) -> bool:
    machine = world.machine(label)
    return machine is not None and machine.joined


def measure(size: int) -> dict[str, float]:
    world = formed_world(size)
    events, virtual_us, began = world.events, world.now_us, time.process_time()
    while (cpu_seconds := time.process_time() - began) < ENOUGH_CPU_SECONDS:
        world.run_until(world.now_us + SLICE_US)
    world.fingerprint()
    events = world.events - events
    virtual_seconds = (world.now_us - virtual_us) / SLICE_US
    return {
        "members": size,
        "events": events,
        "cpu_seconds": round(cpu_seconds, 3),
        "virtual_seconds": virtual_seconds,
        "events_per_cpu_second": round(events / cpu_seconds),
    }


if __name__ == "__main__":
    print(json.dumps({"bench": "simulator_rate", "sizes": [measure(size) for size in SIZES]}))
