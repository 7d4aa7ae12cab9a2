"""Every invariant has one sentence, on the simulator's checker, and `docs/spark/audit.md` says it too."""

from docs.generators import audit_rules
from quarterdeck.backend.invariants import PROVEN_BY_WITNESSES, InvariantChecker
from quarterdeck.backend.pipeline.rules import NAMES


def test_the_rules_are_the_invariants_of_the_simulator() -> None:
    assert list(NAMES) == [*(invariant.name for invariant in InvariantChecker().invariants), "convergence"]
    assert PROVEN_BY_WITNESSES <= set(NAMES)


def test_the_page_has_every_rule_in_the_same_words() -> None:
    text = audit_rules.PAGE.read_text(encoding="utf-8")
    assert text == audit_rules.page(text), "run: python -m docs.generators.audit_rules"
