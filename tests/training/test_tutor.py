"""The tutor as a state machine: when it waits and for whom, what it tells, how it scores."""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quarterdeck.backend.core.commands import Command, KillMember, Operate
from quarterdeck.backend.picture.text.fact import Fact
from quarterdeck.backend.scenarios.format.reading import read_scenario
from quarterdeck.backend.scenarios.format.scenario import Scenario, paragraphs
from quarterdeck.backend.training.lesson import Lesson
from quarterdeck.backend.training.results import DemoSummary, ScoreBook, TraineePrediction
from quarterdeck.backend.training.text_lesson import LEAVE, LessonFailed, TextLesson
from quarterdeck.backend.training.tutor import Tutor
from quarterdeck.backend.training.tutor_facts import bar_text, step_text, tutor_facts
from tests.thoroughness import examples
from tests.training.trainee import LOOK_US, Trainee

HEAD = "title: T\ngoal: G\nmembers: [athens, byzantium, cyrene]\nsteps:\n"
KILL = (
    "  - say: First words.\n  - expect: {within: 10s, one-cluster: true}\n"
    "  - say: Athens dies.\n"
    "  - ask: {question: Who leads?, choices: [athens, byzantium, cyrene], right: masters, why: The oldest.}\n"
    "  - do: {kill: athens}\n  - say: Meanwhile.\n"
    "  - expect: {within: 20s, masters: {cyrene: byzantium}, removed: [athens]}\n"
    "  - say: Last words.\n  - free-play: true\n"
)


def scenario(steps: str) -> Scenario:
    return read_scenario(HEAD + steps, "t.yaml")


def kinds(tutor: Tutor) -> list[str]:
    return [entry.kind for entry in tutor.transcript]


def test_it_waits_for_the_trainee_and_for_the_cluster() -> None:
    trainee = Trainee(scenario(KILL))
    tutor = trainee.tutor
    assert (tutor.phase, kinds(tutor)) == ("reading", ["said", "met"])
    trainee.wait(50)
    assert tutor.phase == "reading"
    trainee.lesson.go_on()
    assert tutor.phase == "asking"
    assert [entry.kind for entry in tutor.page] == ["said", "asked"], "a new page begins with a key"
    trainee.lesson.go_on()
    assert tutor.phase == "asking", "a question is not passed over by a key"
    trainee.lesson.answer("b")
    assert (tutor.phase, tutor.next_actions[0].do is not None) == ("to-do", True)
    assert tutor.commands(tutor.next_actions[0]) == [KillMember("athens")]
    trainee.wait(50)
    assert tutor.phase == "to-do"
    trainee.lesson.go_on()
    trainee.lesson.advance(trainee.stage.drain())
    assert tutor.phase == "expecting", "narration does not pause the demo"
    assert "cyrene follows athens; expected: cyrene follows byzantium" in tutor.missing
    assert 19_000_000 < tutor.remaining_us(trainee.stage.now_us()) <= 20_000_000
    trainee.until("reading")
    assert kinds(tutor)[-3:] == ["met", "right", "why"]
    trainee.lesson.go_on()
    assert tutor.phase == "over"
    assert tutor.summary.passed and (tutor.summary.right, tutor.summary.judged) == (1, 1)
    assert tutor.summary.predictions == (TraineePrediction("Who leads?", "byzantium", "byzantium", True),)


@pytest.mark.parametrize(
    ("said", "right", "shown"), [("a", False, "athens"), ("", None, ""), ("Byzantium", True, "Byzantium")]
)
def test_predictions_are_scored_against_the_picture(said: str, right: bool | None, shown: str) -> None:
    tutor = Trainee(scenario(KILL)).finish(answer=lambda ask: said)
    (prediction,) = tutor.summary.predictions
    assert (prediction.said, prediction.truth, prediction.right) == (shown, "byzantium", right)
    assert tutor.summary.passed, "a wrong prediction is no failure of the cluster"


