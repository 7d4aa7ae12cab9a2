"""Swarm runs: repeatable anywhere, written and read back, with every kind of fault, and no failures among a few."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from quarterdeck.backend.core.properties import Settings
from quarterdeck.backend.simulation.scenarios.reading import read_scenario
from quarterdeck.backend.simulation.scenarios.writing import scenario_of_tree, scenario_text, scenario_tree
from quarterdeck.backend.simulation.swarm_testing.convergence import convergence_bound_us, convergence_terms_us
from quarterdeck.backend.simulation.swarm_testing.drawing import LATENCY_FAULT, draw_scenario
from quarterdeck.backend.simulation.swarm_testing.fault_kinds import FAULTS
from quarterdeck.backend.simulation.swarm_testing.trial import FAILURES, run_seed, run_trial
from tests.thoroughness import long_after

SIZES = (3, 7)
REPEATED = (2, 5, 46, 59, 79)
"""Seeds that between them have drift, jumps, duplicates, filters, tails, pauses and late starters."""


def fingerprints() -> str:
    return " ".join(run_seed(seed, SIZES).fingerprint for seed in REPEATED)


def test_one_seed_is_one_run_in_any_process_and_under_any_hash_seed() -> None:
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
    }
    program = "from tests.simulation.swarm_testing.test_swarm import fingerprints; print(fingerprints())"
    told = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for hash_seed in ("0", "77")
    }
    assert told == {fingerprints()}


@pytest.mark.parametrize("seed", REPEATED)
def test_a_drawn_scenario_is_read_back_equal_and_runs_the_same(seed: int) -> None:
    scenario = draw_scenario(seed, SIZES).scenario
    again = read_scenario(scenario_text(scenario), "t.yaml")
    assert again == scenario
    assert run_trial(again, seed) == run_seed(seed, SIZES)


def test_every_drawn_scenario_can_be_read_back() -> None:
    for seed in range(60):
        scenario = draw_scenario(seed).scenario
        assert scenario_of_tree(scenario_tree(scenario)) == scenario


def test_every_kind_of_fault_occurs_among_the_first_300_seeds() -> None:
    counts = dict.fromkeys((*FAULTS, LATENCY_FAULT), 0)
    for seed in range(1, 301):
        for fault in draw_scenario(seed).faults:
            counts[fault] += 1
    assert min(counts.values()) >= 30, counts


def test_runs_differ_in_size_and_in_settings() -> None:
    scenarios = [draw_scenario(seed).scenario for seed in range(1, 301)]
    assert {len(scenario.members) for scenario in scenarios} == set(range(3, 21))
    settings = [scenario.timing() for scenario in scenarios]
    assert {one.disconnection_heartbeats for one in settings} == {0, 3, 5}
    assert {one.failure_detector for one in settings} == {"deadline", "phi-accrual"}
    assert {one.heartbeat_topology for one in settings} == {"all", "ring"}
    assert all(one.helpful_answers for one in settings)


def test_actions_make_sense_when_their_turn_comes() -> None:
    """Somebody always runs, and nobody is resumed who was not paused."""
    for seed in range(60):
        scenario = draw_scenario(seed).scenario
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


@pytest.mark.parametrize("first", long_after(1, range(1, 61, 15)))
def test_a_small_swarm_finds_nothing(first: int) -> None:
    trials = [run_seed(seed) for seed in range(first, first + 15)]
    failed = [(trial.seed, trial.verdict, trial.invariant, trial.text) for trial in trials if trial.verdict in FAILURES]
    assert failed == []
    assert all(trial.converged_seconds is not None for trial in trials if trial.verdict == "ok")


def test_the_bound_grows_with_the_settings_and_with_the_members() -> None:
    training = Settings.of(preset="training")
    patient = training.with_properties({"hazelcast.merge.next.run.delay.seconds": 60})
    assert convergence_bound_us(training, 5) < convergence_bound_us(training, 20) < convergence_bound_us(patient, 20)
    assert convergence_bound_us(training, 5) > sum(convergence_terms_us(training, 5).values())
    assert all(term >= 0 for term in convergence_terms_us(training, 1).values())
