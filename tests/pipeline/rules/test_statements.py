"""Every invariant has one sentence, on the simulator's checker."""

from quarterdeck.backend.invariants import PROVEN_BY_WITNESSES, InvariantChecker
from quarterdeck.backend.pipeline.rules import NAMES


def test_the_rules_are_the_invariants_of_the_simulator() -> None:
    assert list(NAMES) == [*(invariant.name for invariant in InvariantChecker().invariants), "convergence"]
    assert PROVEN_BY_WITNESSES <= set(NAMES)
