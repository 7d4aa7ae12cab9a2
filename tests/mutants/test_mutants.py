"""The planted faults can be planted, and some are tried here; ``make mutants`` tries them all."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutants.catching import caught_by_scenarios, caught_by_unit_tests
from tests.mutants.mutant import ROOT, Mutant, all_mutants, plant

MUTANTS = all_mutants()


def test_every_mutant_can_be_planted() -> None:
    """When a rule's text has moved, its mutant has to follow: what it replaces stands in the core exactly once."""
    assert [problem for mutant in MUTANTS if (problem := why_not_planted(mutant))] == []


def why_not_planted(mutant: Mutant) -> str:
    """Why the fault cannot be put into the core as it is; empty when it can."""
    try:
        compile(mutant.changed_source(), mutant.file, "exec")
    except (ValueError, OSError, SyntaxError) as problem:
        return f"{mutant.name}: {problem}"
    return "" if mutant.replace != mutant.by else f"{mutant.name} changes nothing"


def test_mutants_are_told_apart_and_name_their_examples() -> None:
    names = [mutant.name for mutant in MUTANTS]
    assert len(names) == len(set(names))
    missing = [path for mutant in MUTANTS for path in mutant.examples if not (ROOT / path.partition("::")[0]).exists()]
    assert not missing


@pytest.mark.parametrize(
    "mutant",
    [pytest.param(mutant, marks=[] if mutant.quick else pytest.mark.long) for mutant in MUTANTS],
    ids=[mutant.name for mutant in MUTANTS],
)
def test_examples_notice(mutant: Mutant, tmp_path: Path) -> None:
    plant(mutant, tmp_path / "project")
    caught = caught_by_unit_tests(mutant, tmp_path / "project") or caught_by_scenarios(mutant, tmp_path / "project")
    assert caught, f"nobody notices that this no longer holds: {mutant.breaks}"
