"""Write the tables of rules into the pages that explain them: what a member does with each message, and what the audit checks.

Run it as ``python -m docs.generators.rule_tables``; a test tells when a page is out of date.
"""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

from quarterdeck.backend.core.membership.handlers import MESSAGE_RULES, ignore
from quarterdeck.backend.core.membership.undertakings import Claim, Doing, Following, JoinSearch, Leading
from quarterdeck.backend.invariants import PROVEN_BY_WITNESSES
from quarterdeck.backend.pipeline.rules import STATEMENTS

DOCS = Path(__file__).parents[1]
BEGIN, END = "<!-- rules: written by `python -m docs.generators.rule_tables` -->\n", "<!-- end of the rules -->\n"
WORDS: dict[type[Doing], str] = {
    JoinSearch: "joining",
    Following: "following",
    Claim: "claiming",
    Leading: "leading",
}


def _tag(kind: Any) -> str:
    return str(kind.__struct_config__.tag)


def membership_table() -> str:
    """A row for each rule: for which message, while the member is doing what, in which chapter, and what it does."""
    lines = ["| message | a member that is | chapter | what it does |", "|---|---|---|---|"]
    for kind, rules in sorted(MESSAGE_RULES.items(), key=lambda row: _tag(row[0])):
        for rule in dict.fromkeys(rules[doing] for doing in WORDS if rules[doing] is not ignore):
            doing = ", ".join(word for undertaking, word in WORDS.items() if rules[undertaking] is rule)
            sentence = (inspect.getdoc(rule) or "").partition("\n\n")[0].replace("\n", " ")
            chapter = rule.__module__.rpartition(".")[2]
            lines.append(f"| `{_tag(kind)}` | {doing} | `{chapter}` | {sentence} |")
    return "\n".join(lines) + "\n"


def audit_table() -> str:
    """A row for each rule: its name, its sentence, and whether its witnesses alone prove it."""
    lines = ["| Rule | What it says | Proven by its witnesses |", "|---|---|---|"]
    for name, sentence in STATEMENTS.items():
        proven = "yes" if name in PROVEN_BY_WITNESSES else "no"
        lines.append(f"| `{name}` | {sentence} | {proven} |")
    return "\n".join(lines) + "\n"


TABLES = {DOCS / "engineers" / "membership.md": membership_table, DOCS / "spark" / "audit.md": audit_table}


def page(file: Path) -> str:
    """The page, with its table in its place."""
    before, _, rest = file.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{TABLES[file]()}\n{END}{after}"


if __name__ == "__main__":
    for file in TABLES:
        file.write_text(page(file), encoding="utf-8")
