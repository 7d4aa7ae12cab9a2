"""What the picture says of memories and searches is what the members themselves hold, in simulated runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.core.membership.split_brain.cluster_search import SEARCH
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.picture.fold.belief import SearchPlan
from quarterdeck.backend.scenarios.format.reading import load_scenario, read_scenario
from quarterdeck.backend.scenarios.format.scenario import Scenario
from quarterdeck.backend.scenarios.interpreter import Interpreter
from quarterdeck.backend.scenarios.run_state import RunState
from quarterdeck.backend.simulation.simulated_driver import SimulatedDriver

LOOK_US = SECOND_US // 4
SCENARIOS = Path(__file__).parents[2] / "scenarios"


class Watched(SimulatedDriver):
    """Compares picture and members four times a second."""

    def __init__(self, scenario: Scenario) -> None:
        self.told: list[Record] = []
        self.run_state = RunState(self)
        super().__init__(scenario, 1, self.run_state)
        self.plans = 0
        self.compared = 0

    def append(self, record: Record) -> None:
        """The journal of the run."""
        self.told.append(record)

    def advance(self, by_us: int) -> None:
        end_us = self.world.now_us + by_us
        while True:
            super().advance(max(0, min(LOOK_US, end_us - self.world.now_us)))
            self._compare()
            if self.world.now_us >= end_us:
                return

    def _compare(self) -> None:
        for label, node in self.world.nodes.items():
            belief = self.run_state.picture.members.get(label)
            if node.machine is None or belief is None:
                continue
            state = node.machine.inspect()
            remembered = {
                address for address in state.remembered if address not in state.peers and address != state.address
            }
            assert {address for address in belief.remembered if address not in belief.listed} == remembered, label
            self.compared += len(remembered)
            due_us = state.timers.deadline_us(SEARCH)
            if belief.search is not None and state.is_master and due_us is not None and not node.paused:
                off_us = (due_us - belief.search.first_us) % belief.search.every_us
                assert min(off_us, belief.search.every_us - off_us) <= belief.search.every_us // 4
                self.plans += 1


@pytest.mark.parametrize(
    "name",
    [
        "issue-17489",
        "held-back-across-masters",
        "frozen-side",
        "one-way-cut",
        "join-list-edit",
        "crash-in-merge",
        "figure-5",
    ],
)
def test_memories_are_those_of_the_members(name: str) -> None:
    scenario = load_scenario(SCENARIOS / f"{name}.yaml")
    stage = Watched(scenario)
    Interpreter(scenario, stage, stage.run_state, seed=1).play()
    forgetful = scenario.timing().address_retention_us == 0
    assert bool(stage.compared) != forgetful and stage.plans


def test_what_is_of_no_use_for_too_long_is_forgotten() -> None:
    scenario = read_scenario(
        "title: T\nmembers: [a, b, c]\n"
        "settings: {hazelcast.tcp.join.previously.joined.member.address.retention.seconds: 20}\n"
        "steps:\n  - expect: {within: 15s, one-cluster: true}\n  - do: {kill: c}\n  - do: {wait: 15s}\n"
        "  - do: {wait: 30s}\n  - expect: {event: {kind: addresses-remembered, member: a}}\n",
        "t.yaml",
    )
    stage = Watched(scenario)
    (_, told) = Interpreter(scenario, stage, stage.run_state, seed=1).play()
    assert told.met
    beliefs = stage.run_state.picture.members
    assert not beliefs["a"].remembered, "the master has looked, and found it too old"
    assert list(beliefs["b"].remembered) == [beliefs["c"].address], "b does not look, so it has not noticed"


def test_a_search_is_told_once_for_each_mastership() -> None:
    scenario = read_scenario(
        "title: T\nmembers: [a, b]\nsteps:\n  - expect: {within: 15s, one-cluster: true}\n  - do: {wait: 200s}\n"
        "  - do: {kill: a}\n  - do: {wait: 200s}\n",
        "t.yaml",
    )
    stage = Watched(scenario)
    Interpreter(scenario, stage, stage.run_state, seed=1).play()
    told = [record for record in stage.told if isinstance(record.event, events.SearchPlanned)]
    assert [record.member for record in told] == ["a", "b"]
    assert told[0].event == events.SearchPlanned(5 * SECOND_US, 3 * SECOND_US)


def test_the_next_search_follows_from_the_first() -> None:
    plan = SearchPlan(10, 3)
    assert [plan.next_us(now) for now in (0, 10, 11, 13, 14, 100)] == [10, 10, 13, 13, 16, 100]
    assert SearchPlan(10, 0).next_us(50) == 10
