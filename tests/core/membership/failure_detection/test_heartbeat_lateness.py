"""Who is close to being suspected is told once, and once that it is over; in a healthy cluster nothing is."""

from __future__ import annotations

import pytest

from quarterdeck.backend.core.inputs import TICK
from quarterdeck.backend.core.membership.events import HeartbeatLate, MemberRemoved, SuspicionRaised
from quarterdeck.backend.core.membership.failure_detection.failure_detector import late_after_us
from quarterdeck.backend.core.properties import SECOND_US, Settings
from tests.core.member_state import state_of
from tests.core.stepped_cluster import SteppedCluster, address_of, training_settings


def five(**changed: object) -> SteppedCluster:
    return SteppedCluster(training_settings(**changed)).with_lists(**dict.fromkeys("ABCDE", (5, "ABCDE")))


def live_for(world: SteppedCluster, seconds: float, dead: str = "") -> None:
    for _ in range(round(seconds * 2)):
        world.pass_seconds(0.5, *(name for name in world.machines if name not in dead))
        world.deliver_all(dead=dead)


def told(world: SteppedCluster, name: str) -> list[HeartbeatLate]:
    return [event for event in world.events[name] if isinstance(event, HeartbeatLate)]


@pytest.mark.parametrize(
    ("interval", "timeout", "late"), [(5, 60, 30), (1, 4, 3), (1, 10, 5), (1, 3, 3), (1, 2, 2), (0.5, 2, 1.5)]
)
def test_half_the_timeout_but_three_intervals_at_least(interval: float, timeout: float, late: float) -> None:
    settings = Settings.of(
        {"hazelcast.heartbeat.interval.seconds": interval, "hazelcast.max.no.heartbeat.seconds": timeout}
    )
    assert late_after_us(settings) == late * SECOND_US


@pytest.mark.parametrize("kind", ["deadline", "phi-accrual"])
def test_a_healthy_cluster_says_nothing(kind: str) -> None:
    world = five(failure_detector=kind)
    live_for(world, 60)
    assert not any(told(world, name) for name in "ABCDE")


def test_one_lost_heartbeat_is_no_reason_to_talk() -> None:
    world = five()
    live_for(world, 5)
    live_for(world, 1.5, dead="E")
    live_for(world, 5)
    assert not any(told(world, name) for name in "ABCDE")


def test_everybody_says_once_that_a_heartbeat_is_late_and_then_acts() -> None:
    world = five()
    live_for(world, 5)
    live_for(world, 8, dead="E")
    for name in "ABCD":
        (late,) = told(world, name)
        assert (late.address, late.late_uuid, late.timeout, late.over) == (
            address_of("E"),
            world.machines["E"].uuid,
            4 * SECOND_US,
            False,
        )
        assert 3 * SECOND_US <= late.silence < 4 * SECOND_US
        kinds = [type(event) for event in world.events[name]]
        assert kinds.index(HeartbeatLate) < kinds.index(MemberRemoved if name == "A" else SuspicionRaised)


def test_whoever_is_heard_again_is_late_no_more() -> None:
    world = five(max_no_heartbeat_us=10 * SECOND_US)
    live_for(world, 3)
    live_for(world, 7, dead="E")
    live_for(world, 3)
    for name in "ABCD":
        late, over = told(world, name)
        assert not late.over and over.over and over.silence > late.silence
        assert not state_of(world.machines[name]).peers[address_of("E")].late
    assert not any(
        isinstance(event, SuspicionRaised | MemberRemoved) for name in "ABCD" for event in world.events[name]
    )


def test_an_observer_that_stood_still_waits_anew() -> None:
    world = five(max_no_heartbeat_us=10 * SECOND_US)
    live_for(world, 3)
    live_for(world, 7, dead="E")
    world.now += 60 * SECOND_US
    world.tell("B", TICK)
    late, over = told(world, "B")
    assert over == HeartbeatLate(late.address, late.late_uuid, 0, late.timeout, True)


def test_on_a_ring_only_watchers_say_so_until_they_watch_somebody_else() -> None:
    world = SteppedCluster(
        training_settings(heartbeat_topology="ring", ring_successors=1, max_no_heartbeat_us=10 * SECOND_US)
    )
    world.settled("ABCDEF")
    live_for(world, 3)
    live_for(world, 7, dead="D")
    assert [name for name in "ABCEF" if told(world, name)] == ["C"]
    state = state_of(world.machines["C"])
    assert state.peers[address_of("D")].late
    world.suspect("C", "D")  # by other evidence; it goes on watching D only as far as its own findings go
    live_for(world, 1, dead="D")
    assert told(world, "C")[-1] == HeartbeatLate(address_of("D"), world.machines["D"].uuid, 0, 10 * SECOND_US, True)
