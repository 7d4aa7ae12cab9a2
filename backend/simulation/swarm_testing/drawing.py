"""Swarm runs: from one number a whole scenario, with its members, its settings, data in use and a mix of faults of its own.

A run is a row of parts. Some are times in which faults of several kinds overlap (`fault_timeline`); some are rounds in which
members come, go and die in the middle of migrations, and no more of them than there are backups (`migration_rounds`). Each part
begins, if that can be, when all data is safe. Runs that all have every fault find less than runs in which some kinds are missing,
so each draws which kinds it has. What is drawn is a scenario like any other: it can be printed, read back, simulated under its
seed, and played live.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any

from quarterdeck.backend.core.properties import Settings
from quarterdeck.backend.invariants.convergence import convergence_bound_us, table_bound_us
from quarterdeck.backend.scenarios.format.scenario import Scenario
from quarterdeck.backend.scenarios.format.values import duration_text
from quarterdeck.backend.scenarios.format.writing import scenario_of_tree
from quarterdeck.backend.simulation.swarm_testing.fault_kinds import FaultContext
from quarterdeck.backend.simulation.swarm_testing.fault_timeline import (
    Standing,
    StepTree,
    drawn_length_us,
    fault_steps,
)
from quarterdeck.backend.simulation.swarm_testing.migration_rounds import SwarmRounds, wait_until_safe
from quarterdeck.backend.simulation.swarm_testing.settings_drawing import (
    MANY_PARTITIONS,
    drawn_join_lists,
    drawn_latency,
    drawn_lite,
    drawn_properties,
    drawn_zones,
)

FEWEST, MOST = 3, 20
"""Members of a run, unless told otherwise."""
MOST_WITH_MANY_PARTITIONS = 3

LATENCY_FAULT = "latency"
"""The name of the one fault that no action brings about: messages take their time in another way."""

PARTS = (
    *[("rounds", "faults")] * 3,
    *[("rounds",)] * 2,
    *[("faults", "rounds")] * 2,
    *[("faults",), ("faults", "faults")],
)
"""What runs consist of. Mostly the rounds come first: once members were divided less can be said of migrations."""
LATE_PROBABILITY = 0.25


@dataclass(frozen=True)
class DrawnScenario:
    """A scenario drawn from a seed, and the names of the kinds of faults that it has."""

    seed: int
    scenario: Scenario
    faults: tuple[str, ...]


def draw_scenario(seed: int, sizes: tuple[int, int] = (FEWEST, MOST)) -> DrawnScenario:
    """Draw the run of `seed` with as many members as lie between the two `sizes`. Equal arguments give equal drawings."""
    properties = drawn_properties(_stream(seed, "settings"))
    many = int(properties["hazelcast.partition.count"]) >= MANY_PARTITIONS
    size = members_drawn(seed, sizes)
    size = min(size, max(sizes[0], MOST_WITH_MANY_PARTITIONS)) if many else size
    labels = tuple(f"n{number}" for number in range(1, size + 1))
    zones = drawn_zones(_stream(seed, "zones"), labels, properties)
    settings = Settings.of(properties, preset="training")
    steps = _Steps(seed, labels, settings)
    tree: dict[str, Any] = {
        "title": f"Swarm run {seed}",
        "members": list(labels),
        "lite": drawn_lite(_stream(seed, "lite"), labels),
        "zones": zones,
        "settings": properties,
        "steps": list(steps.few() if many else steps.all()),
        "late": sorted(steps.late, key=labels.index),
        "clocks": {label: steps.clocks[label] for label in labels if label in steps.clocks},
        "latency": drawn_latency(_stream(seed, LATENCY_FAULT), settings),
        "join-lists": drawn_join_lists(_stream(seed, "join lists"), labels),
    }
    of_clocks = [
        name
        for name, part in (("clock drift", "rate"), ("clock jump", "jumps"))
        if any(part in clock for clock in steps.clocks.values())
    ]
    faults = (*dict.fromkeys(steps.faults), *of_clocks, *[LATENCY_FAULT] * bool(tree["latency"]))
    tree["summary"] = f"Faults: {', '.join(faults) or 'none'}."
    return DrawnScenario(seed, scenario_of_tree({name: part for name, part in tree.items() if part}), faults)


def members_drawn(seed: int, sizes: tuple[int, int]) -> int:
    """How many members the run of `seed` has at most. Small clusters are more likely: quick to run, and most goes wrong there."""
    fewest, most = sizes
    return fewest + int((most - fewest + 1) * _stream(seed, "size").random() ** 3)


def _stream(seed: int, purpose: str) -> Random:
    """Draws for one purpose only, so that a change of one part of a run leaves its other parts as they are."""
    return Random(f"{seed}/swarm/{purpose}")


class _Steps:
    """The steps of one run, and what they need the scenario to have besides."""

    def __init__(self, seed: int, labels: tuple[str, ...], settings: Settings) -> None:
        self._seed = seed
        self._labels = labels
        self._settings = settings
        self._draws = _stream(seed, "parts")
        self.late: set[str] = set()
        self.clocks: dict[str, dict[str, Any]] = {}
        self.faults: list[str] = []

    def all(self) -> Iterator[StepTree]:
        """Parts of a run one after another, with a workload that goes on all the time, and the end."""
        draws = self._draws
        parts = draws.choice(PARTS)
        if parts[0] == "rounds":
            self.late.update(label for label in self._labels[2:] if draws.random() < LATE_PROBABILITY)
        standing = Standing(self._labels, set(self.late))
        rounds = self._rounds(standing)
        # Mostly data is in use from the beginning; or it is used for the first time while faults are on.
        yield from rounds.beginning()
        for number, part in enumerate(parts):
            if number:
                yield wait_until_safe()
            yield from rounds.several() if part == "rounds" else self._faults(number, standing)
        yield from self._ending(standing)

    def few(self) -> Iterator[StepTree]:
        """One member comes late, and nothing else happens: what this is about is how many partitions there are."""
        self.late.add(self._labels[-1])
        standing = Standing(self._labels, set(self.late))
        rounds = self._rounds(standing)
        yield from rounds.beginning()
        yield wait_until_safe()
        yield {"do": {"start": [self._labels[-1]]}}
        standing.down.clear()
        yield from self._ending(standing)

    def _rounds(self, standing: Standing) -> SwarmRounds:
        return SwarmRounds(_stream(self._seed, "rounds"), standing, self._settings.backups, self.faults)

    def _faults(self, number: int, standing: Standing) -> Iterator[StepTree]:
        length_us = drawn_length_us(_stream(self._seed, f"length {number}"), self._settings.max_no_heartbeat_us)
        context = FaultContext(Random(), self._labels, self._settings, length_us)
        context.clocks = self.clocks
        if number == 0:
            context.late = self.late
        yield from fault_steps(context, standing, partial(self._purpose, number), self.faults)

    def _purpose(self, number: int, purpose: str) -> Random:
        return _stream(self._seed, f"{purpose} {number}")

    def _ending(self, standing: Standing) -> Iterator[StepTree]:
        """All is healed, at least two members run, and they must become one cluster in time, with all data safe."""
        yield {"do": {"heal": {}}}
        down = [label for label in self._labels if label in standing.down]
        started = down if self._draws.random() < 0.5 else down[: max(0, 2 - len(standing.up))]
        if started:
            yield {"do": {"start": started}}
        bound_us = convergence_bound_us(self._settings, len(self._labels)) + table_bound_us(self._settings)
        yield {"expect": {"within": duration_text(bound_us), "one-cluster": True}}
