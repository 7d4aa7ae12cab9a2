"""Write the table of docs/spark/audit.md that says what each rule is.

Run it as ``python -m docs.generators.audit_rules``; a test tells when the page is out of date.
"""

from __future__ import annotations

from pathlib import Path

from docs.generators.written_table import written_into
from quarterdeck.backend.invariants import PROVEN_BY_WITNESSES, InvariantChecker
from quarterdeck.backend.pipeline.rules import STATEMENTS

PAGE = Path(__file__).parents[1] / "spark" / "audit.md"


def table() -> str:
    """A row for each rule: its name, its sentence, whether its witnesses alone prove it, and by what its work is divided."""
    divided_by = {one.name: one.divided_by for one in InvariantChecker(STATEMENTS).invariants}
    lines = ["| Rule | What it says | Proven by its witnesses | Divided by |", "|---|---|---|---|"]
    for name, sentence in STATEMENTS.items():
        proven = "yes" if name in PROVEN_BY_WITNESSES else "no"
        lines.append(f"| `{name}` | {sentence} | {proven} | {divided_by[name]} |")
    return "\n".join(lines) + "\n"


def page(text: str) -> str:
    """The page, with the table in its place."""
    return written_into(text, table(), "docs.generators.audit_rules")


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
