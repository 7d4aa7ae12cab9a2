"""Swarm runs: repeatable anywhere, written and read back, with every kind of fault, and no failures among a few."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache

import pytest

from quarterdeck.backend.core.properties import Settings
from quarterdeck.backend.invariants.convergence import convergence_bound_us, convergence_terms_us, table_bound_us
from quarterdeck.backend.scenarios.format.reading import read_scenario
from quarterdeck.backend.scenarios.format.writing import scenario_of_tree, scenario_text, scenario_tree
from quarterdeck.backend.simulation.swarm_testing.drawing import (
    GREAT_PARTITIONS,
    LATENCY_FAULT,
    PARTITIONS,
    draw_scenario,
)
from quarterdeck.backend.simulation.swarm_testing.fault_kinds import FAULTS
from quarterdeck.backend.simulation.swarm_testing.migration_rounds import MIGRATION_POINTS
from quarterdeck.backend.simulation.swarm_testing.shrinking import fails_alike, shrink, shrunk_text, with_ending
from quarterdeck.backend.simulation.swarm_testing.trial import FAILURES, run_seed, run_trial
from tests.invariants.test_partition_mutations import owners_answer_before_their_backups_have_it
from tests.thoroughness import long_after

SIZES = (3, 7)
REPEATED = (1, 3, 6, 20)
"""Seeds that between them have drift, jumps, duplicates, filters, tails, pauses, cuts, states and late starters."""

drawn_once = cache(draw_scenario)
"""Several tests look at what the same hundreds of seeds draw."""


def run_as_written() -> str:
    """What the trials of the scenarios say that are written to a file and read from it."""
    texts = {seed: scenario_text(draw_scenario(seed, SIZES).scenario) for seed in REPEATED}
    return "\n".join(str(run_trial(read_scenario(text, "t.yaml"), seed)) for seed, text in texts.items())


def test_one_seed_is_one_run_in_any_process_under_any_hash_seed_and_from_its_file() -> None:
    had = {fault for seed in REPEATED for fault in draw_scenario(seed, SIZES).faults}
    assert had >= {
        "clock drift",
        "clock jump",
        "duplication",
        "drop kinds",
        LATENCY_FAULT,
        "pause",
        "join storm",
        "loss",
        "one-way cut",
        "state change",
    }
    program = "from tests.simulation.swarm_testing.test_swarm import run_as_written; print(run_as_written())"
    told = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONHASHSEED": "77", "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    assert told.splitlines() == [str(run_seed(seed, SIZES)) for seed in REPEATED]


@pytest.mark.parametrize("seed", REPEATED)
def test_a_drawn_scenario_is_read_back_equal(seed: int) -> None:
    scenario = draw_scenario(seed, SIZES).scenario
    assert read_scenario(scenario_text(scenario), "t.yaml") == scenario


def test_every_drawn_scenario_can_be_read_back() -> None:
    for seed in range(60):
        scenario = drawn_once(seed).scenario
        assert scenario_of_tree(scenario_tree(scenario)) == scenario


def test_every_kind_of_fault_occurs_among_the_first_300_seeds() -> None:
    counts = dict.fromkeys((*FAULTS, LATENCY_FAULT), 0)
    for seed in range(1, 301):
        for fault in drawn_once(seed).faults:
            counts[fault] += 1
    assert min(counts.values()) >= 30, counts


def test_runs_differ_in_size_and_in_settings() -> None:
    scenarios = [drawn_once(seed).scenario for seed in range(1, 301)]
    assert {len(scenario.members) for scenario in scenarios} == set(range(3, 21))
    settings = [scenario.timing() for scenario in scenarios]
    assert {setting.disconnection_heartbeats for setting in settings} == {0, 3, 5}
    assert {setting.failure_detector for setting in settings} == {"deadline", "phi-accrual"}
    assert {setting.heartbeat_topology for setting in settings} == {"all", "ring"}
    assert all(setting.helpful_answers for setting in settings)
    assert {setting.backups for setting in settings} == set(range(7))
    assert set(PARTITIONS) < {setting.partition_count for setting in settings} <= {*PARTITIONS, *GREAT_PARTITIONS}
    assert {setting.partition_groups for setting in settings} == {"per-member", "zone-aware", "host-aware"}
    assert len({setting.merge_policy for setting in settings}) == 6
    assert {min(len(set(scenario.zones.values())), 4) for scenario in scenarios} == set(range(5))
    assert {len(scenario.lite) > 0 for scenario in scenarios} == {False, True}
    assert all(any(step.do and step.do.load for step in scenario.steps) for scenario in scenarios)


def test_every_point_of_a_migration_is_drawn_before_and_after() -> None:
    points = set()
    for seed in range(1, 301):
        for step in drawn_once(seed).scenario.steps:
            kill_at = getattr(step.do, "kill_at", None)
            points |= {(point.event, point.after) for point in (kill_at or {}).values()}
    assert points >= {(event, after) for event in MIGRATION_POINTS for after in (False, True)}


def test_actions_make_sense_when_their_turn_comes() -> None:
    """Somebody always runs, and nobody is resumed who was not paused."""
    for seed in range(60):
        scenario = drawn_once(seed).scenario
        down, paused = set(scenario.late), set[str]()
        for step in scenario.steps:
            if step.do is None:
                continue
            whom: set[str] = set(getattr(step.do, step.do.name) or ()) if step.do.name in WORDS else set()
            match step.do.name:
                case "start":
                    assert whom <= down
                    down -= whom
                case "kill" | "stop":
                    assert not whom & down
                    down |= whom
                    paused -= whom
                case "restart":
                    down -= whom
                    paused -= whom
                case "pause":
                    assert not whom & (down | paused)
                    paused |= whom
                case "resume":
                    assert whom <= paused
                    paused -= whom
            assert len(down | paused) < len(scenario.members)
        assert not paused


WORDS = ("start", "stop", "kill", "restart", "pause", "resume")


@pytest.mark.parametrize("seeds", long_after(1, (range(1, 6), range(6, 31), range(31, 61))))
def test_a_small_swarm_finds_nothing(seeds: range) -> None:
    trials = [run_seed(seed) for seed in seeds]
    failed = [(trial.seed, trial.verdict, trial.invariant, trial.text) for trial in trials if trial.verdict in FAILURES]
    assert failed == []
    assert all(trial.converged_seconds is not None for trial in trials if trial.verdict == "ok")
    assert all(trial.writes.survived for trial in trials if trial.verdict == "ok")
    assert sum(trial.verdict == "unknown" for trial in trials) <= 1


def test_a_failure_with_data_is_shrunk_and_fails_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    owners_answer_before_their_backups_have_it(monkeypatch)
    found = (run_seed(seed, SIZES) for seed in range(1, 60))
    trial = next(trial for trial in found if trial.invariant == "no lost write")
    drawn = draw_scenario(trial.seed, SIZES).scenario
    small = shrink(drawn, fails_alike(trial), most_attempts=10)
    assert len(small.steps) < len(drawn.steps)
    again = run_trial(small, trial.seed)
    assert again.invariant == "no lost write"
    assert "no lost write" in shrunk_text(trial, small)
    assert with_ending(small, again.added).steps[-1].expect is not None


def test_the_bound_grows_with_the_settings_and_with_the_members() -> None:
    training = Settings.of(preset="training")
    patient = training.with_properties({"hazelcast.merge.next.run.delay.seconds": 60})
    assert convergence_bound_us(training, 5) < convergence_bound_us(training, 20) < convergence_bound_us(patient, 20)
    assert convergence_bound_us(training, 5) > sum(convergence_terms_us(training, 5).values())
    assert all(term >= 0 for term in convergence_terms_us(training, 1).values())
    pausing = training.with_properties(
        {"hazelcast.partition.count": 271, "hazelcast.partition.migration.interval": 0.5}
    )
    assert table_bound_us(pausing) - table_bound_us(training) > 271 * (1 + training.backups) * 500_000
