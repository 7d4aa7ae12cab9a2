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
from random import Random
from typing import Any

from quarterdeck.backend.core.properties import MILLISECOND_US, PropertyValue, Settings
from quarterdeck.backend.invariants.convergence import convergence_bound_us, table_bound_us
from quarterdeck.backend.scenarios.format.scenario import Scenario
from quarterdeck.backend.scenarios.format.values import duration_text
from quarterdeck.backend.scenarios.format.writing import scenario_of_tree
from quarterdeck.backend.simulation.swarm_testing.fault_kinds import FaultContext
from quarterdeck.backend.simulation.swarm_testing.fault_timeline import Standing, StepTree, drawn_length_us, fault_steps
from quarterdeck.backend.simulation.swarm_testing.migration_rounds import SwarmRounds, wait_until_safe

FEWEST, MOST = 3, 20
"""Members of a run, unless said otherwise."""
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
    many = partitions_drawn(seed) >= MANY_PARTITIONS
    size = members_drawn(seed, sizes)
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
    parts = set().union(*steps.clocks.values())
    of_clocks = [name for name, part in (("clock drift", "rate"), ("clock jump", "jumps")) if part in parts]
    faults = (*dict.fromkeys(steps.faults), *of_clocks, *[LATENCY_FAULT] * bool(tree["latency"]))
    tree["summary"] = f"Faults: {', '.join(faults) or 'none'}."
    return DrawnScenario(seed, scenario_of_tree({name: part for name, part in tree.items() if part}), faults)


def members_drawn(seed: int, sizes: tuple[int, int]) -> int:
    """How many members the run of `seed` has at most. Small clusters are more likely: quick to run, and most goes wrong there."""
    fewest, most = sizes
    size = fewest + int((most - fewest + 1) * _stream(seed, "size").random() ** 3)
    return min(size, max(fewest, MOST_WITH_MANY_PARTITIONS)) if partitions_drawn(seed) >= MANY_PARTITIONS else size


def partitions_drawn(seed: int) -> int:
    """How many partitions the cluster of the run of `seed` has."""
    return int(drawn_properties(_stream(seed, "settings"))["hazelcast.partition.count"])


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
            yield from rounds.several() if part == "rounds" else self._faults(number, standing, rounds)
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

    def _faults(self, number: int, standing: Standing, rounds: SwarmRounds) -> Iterator[StepTree]:
        length_us = drawn_length_us(_stream(self._seed, f"length {number}"), self._settings.max_no_heartbeat_us)
        context = FaultContext(Random(), self._labels, self._settings, length_us)
        context.clocks = self.clocks
        if number == 0:
            context.late = self.late

        def stream(purpose: str) -> Random:
            return _stream(self._seed, f"{purpose} {number}")

        yield from fault_steps(context, standing, stream, self.faults, rounds.look)

    def _ending(self, standing: Standing) -> Iterator[StepTree]:
        """All is healed, at least two members run, and they must become one cluster in time, with all data safe."""
        yield {"do": {"heal": {}}}
        down = [label for label in self._labels if label in standing.down]
        started = down if self._draws.random() < 0.5 else down[: max(0, 2 - len(standing.up))]
        if started:
            yield {"do": {"start": started}}
        bound_us = convergence_bound_us(self._settings, len(self._labels)) + table_bound_us(self._settings)
        yield {"expect": {"within": duration_text(bound_us), "one-cluster": True}}


CHOICE_PROBABILITY = 0.25
"""How probable it is that a property is not as in the training preset."""

INTERVALS_SECONDS = (0.5, 1, 2)
TIMEOUT_INTERVALS = (3, 4, 5, 8)
PROPERTY_CHOICES: dict[str, tuple[PropertyValue, ...]] = {
    "hazelcast.heartbeat.failuredetector.type": ("phi-accrual",),
    "hazelcast.member.list.publish.interval.seconds": (2, 30),
    "hazelcast.mastership.claim.timeout.seconds": (3, 20),
    "hazelcast.master.confirmation.interval.seconds": (1, 4),
    "hazelcast.max.join.seconds": (20, 300),
    "hazelcast.max.join.merge.target.seconds": (2, 10),
    "hazelcast.stale.join.prevention.duration.seconds": (0, 10),
    "hazelcast.merge.first.run.delay.seconds": (1, 15),
    "hazelcast.merge.next.run.delay.seconds": (1, 10),
    "hazelcast.partial.member.disconnection.resolution.heartbeat.count": (0, 5),
    "quarterdeck.heartbeat.topology": ("ring",),
    "quarterdeck.heartbeat.ring.successors": (1, 2),
    "quarterdeck.minimum.cluster.size": (2, 3),
    "quarterdeck.link.probe.max.backoff.seconds": (1, 15),
    "quarterdeck.cluster.state.lease.seconds": (2, 15),
    "hazelcast.partition.max.parallel.migrations": (1, 2, 4),
    "hazelcast.partition.migration.interval": (0.05, 0.5),
    "hazelcast.partition.migration.timeout": (3, 10),
    "hazelcast.partition.table.send.interval": (1, 10),
    "hazelcast.partition.backup.sync.interval": (1, 10),
    "hazelcast.partition.max.parallel.replications": (1, 2),
    "quarterdeck.transfer.chunk.bytes": (1, 16, 200),
    "quarterdeck.transfer.window.chunks": (1, 2),
    "hazelcast.graceful.shutdown.max.wait": (5, 30),
    "hazelcast.operation.call.timeout.millis": (3_000, 10_000),
    "quarterdeck.partition.arrange.at.once": (True,),
    "quarterdeck.merge.policy": ("pass-through", "latest-update", "latest-access", "higher-hits", "discard"),
    "hazelcast.member.demote.max.wait": (0, 2),
}

