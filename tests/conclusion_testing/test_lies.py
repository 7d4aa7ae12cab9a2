"""Every planted lie is noticed by chance: a conclusion that was true becomes false."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from quarterdeck.backend.conclusion_testing.comparison import Compared, Truths, compare
from quarterdeck.backend.conclusion_testing.conclusion_trial import JudgedRun
from quarterdeck.backend.core.properties import Settings
from quarterdeck.backend.judgement.judge import Judge
from quarterdeck.backend.simulation.swarm_testing.drawing import draw_scenario
from quarterdeck.backend.simulation.swarm_testing.trial import run_trial
from tests.conclusion_testing.lies import LIES, METRIC_LIES, lying_metrics

SEEDS = range(1, 41)
"""As many are run as it takes."""


class RunWithLies(JudgedRun):
    """At each moment lets every lie speak that was not noticed yet."""

    def __init__(self, seed: int, settings: Settings, unnoticed: set[str]) -> None:
        super().__init__(seed, settings)
        self.unnoticed = unnoticed
        self._watchers = self._watchers[:3]  # to read all logs anew costs as much as all else

    def compare(self, judge: Judge, truths: Truths) -> Iterator[Compared]:
        """Also compare what every liar says."""
        sound = list(compare(judge, truths))
        known = {(one.question, one.subject) for one in sound if one.verdict == "false"}
        for name in sorted(self.unnoticed):
            if name in LIES:
                said = list(compare(LIES[name](judge), truths))
            else:
                with lying_metrics(name):
                    said = list(compare(judge, truths))
            if any(one.verdict == "false" and (one.question, one.subject) not in known for one in said):
                self.unnoticed.discard(name)
        return iter(sound)


@pytest.mark.long
@pytest.mark.xdist_group("lies")
def test_every_lie_is_noticed() -> None:
    unnoticed = {*LIES, *METRIC_LIES}
    assert len(unnoticed) >= 40
    for seed in SEEDS:
        scenario = draw_scenario(seed, (3, 9)).scenario
        run = RunWithLies(seed, scenario.timing(), unnoticed)
        assert run_trial(scenario, seed, run_state=run, bystander=run).verdict != "crash"
        if not unnoticed:
            break
    assert not unnoticed
