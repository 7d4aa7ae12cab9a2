"""The predictions of a trainee, their truth, the result of the whole demo, and the scores of earlier demos in one small file."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from quarterdeck.backend.core.properties import SECOND_US


class TraineePrediction(NamedTuple):
    """One question: the prediction and the truth. `right` is None without a prediction, or where nothing can be judged."""

    question: str
    said: str
    truth: str
    right: bool | None


class ExpectationResult(NamedTuple):
    """One expectation: its step, its text, its duration, and the missing part when it was given up; empty when met."""

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
        """Whether the cluster met every expectation of the demo. The predictions of the trainee play no part."""
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


FORMAT = 1

SCORES_FILE = "demos.json"
"""The name of the file, beside the file in which the console keeps its state."""


class Attempts(Struct, frozen=True):
    """The attempts at a demo: their number, and the predictions that came true, of those that were judged."""

    finished: int = 0
    best: int = 0
    best_of: int = 0

    def with_summary(self, summary: DemoSummary) -> Attempts:
        """Return the score with one more attempt of this result."""
        right, judged = summary.right, summary.judged
        better = right * max(1, self.best_of) >= self.best * max(1, judged) if self.finished else True
        best, best_of = (right, judged) if better else (self.best, self.best_of)
        return Attempts(self.finished + 1, best, best_of)

    def text(self) -> str:
        if not self.finished:
            return ""
        return f"{self.best} of {self.best_of}" if self.best_of else "done"


class _Book(Struct, frozen=True):
    """The file. Fields that a later version adds are passed over."""

    format: int = FORMAT
    demos: dict[str, Attempts] = {}


class ScoreBook:
    """Attempts by name of demo, in `file`; without one, until the program ends.

    Never raises for a file that cannot be used: `problem` says what is wrong with it.
    """

    def __init__(self, file: Path | None) -> None:
        self.file = file
        self.problem = ""
        self._readable = True
        self._demos = self._read()

    def of(self, demo: str) -> Attempts:
        return self._demos.get(demo, Attempts())

    def record(self, demo: str, summary: DemoSummary) -> None:
        """Keep the result of a demo. The file is read anew first, as another console may have written meanwhile."""
        now = self._read() or self._demos
        self._demos = {**now, demo: now.get(demo, Attempts()).with_summary(summary)}
        self._write()

    def _read(self) -> dict[str, Attempts]:
        self.problem, self._readable = "", True
        if self.file is None:
            return {}
        try:
            book = msgspec.json.decode(self.file.read_bytes(), type=_Book)
        except FileNotFoundError:
            return {}
        except (OSError, msgspec.DecodeError) as problem:
            self._readable = False
            self.problem = f"{self.file} cannot be read, so what was learnt before is not known: {problem}"
            return {}
        if book.format != FORMAT:
            self._readable = False
            self.problem = f"{self.file} was written by another version; its scores are not shown"
            return {}
        return dict(book.demos)

    def _write(self) -> None:
        if not self._readable or self.file is None:
            return  # what cannot be read is not overwritten
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self.file.parent, prefix=self.file.name)
            try:
                with os.fdopen(handle, "wb") as whole:
                    whole.write(msgspec.json.format(msgspec.json.encode(_Book(demos=self._demos)), indent=1))
                Path(name).replace(self.file)
            except OSError:
                Path(name).unlink(missing_ok=True)
                raise
        except OSError as problem:
            self.problem = f"the score is not kept: {problem}"