LIMITS_PROBABILITY = 0.08
MAP_LIMITS = ("m max-size=3 eviction-policy=LRU", "m max-bytes=100 eviction-policy=LRU", "m max-size=4")
"""Small enough for the workload to reach them; few runs have any, since what was evicted proves little."""

BACKUPS = (0, 0, 1, 1, 1, 1, 1, 1, 2, 2, 2, 3, 3, 4, 5, 6)
PARTITIONS = (1, 2, 3, 5, 7, 7, 11, 11, 13, 17, 17, 23, 31)
GREAT_PARTITIONS = (271, 271, 271, 271, 1_009, 1_009, 5_003)
GREAT_PROBABILITY = 0.01
GREATEST_PARTITIONS = 50_021
GREATEST_PROBABILITY = 0.0002
"""Few runs have many partitions: what they find is seldom another thing, and they cost as much as hundreds of the others."""
MANY_PARTITIONS = 1_000
"""From so many on a run has few members and backups, and does little."""

ZONES_PROBABILITY = 0.25
LITE_PROBABILITY = 0.25
LATENCY_PROBABILITY = 0.25
SHORT_JOIN_LIST_PROBABILITY = 0.15


def drawn_properties(draws: Random) -> dict[str, PropertyValue]:
    """Draw the properties of a run that are not as in the training preset."""
    interval = draws.choice(INTERVALS_SECONDS)
    chance = draws.random()
    partitions = draws.choice(GREAT_PARTITIONS if chance < GREAT_PROBABILITY else PARTITIONS)
    if chance < GREATEST_PROBABILITY:
        partitions = GREATEST_PARTITIONS
    backups = draws.choice(BACKUPS)
    properties: dict[str, PropertyValue] = {
        "hazelcast.heartbeat.interval.seconds": interval,
        "hazelcast.max.no.heartbeat.seconds": interval * draws.choice(TIMEOUT_INTERVALS),
        "hazelcast.partition.count": partitions,
        "quarterdeck.backup.count": 0 if partitions > MANY_PARTITIONS else backups,
    }
    for name, choices in PROPERTY_CHOICES.items():
        if draws.random() < CHOICE_PROBABILITY:
            properties[name] = draws.choice(choices)
    if draws.random() < LIMITS_PROBABILITY:
        properties["quarterdeck.map.limits"] = draws.choice(MAP_LIMITS)
    if partitions >= MANY_PARTITIONS:
        properties.pop("hazelcast.partition.migration.interval", None)  # so many of them would take for ever
    return properties


def drawn_zones(draws: Random, labels: tuple[str, ...], properties: dict[str, PropertyValue]) -> dict[str, str]:
    """Where members stand, and by which groups their replicas count: that goes into the properties."""
    if draws.random() >= ZONES_PROBABILITY:
        return {}
    kind = draws.choice(("zone-aware", "zone-aware", "zone-aware", "host-aware"))
    properties["quarterdeck.partition.group.type"] = kind
    zones = [f"z{number}" for number in range(1, draws.randint(1, 4) + 1)]
    # Members without a zone are zones of their own.
    return {label: draws.choice(zones) for label in labels if draws.random() < 0.9} if kind == "zone-aware" else {}


def drawn_lite(draws: Random, labels: tuple[str, ...]) -> list[str]:
    """Members that hold no data: some, and now and then all but two."""
    if draws.random() >= LITE_PROBABILITY:
        return []
    most = len(labels) - 2 if draws.random() < 0.2 else len(labels) // 3
    return sorted(draws.sample(labels, draws.randint(1, max(1, most))), key=labels.index)


def drawn_latency(draws: Random, settings: Settings) -> dict[str, str]:
    """Messages that are slow and overtake one another, but not so slow that heartbeats of the living seem missing."""
    if draws.random() >= LATENCY_PROBABILITY:
        return {}
    slack_us = settings.max_no_heartbeat_us - settings.heartbeat_interval_us
    most_us = max(5 * MILLISECOND_US, int(slack_us * 0.5 * draws.random()))
    least_us = draws.choice((200, 2_000))
    typical_us = int(most_us * draws.choice((0.01, 0.05, 0.2)))
    return {
        "model": draws.choice(("uniform", "exponential", "heavy-tail")),
        "least": duration_text(least_us),
        "typical": duration_text(typical_us),
        "most": duration_text(most_us),
    }


def drawn_join_lists(draws: Random, labels: tuple[str, ...]) -> dict[str, list[str]]:
    """Usually all members list all members; sometimes some members list only the first two."""
    if draws.random() >= SHORT_JOIN_LIST_PROBABILITY:
        return {}
    return {label: list(labels[:2]) for label in labels[2:] if draws.random() < 0.5}