def test_an_expectation_that_is_missed_is_told_and_the_lesson_goes_on() -> None:
    trainee = Trainee(scenario("  - expect: {within: 1s, masters: {athens: cyrene}}\n  - do: {kill: athens}\n" + KILL))
    trainee.until("missed")
    assert trainee.tutor.transcript[-1].text == "athens is master; expected: athens follows cyrene"
    trainee.lesson.go_on()
    assert trainee.tutor.phase == "to-do"
    assert not trainee.tutor.summary.passed and trainee.tutor.summary.missed == 1


def test_a_refused_command_is_told_unless_it_is_expected() -> None:
    trainee = Trainee(scenario("  - do: {resume: athens}\n  - expect: {one-cluster: true}\n"))
    tutor = trainee.finish()
    assert "refused" in kinds(tutor) and tutor.summary.refusals == 1 and not tutor.summary.passed
    trainee = Trainee(scenario("  - do: {resume: athens}\n  - expect: {refused: is not paused}\n"))
    assert trainee.finish().summary.passed


def test_several_deeds_in_a_row_take_one_key() -> None:
    next_actions = "  - do: {kill: athens}\n  - do: {wait: 2s}\n  - do: {start: athens}\n"
    trainee = Trainee(scenario(next_actions + "  - expect: {within: 9s, one-cluster: true}\n"))
    assert len(trainee.tutor.next_actions) == 3
    trainee.lesson.go_on()
    trainee.until("over")
    assert trainee.tutor.summary.passed
    assert trainee.tutor.summary.lasted_us >= 2_000_000


def test_what_must_never_happen_ends_the_waiting_at_once() -> None:
    trainee = Trainee(scenario("  - do: {kill: athens}\n  - expect: {within: 60s, never: [claim-started]}\n"))
    trainee.lesson.go_on()
    trainee.until("missed")
    assert trainee.stage.now_us() < 10_000_000


def test_nothing_runs_out_while_the_trainee_plays_freely() -> None:
    trainee = Trainee(scenario("  - do: {wait: 0s}\n  - expect: {within: 5s, masters: {athens: cyrene}}\n"))
    trainee.lesson.go_on()
    trainee.wait(10)
    left_us = trainee.tutor.remaining_us(trainee.stage.now_us())
    trainee.lesson.play_freely(free=True)
    trainee.wait(200)
    assert trainee.tutor.phase == "expecting"
    assert trainee.tutor.remaining_us(trainee.stage.now_us()) == left_us
    trainee.lesson.go_on()
    assert trainee.tutor.phase == "expecting"
    trainee.lesson.play_freely(free=False)
    trainee.wait(2)
    assert trainee.tutor.remaining_us(trainee.stage.now_us()) == left_us - 2 * LOOK_US
    trainee.until("missed")


def test_a_question_may_be_answered_by_a_later_expectation() -> None:
    trainee = Trainee(
        scenario(
            "  - ask: {question: Who leads?, right: masters, after: 2}\n  - do: {kill: athens}\n"
            "  - expect: {event: {kind: process-killed}}\n  - expect: {within: 20s, masters: {cyrene: byzantium}}\n"
        )
    )
    trainee.lesson.answer("athens")
    trainee.lesson.go_on()
    trainee.lesson.advance(trainee.stage.drain())
    assert not trainee.tutor.predictions and kinds(trainee.tutor)[-1] == "met"
    assert [prediction.truth for prediction in trainee.finish().summary.predictions] == ["byzantium"]


class Silent:
    """A stage on which no command ever ends."""

    def __init__(self) -> None:
        self.asked: list[Command] = []
        self.at = 0

    def now_us(self) -> int:
        return self.at

    def execute(self, command: Command) -> Future[None]:
        self.asked.append(command)
        return Future()


def test_a_graceful_stop_is_not_waited_for_but_all_else_is() -> None:
    for action, goes_on in (("stop", True), ("operate", False)):
        stage = Silent()
        lesson = Lesson(
            Tutor(scenario(f"  - do: {{{action}: athens}}\n  - expect: {{within: 5s, one-cluster: true}}\n")), stage
        )
        stage.at = 60_000_000  # nobody has joined by then
        lesson.advance()
        lesson.go_on()
        stage.at += 1_000_000
        lesson.advance()
        assert (lesson.tutor.phase == "expecting") == goes_on


