"""The shrinker: on artificial failures it finds the least, on any it keeps failing, and what it writes can be read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from quarterdeck.backend.core.membership.views import publishing
from quarterdeck.backend.scenarios.format.reading import read_scenario
from quarterdeck.backend.scenarios.format.scenario import Scenario
from quarterdeck.backend.scenarios.format.writing import scenario_tree
from quarterdeck.backend.simulation.swarm_testing.drawing import draw_scenario
from quarterdeck.backend.simulation.swarm_testing.shrinking import fails_alike, shrink, shrunk_text, with_ending
from quarterdeck.backend.simulation.swarm_testing.trial import run_trial


def actions(scenario: Scenario) -> list[str]:
    return [step.do.name for step in scenario.steps if step.do is not None]


def biggest(fails: Callable[[Scenario], bool] = lambda _: True) -> Scenario:
    return next(
        drawn.scenario
        for drawn in (draw_scenario(seed, (4, 6)) for seed in range(1, 600))
        if {"crash", "pause", "clock drift", "latency"} <= set(drawn.faults) and fails(drawn.scenario)
    )


def test_what_a_failure_does_not_need_is_left_out() -> None:
    """It fails when somebody is killed after somebody was paused: two steps remain, of one member each."""

    def fails(scenario: Scenario) -> bool:
        names = actions(scenario)
        return "pause" in names and "kill" in names[names.index("pause") :]

    small = shrink(biggest(fails), fails)
    assert actions(small) == ["pause", "kill"]
    assert len(small.members) == 1
    assert set(scenario_tree(small)) == {"title", "members", "steps"}
    actions_done: list[Any] = [step.do for step in small.steps if step.do is not None]
    assert all(len(action.pause or action.kill or ()) == 1 for action in actions_done)


def test_settings_and_waits_become_as_plain_as_the_failure_allows() -> None:
    def fails(scenario: Scenario) -> bool:
        waited_us = sum(step.do.wait for step in scenario.steps if step.do is not None)
        return waited_us >= 1_500_000 and scenario.timing().heartbeat_topology == "ring"

    ring = next(drawn.scenario for drawn in map(draw_scenario, range(1, 200)) if fails(drawn.scenario))
    small = shrink(ring, fails)
    assert scenario_tree(small)["settings"] == {"quarterdeck.heartbeat.topology": "ring"}
    assert actions(small) == ["wait"]
    assert small.steps[0].do is not None and 1_500_000 <= small.steps[0].do.wait < 3_000_000


def test_the_search_ends_when_its_attempts_are_spent() -> None:
    asked = 0

    def fails(scenario: Scenario) -> bool:
        nonlocal asked
        asked += 1
        return len(scenario.steps) > 3

    shrink(biggest(), fails, most_attempts=25)
    assert asked == 25


def test_no_scenario_is_asked_for_twice() -> None:
    seen: list[str] = []

    def fails(scenario: Scenario) -> bool:
        seen.append(scenario.model_dump_json())
        return "kill" in actions(scenario)

    shrink(biggest(), fails)
    assert len(seen) == len(set(seen))


def test_a_crash_of_the_core_is_found_shrunk_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The core is broken on purpose: its master cannot publish a list without n2."""

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("broken on purpose")

    monkeypatch.setattr(publishing, "publish", broken)
    seed = 9
    scenario = draw_scenario(seed).scenario
    trial = run_trial(scenario, seed)
    assert trial.verdict == "crash"
    assert "broken on purpose" in trial.text
    small = shrink(scenario, fails_alike(trial))
    assert len(small.steps) == 1 and len(small.members) <= 2
    text = shrunk_text(run_trial(small, seed), small)
    assert text.startswith(f"# Under seed {seed}: crash: RuntimeError: broken on purpose\n")
    assert read_scenario(text, "t.yaml") == small


def test_a_scenario_that_does_not_converge_is_written_with_its_ending() -> None:
    text = "title: T\nmembers: [a, b, c]\nsteps: [do: {pause: [a, b]}, do: {wait: 2s}, do: {kill: b}, do: {pause: c}]\n"
    ending = [step.do.text() for step in with_ending(read_scenario(text, "t.yaml")).steps[4:] if step.do is not None]
    assert ending == ["heal", "resume a, c"]


def test_livelocks_have_a_verdict_and_empty_clusters_are_started_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "title: T\nmembers: [a]\nsteps: [do: {kill: a}]\n"
    empty = run_trial(read_scenario(text, "t.yaml"), 1)
    assert (empty.verdict, empty.added) == ("ok", ({"do": {"start": ["a"]}},))
    for name in ("MOST_EVENTS_A_SECOND", "MOST_EVENTS_A_PARTITION"):
        monkeypatch.setattr(f"quarterdeck.backend.simulation.swarm_testing.trial.{name}", 0)
    busy = run_trial(read_scenario("title: T\nmembers: 9\nsteps: [do: {wait: 5s}]\n", "t.yaml"), 1)
    assert (busy.verdict, busy.invariant) == ("violation", "no livelock")


def test_clusters_that_can_never_meet_do_not_converge(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "quarterdeck.backend.simulation.swarm_testing.trial._TrialRun._heal_everything", lambda trial_run: None
    )
    text = "title: T\nmembers: [a, b]\nsteps: [do: {partition: [[a], [b]]}, do: {wait: 20s}]\n"
    trial = run_trial(read_scenario(text, "t.yaml"), 1)
    assert trial.verdict == "no-convergence"
    assert "different lists among 2 members" in trial.text
    assert trial.virtual_seconds > trial.bound_seconds
