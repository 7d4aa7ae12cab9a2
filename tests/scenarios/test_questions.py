"""Steps that ask: how they are written, what is wrong with them, and the right answers that are read from a run."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.backend.core.commands import SetProperties
from quarterdeck.backend.scenarios.answers import RightAnswer
from quarterdeck.backend.scenarios.format.questions import LETTERS, words_of
from quarterdeck.backend.scenarios.format.reading import BadScenario, read_scenario
from quarterdeck.backend.scenarios.format.scenario import Scenario, ScenarioQuestion, ScenarioStep
from quarterdeck.backend.scenarios.format.writing import scenario_text
from quarterdeck.backend.scenarios.interpreter import Interpreter
from quarterdeck.backend.scenarios.outcome import StepOutcome
from quarterdeck.backend.scenarios.run_state import RunState
from quarterdeck.backend.simulation.simulated_driver import SimulatedDriver, simulate

HEAD = "title: T\nmembers: [athens, byzantium, cyrene, delphi, euphesus]\n"
SPLIT = "{partition: [[athens, byzantium, cyrene], [delphi, euphesus]]}"
APART = "{within: 20s, masters: {athens: athens, delphi: delphi, euphesus: delphi}, views: {athens: [athens, byzantium, cyrene]}}"


def read(text: str) -> Scenario:
    return read_scenario(text, "t.yaml")


def asking(ask: str, *rest: str) -> Scenario:
    steps = "".join(f"  - {step}\n" for step in rest or ("expect: {one-cluster: true}",))
    return read(f"{HEAD}steps:\n  - ask: {ask}\n{steps}")


class Answers:
    """Hears of the steps, and answers each question when the next expectation is over."""

    def __init__(self, run_state: RunState) -> None:
        self.run_state = run_state
        self.truths: list[RightAnswer] = []

    def begins(self, number: int, step: ScenarioStep) -> None:
        if step.ask is not None:
            self.run_state.ask(step.ask)

    def ends(self, number: int, step: ScenarioStep, outcome: StepOutcome | None) -> None:
        if step.expect is not None:
            self.truths += self.run_state.answers()


def answers(scenario: Scenario, seed: int = 1) -> list[str]:
    run_state = RunState()
    heard = Answers(run_state)
    Interpreter(scenario, SimulatedDriver(scenario, seed, run_state), run_state, heard, seed=seed).play()
    return [truth.text for truth in heard.truths]


@pytest.mark.parametrize(
    ("right", "expected"),
    [
        ("masters", "athens, delphi"),
        ("{master-of: euphesus}", "delphi"),
        ("{view-of: euphesus}", "delphi, euphesus"),
        ("{version-of: athens}", "7"),
        ("who-is-removed", "delphi, euphesus"),
        ("{who-suspects: athens}", "nobody"),
        ("{merges: who}", "nobody"),
        ("{count-of: claim-finished}", "1"),
        ("lost-partitions", "0"),
        ("{holders-of: 0}", "nobody"),
    ],
)
def test_the_right_answer_is_read_when_the_expectation_is_met(right: str, expected: str) -> None:
    scenario = read(
        f"{HEAD}steps:\n  - expect: {{within: 10s, one-cluster: true}}\n  - ask: {{question: Q?, right: {right}}}\n"
        f"  - do: {SPLIT}\n  - expect: {APART}\n"
    )
    (found,) = answers(scenario)
    assert words_of(found) == words_of(expected)


def test_answers_about_merges_and_data() -> None:
    scenario = read(
        f"{HEAD}settings: {{hazelcast.partition.count: 3, quarterdeck.backup.count: 0}}\nsteps:\n"
        "  - expect: {within: 10s, one-cluster: true}\n  - do: {arrange: athens}\n  - expect: {within: 5s, safe: true}\n"
        "  - ask: {question: Who?, right: {holders-of: 2}}\n  - ask: {question: How many?, right: lost-partitions}\n"
        "  - do: {kill: cyrene}\n  - expect: {within: 20s, event: {kind: partition-lost}, one-cluster: true}\n"
        "  - do: {partition: [[athens, byzantium], [delphi, euphesus]]}\n"
        "  - expect: {within: 20s, masters: {athens: athens, euphesus: delphi}, views: {athens: [athens, byzantium]}}\n"
        "  - ask: {question: Who merges?, right: {merges: who}}\n  - ask: {question: Into whom?, right: {merges: into}}\n"
        "  - do: heal\n  - expect: {within: 40s, one-cluster: true}\n"
    )
    holder, lost, who, into = answers(scenario)
    assert (holder in ("athens", "byzantium", "delphi", "euphesus"), lost) == (True, "1")
    assert (words_of(who), into) == (words_of("delphi euphesus"), "athens")


def test_a_question_changes_nothing_in_a_run() -> None:
    plain = read(f"{HEAD}steps:\n  - do: {SPLIT}\n  - expect: {APART}\n")
    question = "{question: Q?, right: masters}"
    asked = read(f"{HEAD}steps:\n  - ask: {question}\n  - do: {SPLIT}\n  - expect: {APART}\n  - free-play: true\n")
    assert simulate(plain, 7).fingerprint == simulate(asked, 7).fingerprint


@pytest.mark.parametrize(
    ("ask", "problem"),
    [
        ("{question: Q?}", "needs one right answer"),
        ("{question: Q?, answer: 3, right: masters}", "needs one right answer"),
        ("{question: Q?, right: mastres}", "did you mean masters?"),
        ("{question: Q?, right: {view-of: athen}}", "did you mean athens?"),
        ("{question: Q?, right: {count-of: claim-finish}}", "did you mean claim-finished?"),
        ("{question: Q?, right: {masters: true, view-of: athens}}", "exactly one"),
        ("{question: Q?, right: view-of}", ""),
        ("{question: Q?, choices: [a], answer: a}", "leaves one choice"),
        ("{question: Q?, choices: ['athens, byzantium', 'byzantium, athens'], right: masters}", "stands there twice"),
        ("{question: Q?, choices: [1, 2], answer: 3}", "is none of the choices"),
        ("{question: Q?, answer: 3, after: 2}", "for 1 expectations follow"),
        ("{question: Q?, answer: 3, becuase: x}", "there is no such field"),
    ],
)
def test_a_bad_question_is_named_with_its_line(ask: str, problem: str) -> None:
    with pytest.raises(BadScenario, match="step 1, ask") as found:
        asking(ask)
    assert found.value.line == 4
    assert problem in str(found.value)


def test_a_question_needs_something_that_answers_it_and_free_play_comes_last() -> None:
    with pytest.raises(BadScenario, match="nothing is expected after this question"):
        asking("{question: Q?, answer: 3}", "do: {wait: 1s}")
    with pytest.raises(BadScenario, match="make it the last one"):
        read(f"{HEAD}steps:\n  - free-play: true\n  - expect: {{one-cluster: true}}\n")


def test_what_is_written_is_read_back() -> None:
    scenario = asking("{question: Q?, choices: [athens, [delphi, euphesus]], right: masters, why: W, after: 1}")
    assert scenario.steps[0].ask is not None
    assert scenario.steps[0].ask.choices == ("athens", "delphi, euphesus")
    assert read(scenario_text(scenario)) == scenario


CHOICES = ScenarioQuestion(question="Q?", choices=("athens", "delphi, euphesus", "nobody"), answer="delphi, euphesus")


@pytest.mark.parametrize("said", ["b", "B", " b) ", "delphi, euphesus", "Euphesus and delphi", "euphesus delphi"])
def test_answers_that_say_the_same(said: str) -> None:
    assert RightAnswer(CHOICES, "euphesus, delphi").agrees_with(said)


@pytest.mark.parametrize("said", ["a", "c", "delphi", "", "athens, delphi, euphesus", "d"])
def test_answers_that_do_not(said: str) -> None:
    assert not RightAnswer(CHOICES, "euphesus, delphi").agrees_with(said)


def test_when_no_choice_is_right_nothing_is_judged() -> None:
    assert RightAnswer(CHOICES, "byzantium").in_doubt
    assert not RightAnswer(CHOICES, "nobody").in_doubt
    assert RightAnswer(CHOICES, "nobody").choice == 2


@given(st.lists(st.sampled_from(("athens", "byzantium", "n1", "n12", "7")), unique=True), st.randoms())
def test_order_and_commas_do_not_matter(names: list[str], random: object) -> None:
    shuffled = list(names)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert words_of(", ".join(names) or "nobody") == words_of(" and ".join(shuffled))


@given(st.text(max_size=30))
def test_any_answer_can_be_judged(said: str) -> None:
    assert RightAnswer(CHOICES, CHOICES.text_of_choice(said)).agrees_with(said) or not words_of(said)
    assert len(LETTERS) == 6


# Properties at runtime


def test_properties_can_be_set_while_members_run() -> None:
    name = "hazelcast.merge.next.run.delay.seconds"
    scenario = read(
        f"{HEAD}steps:\n  - expect: {{within: 10s, one-cluster: true}}\n  - do: {{set: {{athens: {{{name}: 7}}}}}}\n"
        "  - expect: {event: {kind: settings-changed, member: athens}}\n"
        "  - do: {kill: delphi}\n  - do: {set: {delphi: {" + name + ": 7}}}\n  - expect: {refused: is not running}\n"
    )
    assert scenario.steps[1].do is not None
    assert list(scenario.steps[1].do.commands(lambda label: True)) == [SetProperties("athens", {name: 7})]
    assert scenario.steps[1].do.text() == f"set {name} = 7 at athens"
    assert simulate(scenario, 1).passed


def test_heartbeat_times_fit_those_of_the_run_and_not_those_of_the_preset() -> None:
    """The timeout of the preset is 4 s; that of this member is set at once, or before."""
    long, late = "hazelcast.heartbeat.interval.seconds: 5", "hazelcast.max.no.heartbeat.seconds: 20"
    scenario = read(
        f"{HEAD}steps:\n  - do: {{set: {{athens: {{{long}, {late}}}}}}}\n  - do: {{set: {{athens: {{{long}}}}}}}\n"
        f"  - do: {{set: {{byzantium: {{{long}}}}}}}\n  - expect: {{refused: is not longer than the heartbeat interval}}\n"
    )
    assert simulate(scenario, 1).passed
    assert simulate(scenario, 1) == simulate(scenario, 1)


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("{athens: {hazelcast.partition.count: 7}}", "cannot be changed while the member runs"),
        (
            "{athens: {hazelcast.merge.nxt.run.delay.seconds: 7}}",
            "did you mean hazelcast.merge.next.run.delay.seconds?",
        ),
        ("{athens: {}}", "at least 1"),
        ("{athen: {hazelcast.merge.next.run.delay.seconds: 7}}", "did you mean athens?"),
    ],
)
def test_a_property_that_cannot_be_set_is_an_error_in_the_file(value: str, problem: str) -> None:
    with pytest.raises(BadScenario, match=r"step 1, do\.set") as found:
        read(f"{HEAD}steps:\n  - do: {{set: {value}}}\n")
    assert problem in str(found.value)
