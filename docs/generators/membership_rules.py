"""Write the table of docs/engineers/membership.md that says what a member does with each message, by what it is doing.

Run it as ``python -m docs.generators.membership_rules``; a test tells when the page is out of date.
"""

from __future__ import annotations

import inspect
from pathlib import Path

from docs.generators.written_table import written_into
from quarterdeck.backend.core.membership.handlers import MESSAGE_RULES, Rule, ignore
from quarterdeck.backend.core.membership.undertakings import Claim, Doing, Following, JoinSearch, Leading

PAGE = Path(__file__).parents[1] / "engineers" / "membership.md"
WORDS: dict[type[Doing], str] = {
    JoinSearch: "joining",
    Following: "following",
    Claim: "claiming",
    Leading: "leading",
}


def table() -> str:
    """A row for each rule: for which message, while the member is doing what, in which chapter, and what it does."""
    lines = ["| message | a member that is | chapter | what it does |", "|---|---|---|---|"]
    for kind, rules in sorted(MESSAGE_RULES.items(), key=lambda one: str(one[0].__struct_config__.tag)):
        for rule in dict.fromkeys(rules[doing] for doing in WORDS if rules[doing] is not ignore):
            doing = ", ".join(word for one, word in WORDS.items() if rules[one] is rule)
            chapter = rule.__module__.rpartition(".")[2]
            lines.append(f"| `{kind.__struct_config__.tag}` | {doing} | `{chapter}` | {_first_sentence(rule)} |")
    return "\n".join(lines) + "\n"


def page(text: str) -> str:
    """The page, with the table in its place."""
    return written_into(text, table(), "docs.generators.membership_rules")


def _first_sentence(rule: Rule) -> str:
    return (inspect.getdoc(rule) or "").partition("\n\n")[0].replace("\n", " ")


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