def test_a_failed_command_is_told_in_words() -> None:
    stage = Silent()
    failed: Future[None] = Future()
    failed.set_exception(TimeoutError("too slow"))
    stage.execute = lambda command: failed  # type: ignore[method-assign,assignment]
    lesson = Lesson(Tutor(scenario("  - do: {operate: athens}\n  - expect: {one-cluster: true}\n")), stage)
    stage.at = 60_000_000
    lesson.advance()
    lesson.go_on()
    lesson.advance()
    assert ("refused", "TimeoutError: too slow") in [(entry.kind, entry.text) for entry in lesson.tutor.transcript]


def test_members_that_cannot_be_started_end_the_lesson_before_it_begins() -> None:
    starting: Future[None] = Future()
    lesson = Lesson(Tutor(scenario(KILL)), Silent(), starting)
    lesson.advance()
    assert (lesson.tutor.phase, lesson.problem) == ("starting", "")
    starting.set_exception(OSError("no port"))
    lesson.advance()
    assert lesson.problem == "the members cannot be started: no port"
    with pytest.raises(LessonFailed, match="no port"):
        TextLesson(lesson, lesson.advance, Scripted([]), lambda command: ()).run()


MOVES = st.lists(st.sampled_from(("go", "a", "b", "cyrene", "", "free", "back", "wait")), max_size=40)


@settings(max_examples=examples(40))
@given(MOVES)
def test_no_key_at_any_moment_breaks_it(moves: list[str]) -> None:
    trainee = Trainee(scenario(KILL))
    transcript = 0
    for move in moves:
        match move:
            case "go":
                trainee.lesson.go_on()
            case "free" | "back":
                trainee.lesson.play_freely(free=move == "free")
            case "wait":
                trainee.wait(5)
            case answer:
                trainee.lesson.answer(answer)
        trainee.lesson.advance(trainee.stage.drain())
        assert len(trainee.tutor.transcript) >= transcript, "what was told stays told"
        transcript = len(trainee.tutor.transcript)
        tutor_facts(trainee.lesson, trainee.stage.now_us(), lambda command: (str(command),))
        assert 1 <= trainee.tutor.number <= len(trainee.tutor.scenario.steps)
    trainee.lesson.play_freely(free=False)
    assert trainee.finish().summary.passed


# What is shown


def texts(trainee: Trainee) -> list[Fact]:
    return list(tutor_facts(trainee.lesson, trainee.stage.now_us(), lambda command: (f":{command}", "$ line")))


def test_the_board_says_what_is_to_be_seen_at_each_moment() -> None:
    trainee = Trainee(scenario(KILL))
    assert step_text(trainee.tutor) == "step 3 of 9"
    trainee.lesson.go_on()
    assert [(text.heading.strip(), text.text) for text in texts(trainee)[-3:]] == [
        ("a", "athens"),
        ("b", "byzantium"),
        ("c", "cyrene"),
    ]
    trainee.lesson.answer("a")
    assert [text.text for text in texts(trainee)[-3:]] == ["kill athens", ":KillMember(member='athens')", "$ line"]
    trainee.lesson.go_on()
    trainee.lesson.advance(trainee.stage.drain())
    shown = texts(trainee)
    assert any(line.heading == "missing" and line.tone == "warning" for line in shown)
    assert shown[-1].heading == "time left" and "s of 20 s" in shown[-1].text
    trainee.until("over")
    shown = texts(trainee)
    assert any(line.text.startswith("0 of 1 predictions right") for line in shown)
    assert any("you said athens; it was byzantium" in line.text for line in shown)
    assert shown[-1].heading == "⚑ free play"
    trainee.lesson.play_freely(free=True)
    assert texts(trainee)[-1].heading == "⚑ free play"


@pytest.mark.parametrize(
    ("markdown", "expected"),
    [
        ("**athens** leads\nby *age*.\n\nSee `view 3`.", ["athens leads by age.", "See view 3."]),
        ("2 * 3 and snake_case stay", ["2 * 3 and snake_case stay"]),
        ("*I am alive.* That.", ["I am alive. That."]),
        ("", [""]),
    ],
)
def test_marks_of_emphasis_are_left_out(markdown: str, expected: list[str]) -> None:
    assert paragraphs(markdown) == expected


