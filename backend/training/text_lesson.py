"""A lesson in plain lines of text: for a terminal without a screen, for a pipe, and for tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from quarterdeck.backend.scenarios.format.questions import LETTERS
from quarterdeck.backend.scenarios.format.scenario import paragraphs
from quarterdeck.backend.training.lesson import Lesson
from quarterdeck.backend.training.results import DemoSummary
from quarterdeck.backend.training.tutor_facts import HEADINGS, CommandForms

LEAVE = "q"
"""The answer with which a trainee leaves."""


class Trainee(Protocol):
    """Whom to speak to, and who answers."""

    def print_line(self, line: str) -> None: ...

    def answer(self) -> str:
        """Return the answer to a question; empty when the trainee gives none or has left."""

    def pause(self, what_follows: str) -> str:
        """Come back when it may go on; only whether the answer is `LEAVE` matters."""


class LessonFailed(RuntimeError):
    """The lesson has no cluster; the message says why."""


class TextLesson:
    """Leads through a lesson. `pass_time` lets a moment go by and hands the records of the moment to the lesson."""

    def __init__(self, lesson: Lesson, pass_time: Callable[[], None], trainee: Trainee, lines: CommandForms) -> None:
        self._lesson, self._tutor = lesson, lesson.tutor
        self._pass_time, self._trainee, self._lines = pass_time, trainee, lines
        self._say = trainee.print_line
        self._printed = 0
        self._said_missing = False
        """Whether the lesson has already said which part of the present expectation is missing."""

    def run(self) -> DemoSummary:
        """Return how it went when it is over, or the trainee leaves. Raises `LessonFailed`."""
        tutor = self._tutor
        self._say(tutor.scenario.title)
        if tutor.scenario.goal:
            self._say(f"Goal: {tutor.scenario.goal}")
        while tutor.phase != "over":
            self._print()
            match tutor.phase:
                case "asking":
                    going_on = self._ask()
                case "to-do":
                    going_on = self._do()
                case "reading" | "missed":
                    going_on = self._go_on("go on")
                case _:
                    going_on = True
                    self._watch()
            if not going_on:
                break
        self._print()
        return tutor.summary

    def _ask(self) -> bool:
        ask = self._tutor.question
        assert ask is not None
        for letter, choice in zip(LETTERS, ask.choices, strict=False):
            self._say(f"  {letter}) {choice}")
        answer = self._trainee.answer()
        if answer.strip() == LEAVE:
            return False
        self._lesson.answer(answer)
        return True

    def _do(self) -> bool:
        for step in self._tutor.next_actions:
            assert step.do is not None
            self._say(f"to do: {step.do.text()}")
            for command in self._tutor.commands(step):
                for line in self._lines(command):
                    self._say(f"  {line}")
        return self._go_on("do it")

    def _go_on(self, what_follows: str) -> bool:
        if self._trainee.pause(what_follows).strip() == LEAVE:
            return False
        self._lesson.go_on()
        return True

    def _watch(self) -> None:
        self._pass_time()
        if self._lesson.problem:
            raise LessonFailed(self._lesson.problem)
        self._print()
        missing = self._tutor.missing
        if missing and not self._said_missing:
            self._say(f"… still missing: {missing}")
        self._said_missing = bool(missing)

    def _print(self) -> None:
        for kind, text, _ in self._tutor.transcript[self._printed :]:
            heading, _ = HEADINGS[kind]
            for place, paragraph in enumerate(paragraphs(text)):
                self._say(f"{heading}: {paragraph}" if heading and place == 0 else paragraph)
        self._printed = len(self._tutor.transcript)
