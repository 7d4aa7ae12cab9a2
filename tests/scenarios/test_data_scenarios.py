"""Scenarios that use data: how they are written, played and judged."""

from __future__ import annotations

import pytest

from quarterdeck.backend.core.commands import ArrangePartitions, CallMap, KillAt
from quarterdeck.backend.core.operations import Get, Put, Remove
from quarterdeck.backend.scenarios.format.actions import LoadAction
from quarterdeck.backend.scenarios.format.reading import BadScenario, read_scenario
from quarterdeck.backend.scenarios.outcome import Outcome
from quarterdeck.backend.scenarios.workload import Workloads, planned_calls
from quarterdeck.backend.simulation.simulated_driver import simulate
from tests.scenarios.test_reading import commands, step

HEAD = "title: T\nmembers: [athens, byzantium, cyrene]\nsettings: {hazelcast.partition.count: 7}\nsteps:\n"


def run(*steps: str, seed: int = 1) -> Outcome:
    return simulate(read_scenario(HEAD + "".join(f"  - {step}\n" for step in steps), "t.yaml"), seed)


def met(outcome: Outcome) -> list[bool]:
    return [expectation.met for expectation in outcome.expectations]


def test_actions_on_data_are_commands() -> None:
    assert commands("{arrange: athens}") == [ArrangePartitions("athens")]
    assert commands("{put: {at: athens, map: m, key: k, value: v}}") == [CallMap("athens", Put("m", "k", b"v"))]
    assert commands("{get: {at: cyrene, key: k}}") == [CallMap("cyrene", Get("map", "k"))]
    assert commands("{remove: {at: cyrene, map: m, key: k}}") == [CallMap("cyrene", Remove("m", "k"))]
    assert commands("{load: {at: athens, for: 5s}}") == commands("{wait-until-safe: {within: 5s}}") == []
    assert commands("{kill-at: {athens: claim-started}}") == [KillAt("athens", "claim-started")]
    after = "{kill-at: {athens: {event: migration-decided, after: true}}}"
    assert commands(after) == [KillAt("athens", "migration-decided", after=True)]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("do: {put: {at: athens, key: k}}", "step 1, do.put.value: is missing"),
        ("do: {put: {at: athen, key: k, value: v}}", "did you mean athens?"),
        ("do: {get: {at: athens, key: k, kee: k}}", "did you mean key?"),
        ("do: {load: {at: athens, keys: 0, for: 1s}}", "do.load.keys"),
        ("do: {load: {at: athens, for: 1s, reads: 0.6, removes: 0.6}}", "must not exceed 1"),
        ("do: {kill-at: {athens: {event: claim-startet}}}", "did you mean claim-started?"),
        ("do: {kill-at: {athens: {event: claim-started, afer: true}}}", "did you mean after?"),
        ("expect: {table: {0: [athen]}}", "did you mean athens?"),
        ("expect: {migrations: {at-most: 1, at-mots: 1}}", "did you mean at-most?"),
        ("expect: {value: {key: k}}", "expect.value.is: is missing"),
        ("expect: {no-lost-writes: false}", "expect.no-lost-writes"),
    ],
)
def test_mistakes_are_told_with_their_field(text: str, problem: str) -> None:
    with pytest.raises(BadScenario) as found:
        step(text)
    assert problem in str(found.value)


def test_a_workload_is_drawn_from_the_seed_with_values_of_its_own() -> None:
    load = LoadAction.model_validate(
        {"at": ["athens", "cyrene"], "for": "10s", "rate": 100, "reads": 0.3, "removes": 0.1}
    )
    calls = list(planned_calls(load, 5, "w1", seed=1))
    assert calls == list(planned_calls(load, 5, "w1", seed=1)) != list(planned_calls(load, 5, "w1", seed=2))
    assert [at for at, _ in calls] == [5 + 10_000 * number for number in range(1000)]
    puts = [call.operation for _, call in calls if isinstance(call.operation, Put)]
    assert len({put.value for put in puts}) == len(puts)
    assert 500 < len(puts) < 700
    assert {call.member for _, call in calls} == {"athens", "cyrene"}


