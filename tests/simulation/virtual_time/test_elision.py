"""Leaving out heartbeats: the same records as with all of them, whatever happens, and far fewer deliveries."""

from __future__ import annotations

from random import Random

import pytest

from quarterdeck.backend.core.commands import (
    ChangeState,
    Command,
    CommandRefused,
    CutLink,
    Heal,
    KillMember,
    PauseMember,
    ResumeMember,
    StartMember,
    StopMember,
)
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.properties import SECOND_US, Settings
from quarterdeck.backend.scenarios.format.clocks import Latency
from quarterdeck.backend.simulation.virtual_time.elision import Elision
from quarterdeck.backend.simulation.virtual_time.world import World
from tests.thoroughness import long_after

TRAINING = Settings.of(preset="training")


def random_command(rng: Random, labels: tuple[str, ...]) -> Command:
    one, other = rng.sample(labels, 2)
    return rng.choice(
        [
            KillMember(one),
            StartMember(one),
            PauseMember(one),
            ResumeMember(one),
            StopMember(one),
            CutLink((one,), (other,), one_way=rng.random() < 0.5),
            ChangeState(one, rng.choice(["FROZEN", "ACTIVE"])),
            Heal(),
        ]
    )


def eventful_run(seed: int, *, elide: bool) -> tuple[list[Record], World]:
    """Up to nine members, a few commands at random times, calm in between and for a minute at the end."""
    rng = Random(seed)
    records: list[Record] = []
    labels = [f"n{number}" for number in range(1, rng.randint(2, 9) + 1)]
    world = World(labels, seed=seed, settings=TRAINING, on_record=records.append, elide_heartbeats=elide)
    for label in labels:
        world.execute(StartMember(label))
        world.run_until(world.now_us + rng.randint(0, 300_000))
    for _ in range(rng.randint(2, 8)):
        world.run_until(world.now_us + rng.randint(100_000, 40 * SECOND_US))
        try:
            world.execute(random_command(rng, world.labels))
        except CommandRefused:
            continue
    world.execute(Heal())
    world.run_until(world.now_us + 60 * SECOND_US)
    return records, world


@pytest.mark.parametrize("seed", long_after(6, range(60)))
def test_every_record_is_the_same(seed: int) -> None:
    expected, whole = eventful_run(seed, elide=False)
    found, elided = eventful_run(seed, elide=True)
    assert found == expected
    assert elided.network.messages == whole.network.messages > 0, "what is left out is counted as sent"


def calm_world(members: int = 10, **options: object) -> World:
    settings = TRAINING.with_properties(options.pop("properties", {}))  # type: ignore[arg-type]
    labels = [f"n{n}" for n in range(members)]
    world = World(labels, seed=1, settings=settings, elide_heartbeats=True, **options)  # type: ignore[arg-type]
    for label in world.labels:
        world.execute(StartMember(label))
        world.run_until(world.now_us + 10_000)
    world.run_until(10 * SECOND_US)
    return world


def test_a_calm_cluster_delivers_next_to_no_heartbeats() -> None:
    world = calm_world()
    before = world.events
    world.run_until(world.now_us + 100 * SECOND_US)
    ticks = 10 * 100
    assert world.events - before < 3 * ticks, "90 heartbeats a second would be nine times the ticks"


@pytest.mark.parametrize(
    "options",
    [
        {"properties": {"hazelcast.heartbeat.failuredetector.type": "phi-accrual"}},
        {"latency": Latency("exponential")},
        {
            "properties": {
                "quarterdeck.heartbeat.topology": "ring",
                "hazelcast.partial.member.disconnection.resolution.heartbeat.count": 0,
            }
        },
    ],
    ids=["phi-accrual", "exponential latency", "ring"],
)
def test_where_more_than_the_last_heartbeat_counts_nothing_is_left_out(options: dict[str, object]) -> None:
    world = calm_world(4, **options)
    before = world.events
    world.run_until(world.now_us + 50 * SECOND_US)
    assert world.events - before > 6 * 50


def test_what_is_left_out_matters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Were the calm never ended, a silent member would not be noticed as it is."""
    expected, _ = eventful_run(3, elide=False)
    monkeypatch.setattr(Elision, "end_calm", lambda self, moment: None)
    found, _ = eventful_run(3, elide=True)
    assert found != expected
