"""The built-in demos: each comes true in simulation under any seed, teaches, and waits for those who read slowly."""

from __future__ import annotations

from functools import cache

import pytest

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.partitions.events import DrainFinished, MigrationDecided, MigrationStarted
from quarterdeck.backend.scenarios.answers import RightAnswer
from quarterdeck.backend.scenarios.format.questions import LETTERS
from quarterdeck.backend.simulation.simulated_driver import simulate
from quarterdeck.backend.training.demo_cluster import DemoCluster, LiveDemo
from quarterdeck.backend.training.demos import UnknownDemo, demo_names, load_demo
from quarterdeck.backend.training.results import DemoSummary
from quarterdeck.backend.training.runner import run_live
from quarterdeck.backend.training.text_lesson import TextLesson
from tests.ports import take_ports
from tests.thoroughness import long_after
from tests.training.test_tutor import Scripted
from tests.training.trainee import Trainee

NAMES = demo_names()
STABLE_NAMES = {
    "cluster-states", "explicit-suspicion", "first-cluster", "four-migrations", "heal", "join-storm",
    "kill-during-migration", "lite-members", "lost-partition", "master-confirmation-lost", "master-dies",
    "master-dies-mid-commit", "mastership-claim", "migration", "minimum-cluster-size", "missed-lists", "partial",
    "partial-racks", "pause-like-death", "remembered-addresses", "ring", "split", "unrecoverable-split",
    "who-removes-whom",
}  # fmt: skip
"""Handed out in courses: none may disappear."""

QUICK_LIVE = ("first-cluster", "join-storm", "master-dies", "master-dies-mid-commit", "explicit-suspicion")
"""Those that take a few seconds with real members; the others differ from these in their steps only."""

LONGEST_LIVE_SECONDS = 90

SEEDS = range(3)

BASE_PORT = take_ports(40)


loaded = cache(load_demo)


@cache
def led(name: str, seed: int) -> DemoSummary:
    """How it goes with a trainee who reads at once and always says "a"."""
    return Trainee(loaded(name), seed=seed).finish().summary


def test_the_demos_are_there() -> None:
    assert set(NAMES) >= STABLE_NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_demo_teaches(name: str) -> None:
    """It says what it is for, asks before it shows, explains every answer, and ends in free play."""
    scenario = loaded(name)
    assert scenario.chapter and scenario.goal and scenario.seed_of and scenario.minutes
    questions = [step.ask for step in scenario.steps if step.ask is not None]
    assert len(questions) >= 2
    assert all(ask.why for ask in questions)
    assert scenario.steps[-1].free_play
    first_words = next(number for number, step in enumerate(scenario.steps) if step.say)
    assert first_words <= next(number for number, step in enumerate(scenario.steps) if step.do)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", long_after(1, SEEDS))
def test_a_demo_comes_true_under_any_seed(name: str, seed: int) -> None:
    outcome = simulate(loaded(name), seed)
    assert [step for step in outcome.expectations if not step.met] == []
    assert outcome.passed
    assert outcome.virtual_seconds <= LONGEST_LIVE_SECONDS


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("reads_for", long_after(1, [0, 300, 3_000]), ids=["at once", "30 s", "5 min"])
def test_a_trainee_is_led_to_the_end_however_long_he_reads(name: str, reads_for: int) -> None:
    summary = led(name, 1) if not reads_for else Trainee(loaded(name), seed=4).finish(reads_for=reads_for).summary
    assert [result for result in summary.expectation_results if result.missing] == []
    assert summary.passed
    assert all(prediction.right is not None for prediction in summary.predictions), "none of the choices was right"
    assert len(summary.predictions) == sum(step.ask is not None for step in loaded(name).steps)


@pytest.mark.parametrize("name", NAMES)
def test_what_the_demo_takes_for_right_is_right(name: str) -> None:
    """Whoever answers with what was so the last time has all predictions right, under another seed too."""
    predictions = led(name, 1).predictions
    asked = {prediction.question: prediction.truth for prediction in predictions}
    summary = Trainee(loaded(name), seed=2).finish(answer=lambda ask: asked[ask.question]).summary
    assert (summary.right, summary.judged) == (len(predictions), len(predictions))


def test_the_right_answers_have_all_kinds_of_letters() -> None:
    """Or trainees would learn the letter."""
    letters: list[str] = []
    for name in NAMES:
        asks = {step.ask.question: step.ask for step in loaded(name).steps if step.ask is not None}
        for prediction in led(name, 1).predictions:
            place = RightAnswer(asks[prediction.question], prediction.truth).choice
            letters += [] if place is None else [LETTERS[place]]
    assert {"a", "b", "c"} <= set(letters)
    assert max(letters.count(letter) for letter in set(letters)) <= len(letters) / 2, sorted(letters)


@pytest.mark.parametrize("name", long_after(1, QUICK_LIVE))
def test_a_demo_comes_true_on_real_members(name: str) -> None:
    lines: list[str] = []
    outcome = run_live(load_demo(name), lines.append, base_port=BASE_PORT)
    assert outcome.passed, "\n".join(lines)
    assert any(line.startswith("answer: ") for line in lines)


def test_a_lesson_on_real_members() -> None:
    cluster = LiveDemo(load_demo("first-cluster"), "first-cluster")
    try:
        assert isinstance(cluster, DemoCluster)
        trainee = Scripted(["b", "a", "c"])
        summary = TextLesson(cluster.lesson, lambda: cluster.drain() and None, trainee, lambda command: ()).run()
        assert summary.passed, trainee.heard
        assert (summary.right, summary.judged) == (3, 3)
    finally:
        cluster.close()


def test_the_halves_of_the_split_stay_apart() -> None:
    members = simulate(load_demo("split"), 1).members
    assert members["athens"].members == ("athens", "byzantium", "cyrene")
    assert members["euphesus"].members == ("delphi", "euphesus")
    assert members["euphesus"].master == "delphi"


@pytest.mark.parametrize("name", ["split", "master-confirmation-lost"])
def test_a_lesson_that_speaks_of_the_search_says_how_long_its_own_masters_wait(name: str) -> None:
    lesson = load_demo(name)
    wait_seconds = str(lesson.settings["hazelcast.merge.first.run.delay.seconds"])
    assert any("from time to time" in (step.say or "") and wait_seconds in (step.say or "") for step in lesson.steps)


def test_the_migration_demo_shows_every_step_that_it_tells_of() -> None:
    records = Records()
    outcome = simulate(load_demo("migration"), 1, records)
    events = [record.event for record in records.taken]
    started = [event for event in events if isinstance(event, MigrationStarted)]
    assert {"MOVE", "COPY"} <= {event.type for event in started}
    assert min(event.available for event in started if event.type == "MOVE") == 2, "a move left one replica alone"
    assert {event.committed for event in events if isinstance(event, MigrationDecided)} == {True, False}
    assert [event.reason for event in events if isinstance(event, DrainFinished)] == [""]
    assert set(outcome.members) == {"athens", "cyrene"}
    assert outcome.table.version > 0


class Records:
    """Keeps what is appended."""

    def __init__(self) -> None:
        self.taken: list[Record] = []

    def append(self, record: Record) -> None:
        self.taken.append(record)


def test_an_unknown_demo_gets_a_suggestion() -> None:
    with pytest.raises(UnknownDemo, match="there is no demo 'splitt'; did you mean split"):
        load_demo("splitt")
