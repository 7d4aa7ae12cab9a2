"""Runs in which the swarm once found a fault of the core, shrunk. Each names on its first line the seed and what was wrong."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from quarterdeck.backend.scenarios.format.reading import load_scenario
from quarterdeck.backend.simulation.swarm_testing.trial import run_trial
from tests.thoroughness import examples

FOUND = sorted((Path(__file__).parent / "regressions").glob("*.yaml"))
FURTHER_SEEDS = 5
"""Under other seeds the same faults happen with other timing."""


def seed_of(path: Path) -> int:
    first_line = path.read_text(encoding="utf-8").splitlines()[0]
    match = re.match(r"# Under seed (\d+): ", first_line)
    assert match, f"{path.name} does not say under which seed it failed"
    return int(match[1])


@pytest.mark.parametrize("path", FOUND, ids=[path.stem for path in FOUND])
def test_what_was_wrong_once_is_right_now(path: Path) -> None:
    scenario = load_scenario(path)
    for seed in (seed_of(path), *range(examples(FURTHER_SEEDS))):
        trial = run_trial(scenario, seed)
        assert (trial.verdict, trial.text) == ("ok", ""), f"seed {seed}"
