"""Swarm runs with data in use: writes all the time, and members that join, leave and die at every named point of a migration.

A run is a row of rounds. Each begins when all data is safe, does one thing that makes partitions move, and has a member die in
the middle of it, as the seed draws; no more members are lost in one round than there are backups, so nothing acknowledged may be
lost. Some runs have bad links besides, and some are split, which forgoes that promise but no other one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

from quarterdeck.backend.core.properties import MILLISECOND_US, SECOND_US, PropertyValue, Settings
from quarterdeck.backend.simulation.scenarios.values import duration_text
from quarterdeck.backend.simulation.scenarios.writing import scenario_of_tree
from quarterdeck.backend.simulation.swarm_testing.convergence import convergence_bound_us, table_bound_us
from quarterdeck.backend.simulation.swarm_testing.drawing import DrawnScenario
from quarterdeck.backend.simulation.swarm_testing.fault_kinds import POINTS

FEWEST, MOST = 3, 8
"""Members of a run, unless told otherwise."""

MIGRATION_POINTS = (
    *("table-changed", "partition-lost", "table-recovery-started", "table-recovered", "migrations-planned"),
    *("migrations-cancelled", "migration-started", "migration-accepted", "migration-rejected", "migration-copied"),
    *("migration-committing", "migration-decided", "migration-finished", "completed-evicted", "drain-started"),
    *("drain-finished", "backup-out-of-step", "backup-in-step", "call-started", "call-finished"),
)
"""Events at which a crash is worth a look, besides the points of membership; all that the chapters of seed 004 record."""

RECOVERY_POINTS = ("table-recovery-started", "table-recovered")
MASTERS_POINTS = (
    *RECOVERY_POINTS,
    *("partition-lost", "migrations-planned", "migrations-cancelled", "migration-started", "migration-committing"),
    *("migration-decided", "completed-evicted", "drain-started", "drain-finished"),
)
"""Those of them that only a master records. Mostly it is the oldest member that is to die there, or the one after it."""
MASTER_PROBABILITY = 0.7

ROUNDS = (2, 6)
SETTLE_US = 60 * SECOND_US
"""How long a round waits for the data to be safe again."""

BACKUPS = (0, 1, 1, 1, 1, 2, 2, 3)
PARTITIONS = (7, 11, 13, 17, 23, 31)
INTERVALS_SECONDS = (0.5, 1)
CHOICE_PROBABILITY = 0.3
CHOICES: dict[str, tuple[PropertyValue, ...]] = {
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
}
LOSS_PROBABILITY = 0.2
"""How probable a round without backups is in which a member is lost all the same, and with it partitions."""
BAD_LINKS_PROBABILITY = 0.25
SPLIT_PROBABILITY = 0.15


def draw_with_data(seed: int, sizes: tuple[int, int] = (FEWEST, MOST)) -> DrawnScenario:
    """The run of `seed` with as many members as lie between the two `sizes`. Equal arguments give equal drawings."""
    draws = _draws(seed)
    size = draws.randint(*sizes)
    labels = [f"n{number}" for number in range(1, size + 1)]
    properties = _properties(draws)
    late = [label for label in labels[2:] if draws.random() < 0.4]
    plan = _RunWithData(draws, labels, set(late), int(properties["quarterdeck.backup.count"]))
    rounds = list(plan.rounds())
    settings = Settings.of(properties, preset="training")
    bound_us = convergence_bound_us(settings, size) + table_bound_us(settings)
    tree: dict[str, Any] = {
        "title": f"Swarm run {seed} with data",
        "summary": f"Faults: {', '.join(dict.fromkeys(plan.faults)) or 'none'}.",
        "members": labels,
        "settings": properties,
        "late": late,
        "steps": [
            *plan.beginning(),
            *rounds,
            {"do": {"heal": {}}},
            {
                "expect": {
                    "within": duration_text(bound_us),
                    "one-cluster": True,
                    "safe": True,
                    **({} if plan.is_split else {"no-lost-writes": True}),
                }
            },
        ],
    }
    if not late:
        del tree["late"]
    return DrawnScenario(seed, scenario_of_tree(tree), tuple(dict.fromkeys(plan.faults)))


def members_with_data(seed: int, sizes: tuple[int, int]) -> int:
    """How many members the run of `seed` has: the first thing that is drawn."""
    return _draws(seed).randint(*sizes)


def _draws(seed: int) -> Random:
    return Random(f"{seed}/swarm with data")


def _properties(draws: Random) -> dict[str, PropertyValue]:
    interval = draws.choice(INTERVALS_SECONDS)
    properties: dict[str, PropertyValue] = {
        "hazelcast.heartbeat.interval.seconds": interval,
        "hazelcast.max.no.heartbeat.seconds": interval * draws.choice((3, 4, 5)),
        "hazelcast.partition.count": draws.choice(PARTITIONS),
        "quarterdeck.backup.count": draws.choice(BACKUPS),
    }
    for name, choices in CHOICES.items():
        if draws.random() < CHOICE_PROBABILITY:
            properties[name] = draws.choice(choices)
    return properties


@dataclass
class _RunWithData:
    """The rounds of one run, and who is down as far as that can be known before it runs."""

    draws: Random
    labels: list[str]
    down: set[str]
    backups: int

    def __post_init__(self) -> None:
        self.faults: list[str] = []
        self.is_split = False

    def beginning(self) -> Iterator[dict[str, Any]]:
        """The first arrangement, with data or before any, and the workload."""
        draws = self.draws
        if draws.random() < 0.5:
            yield {"do": {"arrange": [self.labels[0]]}}
        load: dict[str, Any] = {
            "at": self.labels,
            "map": "m",
            "keys": draws.choice((5, 20, 60)),
            "rate": draws.choice((5, 20, 50)),
            "for": "30m",
            "reads": draws.choice((0.1, 0.3, 0.5)),
            "removes": draws.choice((0, 0.1)),
        }
        yield {"do": {"load": load}}
        yield self._wait(0.1, 3)

    def rounds(self) -> Iterator[dict[str, Any]]:
        draws = self.draws
        bad_links = draws.random() < BAD_LINKS_PROBABILITY
        splits = draws.random() < SPLIT_PROBABILITY
        for _ in range(draws.randint(*ROUNDS)):
            if bad_links:
                yield from self._worsen_links()
            yield from self._split() if splits and draws.random() < 0.5 else self._move_and_crash()
            if bad_links:
                yield {"do": {"heal": {}}}
            yield {"do": {"wait-until-safe": {"within": duration_text(SETTLE_US)}}}

    def _move_and_crash(self) -> Iterator[dict[str, Any]]:
        """One change of the members that makes partitions move, and deaths in the middle of it."""
        draws = self.draws
        up = self._up()
        losses = self.backups or int(draws.random() < LOSS_PROBABILITY)
        possible = ["start", "start"] * bool(self.down)
        if len(up) > 2:
            possible += ["stop"] + ["kill", "restart"] * bool(losses)
        change = draws.choice(possible)
        subjects = sorted(self.down) if change == "start" else up
        whom = [subjects[0] if draws.random() < 0.25 else draws.choice(subjects)]
        if change == "start" and draws.random() < 0.3:
            whom = sorted(self.down, key=self.labels.index)
        losses -= change in ("kill", "restart")
        others = [label for label in up if label not in whom] + whom * (change == "start")
        dying = draws.sample(others, min(draws.randint(0, max(0, losses)), len(others) - 1, max(0, len(up) - 2)))
        points = [self._point() for _ in dying]
        for place, point in enumerate(points):
            masters = [label for label in others if label not in dying][:1]
            if point["event"] in MASTERS_POINTS and masters and draws.random() < MASTER_PROBABILITY:
                dying[place] = min(dying[place], *masters, key=self.labels.index)
            yield {"do": {"kill-at": {dying[place]: point}}}
        self.faults += [change, *["crash at a point"] * bool(dying)]
        yield {"do": {change: whom}}
        if change == "start":
            self.down.difference_update(whom)
        elif change != "restart":
            self.down.update(whom)
        yield self._wait(0.01, 12)
        yield {"do": {"wait-until-safe": {"within": duration_text(SETTLE_US)}}}
        yield from self._bring_back(dying)

    def _point(self) -> dict[str, Any]:
        """An event of a migration mostly, of membership now and then; before or after what follows from it."""
        points = POINTS if self.draws.random() < 0.15 else MIGRATION_POINTS
        return {"event": self.draws.choice(points), "after": self.draws.random() < 0.5}

    def _bring_back(self, dying: list[str]) -> Iterator[dict[str, Any]]:
        """Whoever was to die comes back, one by one as they may be running still; some stay away."""
        for label in dying:
            yield {"do": {"restart": [label]}}
            yield self._wait(0.01, 6)
            yield {"do": {"wait-until-safe": {"within": duration_text(SETTLE_US)}}}

    def _worsen_links(self) -> Iterator[dict[str, Any]]:
        draws = self.draws
        for kind, field, amount in (
            ("lose", "probability", round(0.01 + 0.15 * draws.random(), 3)),
            ("duplicate", "probability", round(0.5 * draws.random(), 3)),
            ("delay", "by", duration_text(int(draws.random() ** 2 * 400) * MILLISECOND_US)),
        ):
            if draws.random() < 0.5:
                self.faults.append(kind)
                sources = self.labels if draws.random() < 0.5 else [draws.choice(self.labels)]
                targets = [label for label in self.labels if label not in sources] or self.labels
                yield {"do": {kind: {"from": sources, "to": targets, field: amount}}}

    def _split(self) -> Iterator[dict[str, Any]]:
        draws = self.draws
        self.is_split = True
        self.faults.append("split")
        shuffled = draws.sample(self.labels, len(self.labels))
        cut = draws.randint(1, len(shuffled) - 1)
        groups = [sorted(group, key=self.labels.index) for group in (shuffled[:cut], shuffled[cut:])]
        yield {"do": {"partition": {"groups": groups}}}
        yield self._wait(1, 25)
        yield {"do": {"heal": {}}}
        yield self._wait(1, 10)

    def _up(self) -> list[str]:
        return [label for label in self.labels if label not in self.down]

    def _wait(self, least_seconds: float, most_seconds: float) -> dict[str, Any]:
        """A time that is more likely short than long."""
        seconds = least_seconds * (most_seconds / least_seconds) ** self.draws.random()
        return {"do": {"wait": duration_text(int(seconds * 1000) * MILLISECOND_US)}}
