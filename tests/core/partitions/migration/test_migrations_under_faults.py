"""Joins, crashes and departures while messages are lost, repeated, late and out of order: nothing is lost but time (Avoid Data
Loss on Migration).

Heartbeats and the like are spared, lest members be taken for dead that are not: then more would be gone than there are backups.
"""

from collections import defaultdict
from random import Random

import pytest

from quarterdeck.backend.core.membership.events import MemberMerging
from quarterdeck.backend.core.membership.messages import (
    Heartbeat,
    LinkProbe,
    LinkProbeReply,
    MasterConfirmation,
    MasterIs,
)
from quarterdeck.backend.core.messages import Message
from quarterdeck.backend.core.partitions.events import MigrationDecided, MigrationFinished, TableChanged
from quarterdeck.backend.core.properties import SECOND_US
from tests.core.stepped_partitions import SteppedPartitions
from tests.thoroughness import long_after

SPARED = (Heartbeat, MasterConfirmation, MasterIs, LinkProbe, LinkProbeReply)
SEEDS = 240


class Storm:
    """A network that does what it wants with an ensemble."""

    def __init__(self, world: SteppedPartitions, random: Random) -> None:
        self.world, self.random = world, random
        self.loss = random.choice([0, 0.05, 0.2])
        self.repetition = random.choice([0, 0.05, 0.2])
        self.disorder = random.choice([0, 0.3, 0.8])
        self.old: list[tuple[str, str, Message]] = []

    def rage(self, steps: int) -> None:
        world, random = self.world, self.random
        until = world.now + 6 * SECOND_US
        for _ in range(steps):
            if world.sent and random.random() < 0.95:
                self._one()
            else:
                world.skip(until)
                for spared in [delivery for delivery in world.sent if isinstance(delivery[2], SPARED)]:
                    world.sent.remove(spared)
                    self._deliver(*spared)

    def _one(self) -> None:
        world, random = self.world, self.random
        place = random.randrange(len(world.sent)) if random.random() < self.disorder else 0
        one = world.sent.pop(place)
        if random.random() < self.repetition:
            self.old.append(one)
            world.sent.insert(random.randrange(len(world.sent) + 1), one)
        if self.old and random.random() < self.repetition / 4:
            world.sent.append(random.choice(self.old))
        if isinstance(one[2], SPARED) or random.random() >= self.loss:
            self._deliver(*one)

    def _deliver(self, sender: str, receiver: str, message: Message) -> None:
        if receiver in self.world.living:
            self.world.receive(receiver, sender, message)


def lived_through(seed: int, backups: int) -> SteppedPartitions:
    random = Random(seed)
    world = SteppedPartitions(5, backups, parallel_migrations=random.choice([1, 2, 10])).arranged("ABCD")
    storm = Storm(world, random)
    actions = ["join", *["kill"] * backups, random.choice(["stop", "join", "nothing"])]
    random.shuffle(actions)
    newcomers = iter("PQ")
    for action in actions:
        storm.rage(random.randrange(5, 160))
        match action:
            case "join":
                world.join(next(newcomers), "ABCD")
            case "kill":
                world.kill(
                    random.choice([label for label in world.living if world.parts(label).draining_until_us is None])
                )
            case "stop":
                world.stop(random.choice(world.living))
    storm.rage(100)
    for _ in range(15):
        world.run(6)
        if not world.complaints():
            break
    return world


def contradictions(world: SteppedPartitions) -> list[str]:
    """Migrations that ended in two ways, and versions of rows with two contents, among those who live.

    What a master had decided when it died, and told nobody, is decided again by the next one. Where a member led a
    cluster of its own for a while and merged, versions of rows stand side by side and prove nothing.
    """
    ends: defaultdict[str, set[bool]] = defaultdict(set)
    rows: defaultdict[tuple[int, int], set[tuple[str, ...]]] = defaultdict(set)
    for name, events in world.events.items():
        if name not in world.living:
            continue
        for event in events:
            if isinstance(event, MigrationDecided | MigrationFinished):
                ends[event.migration_id].add(event.committed)
            elif isinstance(event, TableChanged):
                for partition, version, *places in event.rows:
                    lives = tuple(event.holders[place].uuid if place >= 0 else "" for place in places)
                    rows[partition, version].add(lives)
    found = [f"migration {one} ended in two ways" for one, ways in ends.items() if len(ways) > 1]
    if any(isinstance(event, MemberMerging) for events in world.events.values() for event in events):
        return found
    return found + [f"partition {p} is {kinds} at version {v}" for (p, v), kinds in rows.items() if len(kinds) > 1]


@pytest.mark.parametrize("backups", [1, 2])
@pytest.mark.parametrize("first", long_after(1, range(0, SEEDS, 60)))
def test_nothing_is_lost_but_time(first: int, backups: int) -> None:
    found = []
    for seed in range(first, first + 60):
        world = lived_through(seed, backups)
        found += [f"seed {seed}: {problem}" for problem in (*world.complaints(), *contradictions(world))]
    assert found == []
