"""A fault that is planted into a forked process is there, and nowhere else."""

from __future__ import annotations

from functools import partial

import pytest

from quarterdeck.backend.simulation.model_checking.reading import shipped_models
from tests.mutants.comparison import by_fresh, tried
from tests.mutants.exhaustion import caught_by_exhaustion
from tests.mutants.mutant import Mutant, all_mutants
from tests.mutants.planting import CannotPlantHere

BY_NAME = {mutant.name: mutant for mutant in all_mutants()}

NO_BUMP = Mutant(
    name="removal-bumps-no-version",
    breaks="The version of a list grows with every change.",
    file="backend/core/membership/views/member_list.py",
    replace="return MemberList(self.version + len(self.members) - len(left), left, self.lineage)",
    by="return MemberList(self.version, left, self.lineage)",
    examples=("tests/core",),
)


def test_exhaustion_notices_what_the_forked_process_has_and_this_one_has_not() -> None:
    assert caught_by_exhaustion(NO_BUMP, ["claim"], 3_000, 60) == "claim: version"
    assert caught_by_exhaustion(None, ["claim"], 1_000, 60) is None


def test_the_ways_of_finding_faults_are_compared_in_forked_processes() -> None:
    caught, seconds = tried(BY_NAME["former-owner-goes-on-as-owner"], partial(by_fresh, 11), 5)
    assert caught == "11: crash" and 0 < seconds < 5
    assert tried(NO_BUMP, lambda until: "", 5)[0] is None


def test_what_is_no_body_of_a_function_is_refused() -> None:
    with pytest.raises(CannotPlantHere):
        caught_by_exhaustion(BY_NAME["frozen-cluster-is-merged"], shipped_models(), 10, 1)
