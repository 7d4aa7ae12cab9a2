"""`safe`: what is missing is said, may be expected, and is what the health of members calls so."""

from __future__ import annotations

from pathlib import Path

import pytest

from quarterdeck.backend.picture.fold.belief import WORDS, unsafety_of
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.scenarios.format.reading import BadScenario, load_scenario, read_scenario
from quarterdeck.backend.scenarios.format.scenario import Expect
from quarterdeck.backend.scenarios.format.writing import scenario_text
from quarterdeck.backend.service.rest import health
from quarterdeck.backend.simulation.simulated_driver import simulate
from tests.picture.played_scenarios import records_of

FILE = Path(__file__).parent / "p-why-not-safe.yaml"


def test_what_is_missing_is_said_and_no_other_reason_will_do() -> None:
    text = "title: T\nmembers: [a, b]\nsettings: {hazelcast.partition.count: 7}\nsteps:\n"
    steps = ["do: {arrange: a}", "expect: {safe: replica-missing}", "expect: {within: 5s, safe: true}"]
    steps += ["expect: {safe: migrating}", "do: {cut: {from: a, to: b}}", "expect: {within: 20s, safe: migrating}"]
    outcome = simulate(read_scenario(text + "".join(f"  - {step}\n" for step in steps), "t.yaml"), 1)
    first, second, third, fourth = (expectation.missing for expectation in outcome.expectations)
    assert first == (
        "the data is not safe for another reason: b has another table than its master a; expected replica-missing"
    )
    assert (second, third) == ("", "all data is safe")
    assert "the data is not safe for another reason: 2 members lead" in fourth and "expected migrating" in fourth


@pytest.mark.parametrize("value", ["perhaps", "1", "[true]", "out of step"])
def test_a_reason_that_is_none_is_an_error(value: str) -> None:
    with pytest.raises(BadScenario) as found:
        read_scenario(f"title: T\nmembers: 1\nsteps:\n  - expect: {{safe: {value}}}\n", "t.yaml")
    assert str(found.value).startswith("t.yaml:4: step 1, expect.safe")


def test_it_is_read_back_and_runs_the_same() -> None:
    scenario = load_scenario(FILE)
    again = read_scenario(scenario_text(scenario), "t.yaml")
    assert again == scenario
    assert simulate(again, 2) == simulate(scenario, 2)
    assert Expect(safe="out-of-step").text() == "all data is not safe: out-of-step"


def test_scenarios_and_the_health_of_members_ask_the_same() -> None:
    assert health.unsafety_of is unsafety_of  # type: ignore[attr-defined]
    picture, seen = Picture(), set()
    for record in records_of("p-why-not-safe"):
        picture.apply(record)
        seen |= {unsafety_of(belief) for belief in picture.members.values()}
    assert {None, "migrating"} <= seen
    assert set(WORDS) == {"recovering", "migrating", "draining", "out-of-step"}
