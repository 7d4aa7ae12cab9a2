"""What a trainee predicted, what came of it, and how the whole demo went."""

from __future__ import annotations

from typing import Any, NamedTuple

from quarterdeck.backend.core.properties import SECOND_US


class TraineePrediction(NamedTuple):
    """One question: what the trainee said, and what was so. `right` is None when nothing was said, or nothing can be judged."""

    question: str
    said: str
    truth: str
    right: bool | None


class ExpectationResult(NamedTuple):
    """One expectation: the step, what it was, how long it took, and what was missing when it was given up; empty when met."""

    step: int
    text: str
    took_us: int
    missing: str


class DemoSummary(NamedTuple):
    """How a demo went."""

    predictions: tuple[TraineePrediction, ...]
    expectation_results: tuple[ExpectationResult, ...]
    refusals: int
    """Actions that the cluster refused though that was not expected."""
    lasted_us: int
    finished: bool

    @property
    def right(self) -> int:
        return sum(prediction.right is True for prediction in self.predictions)

    @property
    def judged(self) -> int:
        return sum(prediction.right is not None for prediction in self.predictions)

    @property
    def missed(self) -> int:
        return sum(bool(expectation_result.missing) for expectation_result in self.expectation_results)

    @property
    def passed(self) -> bool:
        """Whether the cluster did all that the demo expects of it. What the trainee predicted plays no part."""
        return self.finished and not self.missed and not self.refusals

    def score_text(self) -> str:
        if not self.predictions:
            return "nothing was asked"
        left_out = len(self.predictions) - self.judged
        more = f", {left_out} not judged" if left_out else ""
        return f"{self.right} of {self.judged} predictions right{more}"

    def as_json(self) -> dict[str, Any]:
        return {
            "passed": self.passed,
            "finished": self.finished,
            "right": self.right,
            "judged": self.judged,
            "seconds": round(self.lasted_us / SECOND_US, 3),
            "refusals": self.refusals,
            "predictions": [prediction._asdict() for prediction in self.predictions],
            "expectations": [
                {"step": step, "text": text, "seconds": round(took_us / SECOND_US, 3), "missing": missing}
                for step, text, took_us, missing in self.expectation_results
            ],
        }
