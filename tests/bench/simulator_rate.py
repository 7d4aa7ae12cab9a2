"""How fast the simulator is, as one line of JSON.

Events per second of processor time for clusters of several sizes, all to all, with the fingerprint and the online invariants;
then simulated seconds per second with calm heartbeats left out; then a cluster of 1,000 members that forms, loses its master and
re-forms. Run it as ``python tests/bench/simulator_rate.py``.
"""

from __future__ import annotations

import json
import time

from quarterdeck.backend.core.commands import KillMember, StartMember
from quarterdeck.backend.core.properties import Settings
from quarterdeck.backend.invariants import InvariantChecker
from quarterdeck.backend.simulation.virtual_time.world import World

SIZES = (5, 50, 200)
CALM_SIZES = (5, 50, 200)
GREAT_SIZE = 1_000
SETTINGS = Settings.of({"hazelcast.heartbeat.interval.seconds": 1, "hazelcast.max.no.heartbeat.seconds": 5})
"""Heartbeats every second and a timeout of five; everything else as documented."""
ENOUGH_CPU_SECONDS = 3.0
SLICE_US = 1_000_000
FORMATION_SLICE_US = 10_000


def formed_world(size: int, *, elide: bool = False) -> World:
    """A world in which `size` members, started one by one, are one cluster. Raises RuntimeError if they are not."""
    invariant_checker = InvariantChecker()
    world = World(
        [f"n{number}" for number in range(1, size + 1)],
        seed=1,
        settings=SETTINGS,
        on_record=invariant_checker.observe,
        elide_heartbeats=elide,
    )
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


def measure_calm(size: int) -> dict[str, float]:
    """Simulated seconds per second of processor time, calm heartbeats left out."""
    world = formed_world(size, elide=True)
    world.run_until(world.now_us + 5 * SLICE_US)
    virtual_us, began = world.now_us, time.process_time()
    while (cpu_seconds := time.process_time() - began) < ENOUGH_CPU_SECONDS:
        world.run_until(world.now_us + 10 * SLICE_US)
    virtual_seconds = (world.now_us - virtual_us) / SLICE_US
    return {"members": size, "virtual_seconds_per_cpu_second": round(virtual_seconds / cpu_seconds)}


def measure_great() -> dict[str, float]:
    """All members of a great cluster ask to join at once; later its master is killed. Production timing."""
    labels = [f"n{number}" for number in range(1, GREAT_SIZE + 1)]
    world = World(labels, seed=1, settings=Settings.of(preset="production"), elide_heartbeats=True)
    began = time.process_time()
    for label in labels:
        world.execute(StartMember(label))
        world.run_until(world.now_us + 100)
    formed_seconds = run_until_one(world, labels)
    formed_cpu = time.process_time() - began
    world.run_until(world.now_us + 30 * SLICE_US)
    killed_us = world.now_us
    master = next(label for label in labels if label == first_of_list(world, labels[-1]))
    world.execute(KillMember(master))
    survivors = [label for label in labels if label != master]
    reformed_seconds = run_until_one(world, survivors) - killed_us / SLICE_US
    return {
        "members": GREAT_SIZE,
        "formed_after_virtual_seconds": round(formed_seconds, 3),
        "reformed_after_virtual_seconds": round(reformed_seconds, 3),
        "cpu_seconds_to_form": round(formed_cpu, 1),
        "cpu_seconds": round(time.process_time() - began, 1),
        "events": world.events,
    }


def run_until_one(world: World, labels: list[str]) -> float:
    """Run until all of `labels` hold one list of just these; the virtual seconds then. Raises RuntimeError in the end."""
    until = world.now_us + 400 * SLICE_US
    while world.now_us < until:
        world.run_until(world.now_us + FORMATION_SLICE_US)
        views = {view_of(world, label) for label in labels}
        if len(views) == 1 and None not in views and len(views.pop() or ()) == len(labels):
            return world.now_us / SLICE_US
    raise RuntimeError(f"{len(labels)} members did not become one cluster")


def view_of(world: World, label: str) -> tuple[str, ...] | None:
    machine = world.machine(label)
    return machine.inspect().view if machine is not None else None


def first_of_list(world: World, label: str) -> str:
    view = view_of(world, label) or ()
    return next(node.label for node in world.nodes.values() if view and node.address == view[0])


if __name__ == "__main__":
    print(
        json.dumps(
            {
                "bench": "simulator_rate",
                "sizes": [measure(size) for size in SIZES],
                "calm": [measure_calm(size) for size in CALM_SIZES],
                "great": measure_great(),
            }
        )
    )
