"""How far a scenario is, in lines for people."""

from __future__ import annotations

from collections.abc import Sequence

from quarterdeck.backend.picture.text.formatting import counted
from quarterdeck.backend.scenarios.format.scenario import Scenario, ScenarioStep
from quarterdeck.backend.scenarios.outcome import StepOutcome

MISSES_TOLD = 3


class ScenarioProgress:
    """Hears of each step as it begins and ends."""

    def __init__(self, scenario: Scenario) -> None:
        self.finished = False
        self._steps = len(scenario.steps)
        self._doing = "the members start"
        self._said = scenario.summary
        self._met = 0
        self._missed: list[StepOutcome] = []

    def begins(self, number: int, step: ScenarioStep) -> None:
        if step.say is not None:
            self._said = step.say
        elif step.do is not None:
            self._doing = f"step {number} of {self._steps}: {step.do.text()}"
        elif step.expect is not None:
            self._doing = f"step {number} of {self._steps}: expecting {step.expect.text()}"

    def ends(self, number: int, step: ScenarioStep, outcome: StepOutcome | None) -> None:
        if outcome is not None and outcome.met:
            self._met += 1
        elif outcome is not None:
            self._missed.append(outcome)

    def lines(self) -> Sequence[str]:
        """Return what the scenario says, what it does, and what it missed."""
        met = f"{counted(self._met, 'expectation')} met" + (f", {len(self._missed)} missed" if self._missed else "")
        doing = f"the scenario is over: {met}" if self.finished else f"{self._doing} ({met})"
        missed = [f"✕ missed: step {one.step}, {one.text}: {one.missing}" for one in self._missed[-MISSES_TOLD:]]
        return [doing, *missed, *([" ".join(self._said.split())] if self._said else [])]
