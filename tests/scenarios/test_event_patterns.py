"""Patterns of events: several at once, counted, and from the step on in which they stand."""

from __future__ import annotations

import pytest

from quarterdeck.backend.scenarios.format.reading import BadScenario, read_scenario
from quarterdeck.backend.scenarios.format.scenario import Expect, Scenario
from quarterdeck.backend.scenarios.format.writing import scenario_text
from quarterdeck.backend.scenarios.outcome import Outcome
from quarterdeck.backend.simulation.simulated_driver import simulate


def scenario(*steps: str) -> Scenario:
    text = "".join(f"  - {step}\n" for step in steps)
    return read_scenario(f"title: T\nmembers: [athens, byzantium, cyrene]\nsteps:\n{text}", "t.yaml")


def run(*steps: str) -> Outcome:
    return simulate(scenario(*steps), 1)


def missing(*steps: str) -> list[str]:
    return [expectation.missing for expectation in run(*steps).expectations]


def test_a_pattern_stands_alone_or_in_a_list_and_a_kind_is_one() -> None:
    for written in ("{kind: member-removed}", "[{kind: member-removed}]", "member-removed"):
        assert scenario(f"expect: {{event: {written}}}").steps[0].expect == Expect(event=({"kind": "member-removed"},))


@pytest.mark.parametrize(
    ("expect", "problem"),
    [
        ("{event: [{kind: claim-started}, {kind: claim-startet}]}", "step 1, expect.event[2].kind: there is no event"),
        (
            "{event: {kind: claim-started, atleast: 2}}",
            "expect.event.atleast: claim-started has no such field; did you",
        ),
        (
            "{event: {kind: claim-started, at-least: 0}}",
            "expect.event.at-least: 0 is not a number of events; write 1 or",
        ),
        ("{event: {kind: claim-started, at-least: two}}", "'two' is not a number of events"),
        ("{event: {kind: claim-started, at-least: 3, at-most: 2}}", "expect.event.at-most: 2 is less than at-least: 3"),
        ("{event: {}}", "step 1, expect.event: names no kind"),
        ("{event: []}", "step 1, expect.event: has 0 entries"),
        ("{never: [{kind: claim-started, at-most: 1}]}", "expect.never[1].at-most: claim-started has no such field"),
        ("{never: [claim-started, claim-startet]}", "there is no event 'claim-startet'; did you mean claim-started?"),
        ("{never: {kind: claim-started, member: troy}}", "expect.never.member: there is no member 'troy'"),
        (
            "{since: here, never: claim-started}",
            "step 1, expect: looks at what happens from here on, and lasts no time",
        ),
        ("{since: now, within: 1s, never: claim-started}", "expect.since: 'now' is not known here"),
        ("{since: here, within: 1s}", "step 1, expect: expects nothing"),
        ("{order: {athens: [athens, atens]}}", "expect.order.athens[2]: there is no member 'atens'"),
    ],
)
def test_mistakes_are_told_with_line_field_and_hint(expect: str, problem: str) -> None:
    with pytest.raises(BadScenario) as found:
        scenario(f"expect: {expect}")
    assert str(found.value).startswith("t.yaml:4: ")
    assert problem in str(found.value)


def test_too_few_and_too_many_are_counted() -> None:
    assert missing(
        "do: {kill: cyrene}",
        "expect: {within: 20s, removed: [cyrene]}",
        "expect: {event: [{kind: member-removed, at-least: 2}, {kind: list-installed, member: athens, at-most: 1}]}",
        "expect: {event: [{kind: list-installed, at-most: 1}, {kind: claim-started}]}",
    ) == [
        "",
        "event member-removed once since the last action; expected 2 at least",
        "event list-installed 2 times since the last action; expected 1 at most; no event claim-started since the last action",
    ]


def test_never_begins_where_it_stands_when_asked_to() -> None:
    before, after = missing(
        "do: {kill: cyrene}",
        "do: {wait: 20s}",
        "expect: {within: 5s, never: member-removed}",
        "expect: {since: here, within: 5s, never: member-removed, one-cluster: true}",
    )
    assert "member-removed happened to athens" in before
    assert after == ""


def test_what_happens_after_the_step_began_is_forbidden_and_counted() -> None:
    outcome = run(
        "do: {kill: athens}",
        "expect: {since: here, within: 60s, never: {kind: suspicion-raised, member: cyrene}}",
        "expect: {since: here, within: 1s, event: {kind: suspicion-raised}}",
    )
    first, second = outcome.expectations
    assert "suspicion-raised happened to cyrene" in first.missing and first.at_seconds < 20
    assert second.missing == "no event suspicion-raised since this step began"


def test_the_order_of_a_list_is_expected_exactly() -> None:
    assert missing(
        "expect: {order: {athens: [athens, byzantium, cyrene]}}",
        "expect: {order: {athens: [athens, cyrene, byzantium]}}",
        "expect: {views: {athens: [athens, cyrene, byzantium]}}",
    ) == ["", "athens's list is v3 athens, byzantium, cyrene; expected athens, cyrene, byzantium in this order", ""]


def test_what_is_written_is_read_back_and_runs_the_same() -> None:
    steps = scenario(
        "do: {kill: athens}",
        "expect: {within: 20s, event: [{kind: suspicion-raised, at-least: 2}], never: [{kind: merge-started}]}",
        "expect: {since: here, within: 3s, never: list-installed, order: {cyrene: [byzantium, cyrene]}}",
    )
    again = read_scenario(scenario_text(steps), "t.yaml")
    assert again == steps
    assert simulate(again, 3) == simulate(steps, 3)
    assert again.steps[1].expect is not None
    assert again.steps[1].expect.text() == "within 20s: event suspicion-raised (at least 2); no merge-started"