def test_what_a_workload_writes_is_read_back_through_the_same_member_and_nothing_else_changes() -> None:
    plain = LoadAction.model_validate({"at": ["athens", "cyrene"], "for": "2s", "rate": 10, "removes": 0.2})
    calls = list(planned_calls(plain, 0, "w1", seed=1))
    every = list(planned_calls(plain.model_copy(update={"read_back_us": 250_000}), 0, "w1", seed=1))
    assert [at for at, _ in every] == sorted(at for at, _ in every)
    writes = [(at, call) for at, call in calls if isinstance(call.operation, Put | Remove)]
    read_back = [step for step in every if step not in calls]
    assert read_back == [
        (at + 250_000, CallMap(call.member, Get(call.operation.map, call.operation.key))) for at, call in writes
    ]
    assert [step for step in every if step in calls] == calls


def test_workloads_go_on_side_by_side_in_order_of_time() -> None:
    load = LoadAction.model_validate({"at": ["athens"], "for": "1s", "rate": 10})
    both = Workloads(1)
    both.begin(load, 0)
    first = [both.due(450_000) for _ in range(6)]
    assert [answer is not None for answer in first] == [True] * 5 + [False]
    both.begin(load, 450_000)
    rest = []
    while (planned := both.due(10_000_000)) is not None:
        rest.append(planned[0])
    assert rest == sorted(rest)
    assert len(rest) == 5 + 10


def test_a_scenario_with_data_is_played_and_judged() -> None:
    outcome = run(
        "expect: {safe: false}",
        "do: {put: {at: athens, map: m, key: k, value: v}}",
        "expect: {within: 5s, event: {kind: call-finished, key: k, problem: ''}, safe: true, balanced: true}",
        "do: {get: {at: cyrene, map: m, key: k}}",
        "expect: {within: 5s, value: {map: m, key: k, is: v}, migrations: {at-most: 0}}",
        "do: {load: {at: [athens, byzantium], map: m, keys: 5, rate: 20, for: 30s}}",
        "do: {kill: cyrene}",
        "do: {wait: 10ms}",
        "do: {wait-until-safe: {within: 30s}}",
        "expect: {safe: true, no-lost-writes: true}",
        "do: {get: {at: athens, map: m, key: nothing}}",
        "expect: {within: 5s, value: {map: m, key: nothing, is: null}}",
    )
    assert [expectation.missing for expectation in outcome.expectations] == [""] * 5
    assert outcome.violations == ()
    assert outcome.table.version >= 7


def test_data_that_is_not_safe_in_time_is_a_failure() -> None:
    outcome = run(
        "do: {arrange: athens}",
        "do: {wait: 1s}",
        "do: {wait-until-safe: {within: 10s}}",
        "do: {kill: cyrene}",
        "do: {wait: 10ms}",
        "do: {wait-until-safe: {within: 100ms}}",
    )
    (failed,) = outcome.expectations
    assert (
        not failed.met and failed.text == "do wait until all data is safe, at most 100ms" and "cyrene" in failed.missing
    )


def test_what_is_missing_is_said() -> None:
    outcome = run(
        "do: {arrange: athens}",
        "expect: {within: 1s, table: {0: [cyrene]}}",
        "expect: {balanced: false}",
        "expect: {value: {key: k, is: v}}",
        "do: {kill: cyrene}",
        "expect: {migrations: {at-most: 1000}, safe: true}",
        "expect: {within: 20s, safe: true, migrations: {at-most: 0}}",
        "do: {partition: [[athens], [byzantium]]}",
        "do: {put: {at: athens, key: k, value: v}}",
        "do: {wait: 20s}",
        "expect: {no-lost-writes: true}",
    )
    missing = [expectation.missing for expectation in outcome.expectations]
    assert "held by athens, byzantium; expected cyrene" in missing[0]
    assert missing[1:3] == ["the table is balanced", "no get of k of map has ended since the last action"]
    assert "cyrene holds partition" in missing[3]
    assert "migrations have begun since the last action; expected 0 at most" in missing[4]
    assert "cannot be judged" in missing[5]


def test_a_run_that_uses_no_data_has_no_table() -> None:
    outcome = run("do: {wait: 5s}", "do: {kill: cyrene}", "expect: {within: 20s, one-cluster: true}")
    assert outcome.table.version == 0
    assert met(outcome) == [True]
