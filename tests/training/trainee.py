"""Somebody who is led through a demo in simulated time: how long it takes to read, and what is answered, is up to the test."""

from __future__ import annotations

from collections.abc import Callable

from quarterdeck.backend.clusters.simulated.virtual_stage import VirtualStage
from quarterdeck.backend.scenarios.format.scenario import Scenario, ScenarioQuestion
from quarterdeck.backend.training.lesson import Lesson
from quarterdeck.backend.training.tutor import Tutor

LOOK_US = 100_000
MOST_LOOKS = 30_000


def first_choice(ask: ScenarioQuestion) -> str:
    return "a"


class Trainee:
    def __init__(self, scenario: Scenario, seed: int = 1) -> None:
        self.stage = VirtualStage(scenario, seed)
        self.tutor = Tutor(scenario, seed=seed)
        self.lesson = Lesson(self.tutor, self.stage)
        self.lesson.advance(self.stage.drain())

    def wait(self, looks: int = 1) -> None:
        for _ in range(looks):
            self.stage.advance(LOOK_US)
            self.lesson.advance(self.stage.drain())

    def step(self, answer: Callable[[ScenarioQuestion], str] = first_choice) -> None:
        """One thing: an answer, a key, or a moment of waiting."""
        ask = self.tutor.question
        if ask is not None:
            self.lesson.answer(answer(ask))
        elif self.tutor.phase in ("to-do", "reading", "missed"):
            self.lesson.go_on()
        else:
            self.wait()
        self.lesson.advance(self.stage.drain())

    def until(self, *phases: str, answer: Callable[[ScenarioQuestion], str] = first_choice) -> None:
        for _ in range(MOST_LOOKS):
            if self.tutor.phase in phases:
                return
            self.step(answer)
        raise AssertionError(f"never {phases}, but {self.tutor.phase} at step {self.tutor.number}")

    def finish(self, *, reads_for: int = 0, answer: Callable[[ScenarioQuestion], str] = first_choice) -> Tutor:
        """All of it; before each answer and each key so many moments pass."""
        for _ in range(MOST_LOOKS):
            if self.tutor.phase == "over":
                return self.tutor
            if self.tutor.phase in ("asking", "to-do", "reading", "missed"):
                self.wait(reads_for)
            self.step(answer)
        raise AssertionError(f"not over, but {self.tutor.phase} at step {self.tutor.number}")
