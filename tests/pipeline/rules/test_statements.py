"""Every invariant has one sentence, on the simulator's checker, and `docs/spark/audit.md` says it too."""

from pathlib import Path

from quarterdeck.backend.pipeline.rules.names import NAMES, STATEMENTS
from quarterdeck.backend.simulation.invariants import PROVEN_BY_WITNESSES, InvariantChecker

PAGE = Path(__file__).parents[3] / "docs" / "spark" / "audit.md"


def test_the_rules_are_the_invariants_of_the_simulator() -> None:
    assert list(NAMES) == [*(invariant.name for invariant in InvariantChecker().invariants), "convergence"]
    assert PROVEN_BY_WITNESSES <= set(NAMES)


def test_the_page_has_every_rule_in_the_same_words() -> None:
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| `") and not line.startswith("| `--")]
    divided_by = {invariant.name: invariant.divided_by for invariant in InvariantChecker(NAMES).invariants}
    expected = [
        f"| `{name}` | {sentence} | {'yes' if name in PROVEN_BY_WITNESSES else 'no'} | {divided_by[name]} |"
        for name, sentence in STATEMENTS.items()
    ]
    assert [row for row in rows if row.count("|") == 5] == expected
