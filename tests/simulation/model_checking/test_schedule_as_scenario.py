"""What a search has found is a scenario, too: `simulate` repeats it, to the same violation."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from quarterdeck.backend.core.commands import KillMember, StartMember
from quarterdeck.backend.core.membership.views.member_list import MemberList
from quarterdeck.backend.journal.writer import JournalWriter
from quarterdeck.backend.scenarios.format.actions import ScenarioAction
from quarterdeck.backend.scenarios.format.reading import BadScenario, read_scenario
from quarterdeck.backend.scenarios.format.scenario import Scenario
from quarterdeck.backend.scenarios.format.writing import action_tree, scenario_text
from quarterdeck.backend.simulation.model_checking.exploration import Explorer
from quarterdeck.backend.simulation.model_checking.model import Bounds, Model
from quarterdeck.backend.simulation.model_checking.reading import load_model, shipped_models
from quarterdeck.backend.simulation.model_checking.schedule import Schedule, ScheduledStep, as_scenario
from quarterdeck.backend.simulation.simulated_driver import simulate

CRASH = Model("crash", "The master may crash.", ("a", "b", "c"), Bounds(crashes=1, ticks=8))


def written_and_read(model: Model, *steps: ScheduledStep, invariant: str = "version") -> Scenario:
    text = scenario_text(as_scenario(model, Schedule(model.name, invariant, "It is so.", steps)))
    return read_scenario(text, "found.yaml")


def test_a_planted_fault_is_seen_again_and_not_without_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A removal does not bump the version of the list."""
    sound = MemberList.without
    monkeypatch.setattr(
        MemberList, "without", lambda self, gone: msgspec.structs.replace(sound(self, gone), version=self.version)
    )
    found = Explorer(CRASH, most_states=10_000).explore().found
    assert found is not None
    scenario = written_and_read(CRASH, *found.steps)
    assert any(step.schedule for step in scenario.steps)
    with JournalWriter(tmp_path, "found", "quarterdeck") as journal:
        outcome = simulate(scenario, 0, journal, run="found")
    assert not outcome.passed
    first = outcome.violations[0]
    assert (first.invariant, first.text) == (found.violation.invariant, found.violation.text)
    assert simulate(scenario, 0).fingerprint == simulate(scenario, 0).fingerprint != outcome.fingerprint
    monkeypatch.undo()
    assert simulate(scenario, 0).passed


@pytest.mark.parametrize("name", shipped_models())
def test_every_command_of_the_shipped_models_can_be_written(name: str) -> None:
    model = load_model(name)
    for command in (*model.before, *model.commands):
        action = ScenarioAction.model_validate(action_tree(command), context={"labels": model.labels})
        assert tuple(action.commands(lambda _: True)) == (command,)
    before = written_and_read(model)
    assert simulate(before, 0).passed is bool(model.members)  # nobody is one cluster of nobody


def test_commands_crashes_and_restarts_stand_between_what_is_scheduled() -> None:
    model = Model("again", "", ("a", "b"), Bounds(ticks=4), (KillMember("b"), StartMember("b")))
    steps = [ScheduledStep("command", "b"), ScheduledStep("tick", "a"), ScheduledStep("command", "b")]
    steps += [ScheduledStep("crash", "a"), ScheduledStep("restart", "a")]
    scenario = written_and_read(model, *steps)
    done = [step.do.text() if step.do else "tick a" for step in scenario.steps if step.do or step.schedule]
    assert done == ["kill b", "tick a", "start b", "kill a", "start a", "heal"]
    assert simulate(scenario, 0).passed


def test_a_schedule_that_does_not_fit_is_an_outcome() -> None:
    scenario = read_scenario(
        "title: T\nmembers: [a, b]\nsteps:\n"
        "  - schedule: [{tick: a}, {deliver: {from: a, to: b, kind: members-update}}]\n",
        "t.yaml",
    )
    (outcome,) = simulate(scenario, 0).expectations
    assert not outcome.met
    assert outcome.text == "schedule 2: deliver members-update a → b"
    assert outcome.missing == "0 messages members-update are on their way from a to b"


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("  - schedule: [{tick: z}]", r"t\.yaml:4: .*there is no member 'z'"),
        ("  - schedule: [{tik: a}]", r"t\.yaml:4: .*did you mean tick\?"),
        ("  - schedule: [{tick: a, drop: {from: a, to: b, kind: leave}}]", r"exactly one of deliver, drop"),
        (
            "  - schedule: [{drop: {from: a, to: b, kind: leaf}}]",
            r"there is no message 'leaf'; did you mean leave\?",
        ),
        ("  - schedule: []\nlite: [a]", r"has a schedule, in which messages take no time .* leave out lite"),
    ],
)
def test_what_is_wrong_is_told(line: str, problem: str) -> None:
    with pytest.raises(BadScenario, match=problem):
        read_scenario(f"title: T\nmembers: [a, b]\nsteps:\n{line}\n", "t.yaml")


def test_no_live_cluster_follows_a_schedule() -> None:
    assert "schedule" in written_and_read(CRASH).only_simulated()
