"""Rounds of a swarm run in which partitions move: members that join, leave and die at every named point of a migration.

Each round begins when all data is safe, does one thing that makes partitions move, and has a member die in the middle of it, as
the seed draws; no more members are lost in one round than there are backups, so nothing acknowledged may be lost. Some have bad
links besides, and in some the state of the cluster forbids migrations or joins for a while.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

from quarterdeck.backend.core.properties import MILLISECOND_US, SECOND_US
from quarterdeck.backend.scenarios.format.values import duration_text
from quarterdeck.backend.simulation.swarm_testing.fault_kinds import POINTS
from quarterdeck.backend.simulation.swarm_testing.fault_timeline import Standing, StepTree, wait

MIGRATION_POINTS = (
    *("table-changed", "partition-lost", "table-recovery-started", "table-recovered", "migrations-planned"),
    *("migrations-cancelled", "migration-started", "migration-accepted", "migration-rejected", "migration-copied"),
    *("migration-committing", "migration-decided", "migration-finished", "completed-evicted", "drain-started"),
    *("drain-finished", "backup-out-of-step", "backup-in-step", "call-started", "call-finished"),
)
"""Events at which a crash is worth a look, besides the points of membership; all that the chapters of Avoid Data Loss on
Migration record."""

RECOVERY_POINTS = ("table-recovery-started", "table-recovered")
MASTERS_POINTS = (
    *RECOVERY_POINTS,
    *("partition-lost", "migrations-planned", "migrations-cancelled", "migration-started", "migration-committing"),
    *("migration-decided", "completed-evicted", "drain-started", "drain-finished"),
)
"""Those of them that only a master records. Mostly it is the oldest member that is to die there, or the one after it."""
MASTER_PROBABILITY = 0.7

ROUNDS = (1, 4)
LOOKS = 3
"""So many times each key is read while sides of a division are looked at, on average."""
SETTLE_US = 60 * SECOND_US
"""How long a round waits for the data to be safe again."""

LOSS_PROBABILITY = 0.2
"""How probable a round without backups is in which a member is lost all the same, and with it partitions."""
BAD_LINKS_PROBABILITY = 0.25
STATE_PROBABILITY = 0.15
"""How probable a round is in which the cluster is not ACTIVE."""


FAULT_NAMES = {
    "start": "join storm",
    "stop": "graceful stop",
    "kill": "crash",
    "restart": "restart",
    "lose": "loss",
    "duplicate": "duplication",
    "delay": "delay",
}
"""The kinds of faults that the actions of a round belong to."""


def wait_until_safe() -> StepTree:
    """Return a step that waits until all data is safe, or long enough."""
    return {"do": {"wait-until-safe": {"within": duration_text(SETTLE_US)}}}


READ_BACK = "200ms"
"""So long after a write its key is read through the same member: it is judged before much else can happen to it."""
SELDOM_SECONDS = 2
"""That is done where a key is asked for less often than this; otherwise the workload itself asks for it soon."""


class SwarmRounds:
    """The rounds of one run. `faults` receives the kinds of what happens in them."""

    def __init__(self, draws: Random, standing: Standing, backups: int, faults: list[str]) -> None:
        self._draws = draws
        self._standing = standing
        self._backups = backups
        self._faults = faults
        self._keys = 0

    def beginning(self) -> Iterator[StepTree]:
        """Yield the first arrangement, with data or before any, and the workload."""
        draws, labels = self._draws, list(self._standing.labels)
        if draws.random() < 0.4:
            yield {"do": {"arrange": [labels[0]]}}
        self._keys = draws.choice((5, 10, 30))
        load: dict[str, Any] = {
            "at": labels,
            "map": "m",
            "keys": self._keys,
            "rate": draws.choice((2, 5, 10)),
            "for": "30m",
            "reads": draws.choice((0.1, 0.3, 0.5)),
            "removes": draws.choice((0, 0.1)),
        }
        if self._keys > SELDOM_SECONDS * load["rate"]:
            load["read-back"] = READ_BACK
        yield {"do": {"load": load}}
        if draws.random() < 0.7:  # else the faults begin before anything is arranged
            yield self._wait(0.1, 3)

    def look(self) -> Iterator[StepTree]:
        """Yield a second in which every key is read, mostly through several members."""
        up = [label for label in self._standing.up if label not in self._standing.paused]
        load = {"at": up, "map": "m", "keys": self._keys, "rate": LOOKS * self._keys, "for": "1s", "reads": 1}
        yield {"do": {"load": load}}
        yield wait(SECOND_US)

    def several(self) -> Iterator[StepTree]:
        """Yield some rounds, each from safe data to safe data."""
        draws = self._draws
        bad_links = draws.random() < BAD_LINKS_PROBABILITY
        for number in range(draws.randint(*ROUNDS)):
            if number:
                yield wait_until_safe()
            if bad_links:
                yield from self._worsen_links()
            state = draws.choice(("FROZEN", "PASSIVE", "NO_MIGRATION")) if draws.random() < STATE_PROBABILITY else ""
            if state:
                self._faults.append("state change")
                yield {"do": {"change-state": {draws.choice(self._standing.up): state}}}
            yield from self._move_and_crash()
            if bad_links:
                yield {"do": {"heal": {}}}
            if state:
                for label in self._standing.up[:2]:
                    yield {"do": {"change-state": {label: "ACTIVE"}}}

    def _move_and_crash(self) -> Iterator[StepTree]:
        """One change of the members that makes partitions move, and deaths in the middle of it."""
        draws, standing = self._draws, self._standing
        up, down = standing.up, standing.down
        losses = self._backups or int(draws.random() < LOSS_PROBABILITY)
        possible = ["start", "start"] * bool(down)
        if len(up) > 2:
            possible += ["stop"] + ["kill", "restart"] * bool(losses)
        if not possible:
            return
        change = draws.choice(possible)
        in_order = [label for label in standing.labels if label in down] if change == "start" else up
        whom = [in_order[0] if draws.random() < 0.25 else draws.choice(in_order)]
        if change == "start" and draws.random() < 0.3:
            whom = in_order
        losses -= change in ("kill", "restart")
        others = [label for label in up if label not in whom] + whom * (change == "start")
        dying = draws.sample(others, min(draws.randint(0, max(0, losses)), len(others) - 1, max(0, len(up) - 2)))
        points = [self._point() for _ in dying]
        for place, point in enumerate(points):
            masters = [label for label in others if label not in dying][:1]
            if point["event"] in MASTERS_POINTS and masters and draws.random() < MASTER_PROBABILITY:
                dying[place] = min(dying[place], *masters, key=standing.labels.index)
            yield {"do": {"kill-at": {dying[place]: point}}}
        self._faults += [FAULT_NAMES[change], *["crash at a point"] * bool(dying)]
        yield {"do": {change: whom}}
        if change == "start":
            down.difference_update(whom)
        elif change != "restart":
            down.update(whom)
        yield self._wait(0.01, 12)
        yield wait_until_safe()
        yield from self._bring_back(dying)

    def _point(self) -> dict[str, Any]:
        """Draw an event, of a migration mostly, of membership now and then; before or after what follows from it."""
        points = POINTS if self._draws.random() < 0.15 else MIGRATION_POINTS
        return {"event": self._draws.choice(points), "after": self._draws.random() < 0.5}

    def _bring_back(self, dying: list[str]) -> Iterator[StepTree]:
        """Start the members again that were to die, one by one as they may be running still."""
        for place, label in enumerate(dying):
            if place:
                yield wait_until_safe()
            yield {"do": {"restart": [label]}}
            yield self._wait(0.01, 6)

    def _worsen_links(self) -> Iterator[StepTree]:
        draws, labels = self._draws, list(self._standing.labels)
        for kind, field, amount in (
            ("lose", "probability", round(0.01 + 0.15 * draws.random(), 3)),
            ("duplicate", "probability", round(0.5 * draws.random(), 3)),
            ("delay", "by", duration_text(int(draws.random() ** 2 * 400) * MILLISECOND_US)),
        ):
            if draws.random() < 0.5:
                self._faults.append(FAULT_NAMES[kind])
                sources = labels if draws.random() < 0.5 else [draws.choice(labels)]
                targets = [label for label in labels if label not in sources] or labels
                yield {"do": {kind: {"from": sources, "to": targets, field: amount}}}

    def _wait(self, least_seconds: float, most_seconds: float) -> StepTree:
        """Draw a time to wait that is more likely short than long."""
        seconds = least_seconds * (most_seconds / least_seconds) ** self._draws.random()
        return wait(int(seconds * 1000) * MILLISECOND_US)
