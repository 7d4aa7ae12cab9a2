"""The truth about lost data in a simulated run: which acknowledged keys no store of a running member has."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from quarterdeck.backend.core.data.events import CallFinished, CallStarted, EntriesEvicted
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.scenarios.run_state import RunState
from quarterdeck.backend.simulation.swarm_testing.drawing import draw_scenario
from quarterdeck.backend.simulation.swarm_testing.trial import TrialDriver, run_trial
from quarterdeck.backend.simulation.virtual_time.world import World

GRID_US = 250_000
Key = tuple[str, str]


class Acknowledged(RunState):
    """Follows a run, and keeps the keys whose latest write was an acknowledged put, with their partitions."""

    def __init__(self) -> None:
        super().__init__()
        self.partitions: dict[Key, int] = {}
        self._removing: set[Key] = set()

    def observe(self, record: Record) -> None:
        super().observe(record)
        match record.event:
            case CallStarted(operation="remove", map=name, key=key):
                self._removing.add((name, key))
            case CallFinished(operation="put", map=name, key=key, problem="") as call:
                self.partitions[name, key] = call.partition
            case CallFinished(operation="remove", map=name, key=key):
                self.partitions.pop((name, key), None)
            case EntriesEvicted(map=name, keys=keys):
                for key in keys:
                    self.partitions.pop((name, key), None)

    def lost(self, world: World) -> set[int]:
        """Return the partitions of keys that no running member has."""
        held = held_keys(world) | self._removing
        return {partition for key, partition in self.partitions.items() if key not in held}


def held_keys(world: World) -> set[Key]:
    """Return the keys in all stores, and those that members bring along from another cluster."""
    held: set[Key] = set()
    for machine in filter(None, map(world.machine, world.labels)):
        data = machine.inspect().data
        for store in data.stores.values():
            held.update((name, key) for name, entries in store.maps.items() for key in entries)
        if (brought := data.merge_entries) is not None:
            held.update((name, key) for name, entries in brought.brought for key in entries)
            held.update((batch.map, key) for batch in brought.in_flight.values() for key, _ in batch.entries)
    return held


def watch_seed(seed: int, look: Callable[[Acknowledged, World], None], patch: pytest.MonkeyPatch) -> None:
    """Run a seed of the swarm, and `look` at it each quarter of a second."""
    state, advance = Acknowledged(), TrialDriver.advance

    def in_steps(driver: TrialDriver, by_us: int) -> None:
        until_us = driver.world.now_us + by_us
        while driver.world.now_us < until_us:
            step_us = GRID_US - driver.world.now_us % GRID_US
            advance(driver, min(step_us, until_us - driver.world.now_us))
            if driver.world.now_us % GRID_US == 0:
                look(state, driver.world)

    patch.setattr(TrialDriver, "advance", in_steps)
    run_trial(draw_scenario(seed).scenario, seed, run_state=state)
