"""A false conclusion is shrunk to the smallest scenario in which it is false."""

from __future__ import annotations

import pytest

from quarterdeck.backend.conclusion_testing import shrunk_conclusion
from quarterdeck.backend.conclusion_testing.comparison import Compared
from quarterdeck.backend.conclusion_testing.conclusion_trial import ConclusionTrial, FalseStatement
from quarterdeck.backend.scenarios.format.reading import read_scenario
from quarterdeck.backend.scenarios.format.scenario import Scenario
from quarterdeck.backend.simulation.swarm_testing.drawing import draw_scenario

FALSE = FalseStatement(7, 1, "stream", Compared("split", "", "True", "False", "false"))
OTHER = FalseStatement(7, 1, "client", Compared("split", "", "True", "False", "false"))


def test_only_what_is_false_in_the_same_way_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    def judge_run(scenario: Scenario, seed: int) -> ConclusionTrial:
        has_load = any(step.do is not None and step.do.name == "load" for step in scenario.steps)
        return ConclusionTrial(seed, "", 1, {}, (FALSE,) if has_load else (OTHER,))

    monkeypatch.setattr(shrunk_conclusion, "judge_run", judge_run)
    text = shrunk_conclusion.shrunk_conclusion(FALSE, draw_scenario(7, (3, 9)).scenario)
    small = read_scenario(text, "shrunk.yaml")
    assert text.startswith("# Under seed 7: stream: split: said True")
    assert [step.do.name for step in small.steps if step.do is not None] == ["load"]
    assert len(small.members) == 1
