"""The planted faults can be planted, and some are tried here; ``make mutants`` tries them all."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutants.catching import caught_by_examples
from tests.mutants.mutant import ROOT, Mutant, all_mutants, plant

MUTANTS = all_mutants()


def test_every_mutant_can_be_planted() -> None:
    for mutant in MUTANTS:
        changed = mutant.changed_source()
        compile(changed, mutant.file, "exec")
        assert changed != (ROOT / mutant.file).read_text(), mutant.name


def test_mutants_are_told_apart_and_name_their_examples() -> None:
    names = [one.name for one in MUTANTS]
    assert len(names) == len(set(names))
    missing = [path for one in MUTANTS for path in one.examples if not (ROOT / path.partition("::")[0]).exists()]
    assert not missing


@pytest.mark.parametrize("mutant", [one for one in MUTANTS if one.quick], ids=lambda one: one.name)
def test_examples_notice(mutant: Mutant, tmp_path: Path) -> None:
    plant(mutant, tmp_path / "project")
    assert caught_by_examples(mutant, tmp_path / "project") is not None
