"""A simulated cluster: the scenario as the simulator runs it, whatever the pace; operators and forks change just what they do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import msgspec
import pytest

from quarterdeck.backend.clusters.cluster import StatusNotes, TimeControl
from quarterdeck.backend.clusters.simulated.simulated_cluster import ScheduledCommand, SimulatedCluster
from quarterdeck.backend.core.commands import (
    CallMap,
    Command,
    CommandRefused,
    CutLink,
    Heal,
    KillMember,
    PauseMember,
    ResumeMember,
    StartMember,
)
from quarterdeck.backend.core.events import ProcessKilled, Record
from quarterdeck.backend.core.operations import Get, Put
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.scenarios.format.reading import load_scenario
from quarterdeck.backend.scenarios.format.scenario import Scenario
from quarterdeck.backend.simulation.simulated_driver import simulate
from tests.thoroughness import long_after

SCENARIO = """
title: Three
members: [n1, n2, n3]
steps:
  - do: {wait: 3s}
  - do: {cut: {from: [n3], to: [n1, n2]}}
  - expect: {within: 9s, removed: [n3]}
  - do: {heal: true}
  - do: {wait: 2s}
"""


class Steady:
    """A clock that goes on a tenth of a second whenever it is told to."""

    def __init__(self) -> None:
        self.now_us = 0

    def __call__(self) -> int:
        return self.now_us


@pytest.fixture
def scenario(tmp_path: Path) -> Scenario:
    file = tmp_path / "three.yaml"
    file.write_text(SCENARIO)
    return load_scenario(file)


@pytest.fixture
def clock() -> Steady:
    return Steady()


Make = Callable[..., SimulatedCluster]


@pytest.fixture
def make(scenario: Scenario, clock: Steady, request: pytest.FixtureRequest) -> Make:
    def make_one(seed: int = 7, **options: object) -> SimulatedCluster:
        cluster = SimulatedCluster(scenario, seed, clock_us=clock, **options)  # type: ignore[arg-type]
        request.addfinalizer(cluster.close)
        return cluster

    return make_one


def run_to(cluster: SimulatedCluster, clock: Steady, until_us: int, tick_us: int = SECOND_US // 10) -> list[Record]:
    records = cluster.drain()
    while cluster.now_us() < until_us:
        clock.now_us += tick_us
        records += cluster.drain()
    return records


def nameless(records: list[Record], until_us: int) -> list[Record]:
    """The records up to a moment, without the name of their run, which is also the uuid of what the network did."""
    return [
        msgspec.structs.replace(record, run="", uuid=record.uuid.replace(record.run, "run"))
        for record in records
        if record.at <= until_us
    ]


def test_it_is_the_run_that_the_simulator_runs_at_any_pace(scenario: Scenario, make: Make, clock: Steady) -> None:
    class Kept(list[Record]):
        pass

    kept = Kept()
    outcome = simulate(scenario, 7, kept)
    end_us = round(outcome.virtual_seconds * SECOND_US)
    for speed, tick_us in ((1.0, 100_000), (0.25, 33_333), (64.0, 100_000)):
        cluster = make(speed=speed)
        records = run_to(cluster, clock, end_us + SECOND_US, tick_us)
        assert nameless(records, end_us) == nameless(kept, end_us)
        assert isinstance(cluster, TimeControl) and isinstance(cluster, StatusNotes)
        assert any("the scenario is over: 1 expectation met" in note for note in cluster.notes())


def test_it_stands_still_goes_on_and_steps(make: Make, clock: Steady) -> None:
    cluster = make(speed=2.0)
    run_to(cluster, clock, 4 * SECOND_US)
    at_us = cluster.now_us()
    clock.now_us += SECOND_US
    cluster.drain()
    assert cluster.now_us() == at_us + 2 * SECOND_US
    cluster.pause()
    clock.now_us += SECOND_US
    assert cluster.drain() == [] and cluster.now_us() == at_us + 2 * SECOND_US
    cluster.run_on(SECOND_US)
    cluster.drain()
    assert cluster.now_us() == at_us + 3 * SECOND_US and cluster.paused
    cluster.run_to_next_event()
    stepped = cluster.drain()
    assert stepped and {record.at for record in stepped} == {cluster.now_us()} and cluster.drain() == []
    cluster.resume()
    clock.now_us += SECOND_US
    cluster.drain()
    assert cluster.now_us() == stepped[0].at + 2 * SECOND_US
    with pytest.raises(ValueError, match="more than 0"):
        cluster.set_speed(0)


def test_what_cannot_be_computed_in_time_is_not_made_up_for(
    make: Make, clock: Steady, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quarterdeck.backend.clusters.simulated.simulated_cluster.SLICE_EVENTS", 0)
    cluster = make(speed=100.0)

    class Impatient(Steady):
        def __call__(self) -> int:
            self.now_us += 5_000  # every look at the clock finds that long gone
            return self.now_us

    cluster._clock_us = impatient = Impatient()
    for _ in range(20):
        cluster.drain()
    assert 0 < cluster.now_us() < impatient.now_us * 100 // 2
    assert any("slower than asked for" in note for note in cluster.notes())
    assert cluster._due_us == cluster.now_us()


def test_commands_are_done_refused_and_written_down(make: Make, clock: Steady) -> None:
    cluster = make()
    run_to(cluster, clock, 2 * SECOND_US)
    cluster.pause()
    at_us = cluster.now_us()
    done, refused = cluster.execute(KillMember("n2")), cluster.execute(ResumeMember("n1"))
    assert not done.done()
    records = cluster.drain()
    assert done.result(0) is None
    with pytest.raises(CommandRefused):
        refused.result(0)
    assert cluster.commands == [ScheduledCommand(at_us, KillMember("n2"))] and cluster.now_us() == at_us
    assert any(record.event == ProcessKilled("n2") and record.at == at_us for record in records)


def test_calls_are_answered_even_by_the_dead(make: Make, clock: Steady) -> None:
    cluster = make()
    run_to(cluster, clock, 2 * SECOND_US)
    written = cluster.call("n1", Put("m", "k", b"v"))
    run_to(cluster, clock, cluster.now_us() + SECOND_US // 2)
    assert not written.result(0).problem
    read = cluster.call("n2", Get("m", "k"))
    run_to(cluster, clock, cluster.now_us() + SECOND_US // 2)
    assert read.result(0).value == b"v"
    cluster.pause()
    asked = [cluster.call("n2", Put("m", f"k{place}", b"v")) for place in range(20)]
    cluster.execute(KillMember("n2"))
    cluster.drain()
    assert any(call.result(0).problem == "n2 has ended" for call in asked) and all(call.done() for call in asked)
    cluster.close()
    with pytest.raises(CommandRefused, match="closed"):
        cluster.execute(Heal()).result(0)
    assert cluster.drain() == []


def test_a_fork_without_a_command_is_the_same_run(make: Make, clock: Steady, request: pytest.FixtureRequest) -> None:
    cluster = make()
    records = run_to(cluster, clock, 2 * SECOND_US)
    cluster.execute(PauseMember("n2"))
    cluster.call("n1", Put("m", "k", b"v"))
    records += run_to(cluster, clock, 4 * SECOND_US)
    cluster.execute(ResumeMember("n2"))
    records += run_to(cluster, clock, 9 * SECOND_US)
    cluster.writable = False
    fork = cluster.fork(5_432_100)
    request.addfinalizer(fork.close)
    assert not fork.writable, "who may only look may only look at forks"
    forked = run_to(fork, clock, 5_432_100)
    assert fork.now_us() == 5_432_100 and fork.started.result(0) is None and fork.commands == cluster.commands
    assert nameless(forked, 5_432_100) == nameless(records, 5_432_100)
    forked += run_to(fork, clock, 9 * SECOND_US, 77_777)
    assert nameless(forked, 9 * SECOND_US) == nameless(records, 9 * SECOND_US)
    cluster.pause()
    fork.pause()
    later_us = max(cluster.now_us(), fork.now_us()) + SECOND_US
    for each in (cluster, fork):
        each.run_on(later_us - each.now_us())
        each.drain()
    assert cluster.fingerprint() == fork.fingerprint()
    with pytest.raises(ValueError, match="not a moment of this run"):
        cluster.fork(later_us + 1)


def test_a_fork_with_a_command_is_a_run_with_that_command(
    make: Make, clock: Steady, request: pytest.FixtureRequest
) -> None:
    cluster = make()
    run_to(cluster, clock, 8 * SECOND_US)
    fork = cluster.fork(4 * SECOND_US, KillMember("n1"))
    request.addfinalizer(fork.close)
    forked = run_to(fork, clock, 12 * SECOND_US)
    fresh = make()
    records = run_to(fresh, clock, 4 * SECOND_US)
    assert fresh.now_us() == 4 * SECOND_US
    fresh.execute(KillMember("n1"))
    records += run_to(fresh, clock, 12 * SECOND_US)
    assert nameless(forked, 12 * SECOND_US) == nameless(records, 12 * SECOND_US)
    assert fork.commands == fresh.commands == [ScheduledCommand(4 * SECOND_US, KillMember("n1"))]
    refused = cluster.fork(4 * SECOND_US, StartMember("n1"))
    request.addfinalizer(refused.close)
    run_to(refused, clock, 4 * SECOND_US + 1)
    with pytest.raises(CommandRefused):
        refused.started.result(0)


@pytest.mark.parametrize("seed", long_after(3, range(6)))
def test_equal_commands_at_equal_moments_are_one_run(make: Make, clock: Steady, seed: int) -> None:
    draws = Random(seed)
    options: list[Command] = [
        KillMember("n1"), StartMember("n1"), PauseMember("n2"), ResumeMember("n2"), CutLink(("n1",), ("n2",)), Heal(),
        CallMap("n3", Put("m", "k", b"v")), CallMap("n1", Get("m", "k")), StartMember("n2"), KillMember("n3"),
    ]  # fmt: skip
    one = make(seed, speed=draws.choice((0.5, 3.0, 20.0)))
    records: list[Record] = []
    while one.now_us() < 20 * SECOND_US:
        clock.now_us += draws.randrange(1, 300_000)
        if draws.random() < 0.2:
            one.execute(draws.choice(options))
        records += one.drain()
    end_us = one.now_us()
    other = make(seed, scheduled=one.commands, catch_up_us=end_us)
    again = run_to(other, clock, end_us)
    other.drain()
    assert nameless(again, end_us) == nameless(records, end_us)
    assert (other.now_us(), other.fingerprint()) == (end_us, one.fingerprint())


def test_an_hour_is_held_in_bounds(make: Make, clock: Steady) -> None:
    cluster = make(speed=1_000.0)
    picture, records = Picture(), 0
    while cluster.now_us() < 3_600 * SECOND_US:
        clock.now_us += SECOND_US
        for record in cluster.drain():
            picture.apply(record)
            records += 1
    assert records < 20_000 and len(picture.members) == 3
    assert not cluster._fresh and not cluster._settled and not cluster._calls and not cluster._run_state.recent
    assert len(cluster._world.network.queue) < 100