@given(st.integers(0, 10**9), st.integers(1, 10**9))
def test_the_bar_never_overflows(left_us: int, whole_us: int) -> None:
    bar = bar_text(min(left_us, whole_us), whole_us).split(" ")[0]
    assert len(bar) == 20


# In plain lines


class Scripted:
    """A trainee with prepared answers."""

    def __init__(self, answers: list[str], pauses: int = 1_000) -> None:
        self.answers, self.pauses = answers, pauses
        self.heard: list[str] = []

    def print_line(self, line: str) -> None:
        self.heard.append(line)

    def answer(self) -> str:
        return self.answers.pop(0) if self.answers else ""

    def pause(self, what_follows: str) -> str:
        self.pauses -= 1
        return "" if self.pauses >= 0 else LEAVE


def test_a_lesson_in_plain_lines() -> None:
    trainee, reader = Trainee(scenario(KILL)), Scripted(["b"])
    summary = TextLesson(trainee.lesson, trainee.wait, reader, lambda command: (f"$ {command}",)).run()
    assert summary.passed and summary.right == 1
    for line in (
        "T",
        "Goal: G",
        "First words.",
        "  b) byzantium",
        "to do: kill athens",
        "Last words.",
        "because: The oldest.",
    ):
        assert line in reader.heard
    assert reader.heard.index("Meanwhile.") < reader.heard.index("✓ right: Who leads? byzantium")


@pytest.mark.parametrize(("answers", "pauses"), [([LEAVE], 9), ([], 0), ([], 1), (["b"], 2)])
def test_a_trainee_may_leave_wherever_he_is_asked(answers: list[str], pauses: int) -> None:
    trainee = Trainee(scenario(KILL))
    summary = TextLesson(trainee.lesson, trainee.wait, Scripted(answers, pauses), lambda command: ()).run()
    assert not summary.finished and not summary.passed


# The score


def summary_of(right: int, judged: int) -> DemoSummary:
    predictions = tuple(TraineePrediction("Q?", "a", "a", place < right) for place in range(judged))
    return DemoSummary(predictions, (), 0, 1, True)


def test_scores_are_kept_the_best_and_the_last(tmp_path: Path) -> None:
    file = tmp_path / "state" / "demos.json"
    book = ScoreBook(file)
    for right, judged in ((1, 3), (3, 3), (2, 3)):
        book.record("split", summary_of(right, judged))
    other = ScoreBook(file)
    other.record("heal", summary_of(0, 0))
    again = ScoreBook(file)
    attempts = again.of("split")
    assert (attempts.finished, attempts.best, attempts.best_of) == (3, 3, 3)
    assert (attempts.text(), again.of("heal").text(), again.of("ring").text()) == ("3 of 3", "done", "")
    assert again.problem == ""


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"format": 99}', b"\xff"])
def test_a_file_that_cannot_be_read_is_told_and_kept(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "demos.json"
    file.write_bytes(content)
    book = ScoreBook(file)
    assert str(file) in book.problem
    book.record("split", summary_of(1, 1))
    assert file.read_bytes() == content
    assert book.of("split").finished == 1, "this time it is known all the same"


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    book = ScoreBook(tmp_path / "file" / "demos.json")
    book.record("split", summary_of(1, 1))
    assert book.problem
    (tmp_path / "file").unlink()
    book.record("split", summary_of(1, 1))
    assert not book.problem and ScoreBook(book.file).of("split").finished == 2, "kept as soon as it can be"


def test_without_a_file_scores_last_as_long_as_the_program() -> None:
    book = ScoreBook(None)
    book.record("split", summary_of(1, 1))
    assert book.of("split").text() == "1 of 1" and not book.problem


def test_operating_is_a_command_like_any_other() -> None:
    """Commands that change nothing are waited for too."""
    trainee = Trainee(scenario("  - do: {operate: athens}\n  - expect: {one-cluster: true}\n"))
    assert trainee.tutor.commands(trainee.tutor.next_actions[0]) == [Operate("athens")]
    assert trainee.finish().summary.passed
