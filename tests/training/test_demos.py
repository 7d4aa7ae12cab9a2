"""The built-in demos: every one reads without errors and comes true in simulation."""

from __future__ import annotations

import pytest

from backend.simulation.run import simulate
from backend.training.demos import UnknownDemo, demo_names, load_demo


def test_the_demos_are_there() -> None:
    assert {"first-cluster", "split"} <= set(demo_names())


@pytest.mark.parametrize("name", demo_names())
@pytest.mark.parametrize("seed", range(5))
def test_a_demo_comes_true_under_any_seed(name: str, seed: int) -> None:
    outcome = simulate(load_demo(name), seed)
    assert [step for step in outcome.expectations if not step.met] == []
    assert outcome.passed


def test_the_halves_of_the_split_stay_apart() -> None:
    members = simulate(load_demo("split"), 1).members
    assert members["athens"].members == ("athens", "byzantium", "cyrene")
    assert members["euphesus"].members == ("delphi", "euphesus")
    assert members["euphesus"].master == "delphi"


def test_an_unknown_demo_gets_a_suggestion() -> None:
    with pytest.raises(UnknownDemo, match="there is no demo 'splitt'; did you mean split"):
        load_demo("splitt")
