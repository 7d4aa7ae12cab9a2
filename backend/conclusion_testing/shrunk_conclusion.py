"""The smallest scenario in which a conclusion is false in the same way."""

from __future__ import annotations

from collections.abc import Callable

from quarterdeck.backend.conclusion_testing.conclusion_trial import FalseStatement, RunCrashed, judge_run
from quarterdeck.backend.scenarios.format.scenario import Scenario
from quarterdeck.backend.scenarios.format.writing import scenario_text
from quarterdeck.backend.simulation.swarm_testing.shrinking import MOST_ATTEMPTS, shrink


def shrunk_conclusion(false: FalseStatement, scenario: Scenario, most_attempts: int = MOST_ATTEMPTS) -> str:
    """Return the file of the smallest scenario found in which a conclusion is false as in `scenario`."""
    small = shrink(scenario, _is_false_alike(false), most_attempts)
    statement = false.statement
    heading = f"# Under seed {false.seed}: {false.watcher}: {statement.question}: said {statement.said}"
    return f"{heading}\n{scenario_text(small)}"


def _is_false_alike(false: FalseStatement) -> Callable[[Scenario], bool]:
    def is_false(scenario: Scenario) -> bool:
        try:
            found = judge_run(scenario, false.seed).false
        except RunCrashed:
            return False
        return any(other.kind == false.kind for other in found)

    return is_false
