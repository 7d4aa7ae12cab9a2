"""A scenario on a real local cluster: same steps, same judgement, told as it happens."""

from __future__ import annotations

from pathlib import Path

import pytest

from quarterdeck.backend.clusters.local import LiveCluster, LocalCluster, ProcessCluster
from quarterdeck.backend.journal.reader import read_journal
from quarterdeck.backend.journal.writer import JournalWriter
from quarterdeck.backend.scenarios.format.reading import read_scenario
from quarterdeck.backend.scenarios.outcome import Outcome
from quarterdeck.backend.training.runner import run_live
from tests.ports import take_ports

QUICK = """
title: Quick
members: [athens, byzantium, cyrene]
settings: {hazelcast.heartbeat.interval.seconds: 0.2, hazelcast.max.no.heartbeat.seconds: 1}
steps:
"""
BASE_PORT = take_ports(40)


def run(steps: str, journal: JournalWriter | None = None) -> tuple[Outcome, list[str]]:
    lines: list[str] = []
    scenario = read_scenario(QUICK + steps, "quick.yaml")
    return run_live(scenario, lines.append, journal, BASE_PORT), lines


def test_a_live_run_meets_its_expectations_and_tells_what_happens(tmp_path: Path) -> None:
    with JournalWriter(tmp_path, "quick", "test") as journal:
        outcome, lines = run(
            "  - say: All together.\n"
            "  - expect: {within: 20s, one-cluster: true, masters: {cyrene: athens}}\n"
            "  - do: {kill: athens}\n"
            "  - expect: {within: 20s, views: {cyrene: [byzantium, cyrene]}, masters: {cyrene: byzantium}}\n",
            journal,
        )
    assert [step for step in outcome.expectations if not step.met] == []
    assert outcome.passed and outcome.violations == ()
    assert (outcome.source, outcome.fingerprint) == ("live", "")
    assert outcome.members["cyrene"].members == ("byzantium", "cyrene")
    assert set(outcome.members) == {"byzantium", "cyrene"}
    assert "All together." in lines
    assert "[3] do kill athens" in lines
    assert "  cyrene     member  v3 athens, byzantium, cyrene  master athens" in lines
    assert "  athens     killed" in lines
    written = list(read_journal(tmp_path))
    assert len(written) >= outcome.events > 0


def test_a_missed_expectation_and_a_refused_action_fail_the_run() -> None:
    outcome, lines = run(
        "  - expect: {within: 20s, one-cluster: true}\n"
        "  - do: {resume: athens}\n"
        "  - expect: {within: 500ms, masters: {athens: cyrene}}\n"
    )
    assert not outcome.passed
    assert [step.met for step in outcome.expectations] == [True, False, False]
    assert outcome.expectations[1].missing.startswith("refused: ")
    assert any("NOT MET: athens is master; expected: athens follows cyrene" in line for line in lines)


@pytest.mark.parametrize("one_way", ["true", "false"])
def test_a_cut_is_carried_out_on_real_links(one_way: str) -> None:
    outcome, _ = run(
        "  - expect: {within: 20s, one-cluster: true}\n"
        f"  - do: {{cut: {{from: cyrene, to: [athens, byzantium], one-way: {one_way}}}}}\n"
        "  - expect: {within: 20s, views: {athens: [athens, byzantium]}, removed: [cyrene]}\n"
    )
    assert outcome.passed, outcome.expectations


@pytest.mark.parametrize("kind", [LocalCluster, ProcessCluster])
def test_a_property_is_set_at_a_running_member(kind: type[LiveCluster]) -> None:
    scenario = read_scenario(
        QUICK
        + "  - do: {set: {cyrene: {hazelcast.merge.next.run.delay.seconds: 2.5, hazelcast.max.join.seconds: 9}}}\n"
        "  - expect: {within: 2s, event: {kind: settings-changed, member: cyrene}}\n"
        "  - do: {pause: athens}\n  - do: {set: {athens: {hazelcast.merge.next.run.delay.seconds: 2.5}}}\n"
        "  - expect: {refused: is paused}\n",
        "quick.yaml",
    )
    outcome = run_live(scenario, lambda line: None, base_port=BASE_PORT, kind=kind)
    assert outcome.passed, outcome.expectations


def test_questions_are_told_with_their_choices_and_answered_when_it_can_be_seen() -> None:
    _, lines = run(
        "  - expect: {within: 20s, one-cluster: true}\n"
        "  - ask: {question: Who leads?, choices: [athens, byzantium], right: masters, why: The oldest.}\n"
        "  - do: {kill: athens}\n"
        "  - expect: {within: 20s, masters: {cyrene: byzantium}, removed: [athens]}\n"
        "  - free-play: true\n"
    )
    assert "[2] question: Who leads?\n  a) athens\n  b) byzantium" in lines
    asked, answered = lines.index("[3] do kill athens"), lines.index("answer: byzantium (The oldest.)")
    assert asked < answered
