"""Scenarios in virtual time: the outcome's shape, its repeatability, and how steps are taken."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from quarterdeck.backend.core.commands import Command
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.picture.explain.causes import direct_causes
from quarterdeck.backend.scenarios.format.reading import load_scenario, read_scenario
from quarterdeck.backend.scenarios.format.scenario import ScenarioStep
from quarterdeck.backend.scenarios.format.writing import scenario_text
from quarterdeck.backend.scenarios.interpreter import Interpreter
from quarterdeck.backend.scenarios.outcome import Outcome, StepOutcome
from quarterdeck.backend.scenarios.run_state import RunState
from quarterdeck.backend.simulation.simulated_driver import SimulatedDriver, simulate
from tests.picture.explain.unnamed_causes import assert_causes_are_named
from tests.picture.played_scenarios import MemoryJournal, index_of
from tests.thoroughness import long_after

SCENARIOS = sorted((Path(__file__).parent).glob("*.yaml"))

SLOW = {"p-out-of-step-slow-writes"}
"""It takes as long as twenty others; `p-out-of-step-is-over` differs in what makes backups miss writes."""

loaded = cache(load_scenario)
"""Reading a file takes as long as playing it."""


def run(steps: str, seed: int = 1) -> Outcome:
    return simulate(read_scenario(f"title: T\nmembers: [athens, byzantium, cyrene]\nsteps:\n{steps}", "t.yaml"), seed)


PLAYED = [pytest.param(path, id=path.stem, marks=[pytest.mark.long] * (path.stem in SLOW)) for path in SCENARIOS]


@pytest.mark.parametrize("path", PLAYED)
@pytest.mark.parametrize("seed", long_after(1, range(3)))
def test_acceptance_scenarios_pass_under_several_seeds(path: Path, seed: int) -> None:
    """And whatever happens in them has its causes before it: messages from others, all else from the member itself."""
    recorder = MemoryJournal()
    outcome = simulate(loaded(path), seed, recorder)
    assert [step for step in outcome.expectations if not step.met] == []
    assert outcome.violations == ()
    assert outcome.passed
    event_index = index_of(recorder.records)
    assert_causes_are_named(recorder.records)
    for place, record in enumerate(event_index.records):
        for because in direct_causes(event_index, record):
            cause_place = event_index.place_of(because.record)
            assert cause_place is not None and cause_place < place
            assert because.reason and because.reason.isprintable()
            if because.message:
                assert because.record.member != record.member


@pytest.mark.parametrize("path", SCENARIOS, ids=[path.stem for path in SCENARIOS])
def test_every_scenario_is_written_and_read_back(path: Path) -> None:
    assert read_scenario(scenario_text(loaded(path)), "t.yaml") == loaded(path)


REPORTED = [path for path in SCENARIOS if path.stem.startswith("issue-")]
WITHOUT_IMPROVEMENTS = {
    "quarterdeck.split.brain.answers.enabled": False,
    "hazelcast.tcp.join.previously.joined.member.address.retention.seconds": 0,
}


@pytest.mark.parametrize("path", REPORTED, ids=[path.stem for path in REPORTED])
def test_reported_splits_do_not_heal_without_the_improvements(path: Path) -> None:
    """Split-brain Recovery Improvements: what these four scenarios show was wrong before remembered addresses and helpful
    answers."""
    scenario = loaded(path)
    settings = {**scenario.settings, **WITHOUT_IMPROVEMENTS}
    outcome = simulate(scenario.model_copy(update={"settings": settings}), 1)
    assert [step.met for step in outcome.expectations[:-1]].count(False) == 0
    assert not outcome.expectations[-1].met, "it healed without them"
    assert outcome.violations == ()


def test_one_seed_is_one_run() -> None:
    steps = "  - do: {kill: athens}\n  - expect: {within: 10s, masters: {cyrene: byzantium}}\n"
    first, again, other = run(steps, 7), run(steps, 7), run(steps, 8)
    assert first == again
    assert first.fingerprint != other.fingerprint


def test_the_outcome_has_the_shape_of_the_design() -> None:
    outcome = run("  - expect: {within: 10s, one-cluster: true}\n").as_json()
    assert set(outcome) == {
        *("passed", "expectations", "violations", "members", "table"),
        *("virtual_seconds", "events", "messages", "fingerprint", "source"),
    }
    assert outcome["passed"] is True
    assert outcome["members"]["cyrene"] == {
        "master": "athens",
        "version": 3,
        "members": ["athens", "byzantium", "cyrene"],
        "suspected": [],
    }
    assert outcome["table"] == {"version": 0}
    assert set(outcome["expectations"][0]) == {"step", "text", "met", "at_seconds", "missing"}


def test_an_unmet_expectation_is_said_and_the_run_goes_on() -> None:
    outcome = run(
        "  - expect: {views: {athens: [athens]}}\n"
        "  - do: {wait: 2s}\n"
        "  - expect: {within: 3s, masters: {athens: cyrene}}\n"
        "  - expect: {one-cluster: true}\n"
    )
    first, second, third = outcome.expectations
    assert not outcome.passed
    assert first.missing == "athens's list is v3 athens, byzantium, cyrene; expected athens"
    assert (second.step, second.met) == (3, False)
    assert second.at_seconds == pytest.approx(first.at_seconds + 5)
    assert third.met


def test_a_refused_action_is_an_outcome() -> None:
    outcome = run("  - do: {resume: athens}\n")
    assert not outcome.passed
    assert outcome.expectations[0].text == "do resume athens"
    assert outcome.expectations[0].missing.startswith("refused: ")


def test_never_keeps_watch_for_the_whole_time_and_gives_up_at_once() -> None:
    quiet = run("  - do: heal\n  - expect: {within: 5s, never: suspicion-raised}\n").expectations[0]
    assert quiet.met and quiet.at_seconds >= 5
    loud = run("  - do: {kill: cyrene}\n  - expect: {within: 60s, never: member-removed}\n").expectations[0]
    assert not loud.met and loud.at_seconds < 10


def test_events_count_since_the_last_action_only() -> None:
    outcome = run(
        "  - do: {kill: cyrene}\n  - expect: {within: 9s, event: {kind: member-removed, address: cyrene}}\n"
        "  - do: {wait: 1s}\n  - expect: {event: {kind: member-removed}}\n"
        "  - do: heal\n  - expect: {event: {kind: member-removed}}\n"
    )
    assert [step.met for step in outcome.expectations] == [True, True, False]


def test_a_member_that_is_gone_has_no_beliefs_in_the_outcome() -> None:
    outcome = run("  - do: {kill: cyrene}\n  - expect: {within: 9s, removed: [cyrene]}\n")
    assert set(outcome.members) == {"athens", "byzantium"}


def test_the_journal_gets_every_record_in_order() -> None:
    class Pages:
        def __init__(self) -> None:
            self.records: list[Record] = []

        def append(self, record: Record) -> None:
            self.records.append(record)

    pages = Pages()
    scenario = read_scenario("title: T\nmembers: 3\nsteps: [{do: {kill: n1}}, {do: {wait: 9s}}]", "t.yaml")
    simulate(scenario, 1, pages, run="mine")
    assert {record.run for record in pages.records} == {"mine"}
    assert [record.at for record in pages.records] == sorted(record.at for record in pages.records)
    seqs: dict[str, list[int]] = {}
    for record in pages.records:
        seqs.setdefault(record.uuid, []).append(record.seq)
    assert all(seq == list(range(1, len(seq) + 1)) for seq in seqs.values())


def test_the_observer_hears_of_each_step() -> None:
    class Listener:
        def __init__(self) -> None:
            self.heard: list[tuple[str, int]] = []

        def begins(self, number: int, step: ScenarioStep) -> None:
            self.heard.append(("begins", number))

        def ends(self, number: int, step: ScenarioStep, outcome: StepOutcome | None) -> None:
            self.heard.append(("ends" if outcome is None else "ends with outcome", number))

    scenario = read_scenario("title: T\nmembers: 1\nsteps: [say: hi, expect: {one-cluster: true}]", "t.yaml")
    run_state, listener = RunState(), Listener()
    Interpreter(scenario, SimulatedDriver(scenario, 1, run_state), run_state, listener).play()
    assert listener.heard == [("begins", 1), ("ends", 1), ("begins", 2), ("ends with outcome", 2)]


def test_the_interpreter_needs_no_more_than_a_stage() -> None:
    """A stage on which nothing ever happens: expectations wait out their time."""

    class Stillness:
        def __init__(self) -> None:
            self.now = 0
            self.commands: list[Command] = []

        def start_members(self) -> None:
            pass

        def now_us(self) -> int:
            return self.now

        def execute(self, command: Command) -> None:
            self.commands.append(command)

        def advance(self, by_us: int) -> None:
            self.now += by_us

    stage = Stillness()
    scenario = read_scenario("title: T\nmembers: 2\nsteps: [expect: {within: 2s, one-cluster: true}]", "t.yaml")
    (outcome,) = Interpreter(scenario, stage, RunState()).play()
    assert outcome.missing == "no member is running; expected one cluster"
    assert stage.now == 2_000_000


def test_a_refusal_that_is_expected_is_no_failure() -> None:
    outcome = run(
        "  - do: {resume: athens}\n  - say: It is not paused.\n  - expect: {refused: not paused}\n"
        "  - do: {resume: athens}\n  - expect: {refused: unknown}\n"
        "  - do: heal\n  - expect: {refused: ''}\n"
    )
    assert [(step.step, step.met) for step in outcome.expectations] == [(3, True), (5, False), (7, False)]
    assert outcome.expectations[1].missing.startswith("the last command was refused for another reason: athens is not")
    assert outcome.expectations[2].missing == "the last command was not refused"


def test_late_members_wait_for_their_start() -> None:
    text = (
        "title: T\nmembers: [athens, byzantium, cyrene]\nlate: cyrene\nsteps:\n"
        "  - expect: {views: {athens: [athens, byzantium]}}\n  - do: {start: cyrene}\n"
        "  - expect: {within: 10s, views: {athens: [athens, byzantium, cyrene]}}\n"
    )
    outcome = simulate(read_scenario(text, "t.yaml"), 1)
    assert outcome.passed, outcome.expectations


def test_states_are_expected_of_every_member() -> None:
    outcome = run(
        "  - do: {change-state: {cyrene: FROZEN}}\n"
        "  - expect: {within: 10s, state: {athens: FROZEN, byzantium: FROZEN, cyrene: FROZEN}}\n"
        "  - expect: {state: {athens: ACTIVE}}\n"
    )
    assert [step.met for step in outcome.expectations] == [True, False]
    assert outcome.expectations[1].missing == "athens believes that the cluster is FROZEN; expected ACTIVE"


def test_latency_and_clocks_of_a_scenario_are_those_of_its_run() -> None:
    head = "title: T\nmembers: 3\n"
    steps = "steps: [expect: {within: 9s, one-cluster: true}, do: {wait: 30s}]\n"
    more = ["", "latency: {model: exponential, most: 300ms}\n", "clocks: {n2: {rate: 1.05}}\n"]
    outcomes = [simulate(read_scenario(head + step + steps, "t.yaml"), 1) for step in more]
    assert all(outcome.passed for outcome in outcomes)
    assert len({outcome.fingerprint for outcome in outcomes}) == 3
