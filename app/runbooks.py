"""The runbooks of conditions and observations, as help shows them: the page of the documents, which a wheel has, too."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

_HERE = Path(__file__).resolve()
PAGE = next(
    page
    for page in (_HERE.with_name("runbooks.md"), *(folder / "docs/operators/runbooks.md" for folder in _HERE.parents))
    if page.is_file()
)
"""Beside the code in a wheel; in a checkout it stands among the documents."""

_LABEL = re.compile(r"(?:\* )?\*\*(See|Costs|Now|For good):\*\* ")
_LINK = re.compile(r"\[([^]]+)\]\([^)]+\)")

Runbook = list[tuple[str, str]]
"""What to do about one thing: headings, of which the first is empty, each with its text."""


def runbook_of(name: str) -> Runbook:
    """Return the section on a condition or a kind of observation; empty if there is none."""
    return _sections().get(name, [])


@cache
def _sections() -> dict[str, Runbook]:
    found: dict[str, Runbook] = {}
    for section in re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        name, _, text = re.sub(r"^# .*", "", section, flags=re.MULTILINE).partition("\n")
        first, *labelled = _LABEL.split(_LINK.sub(r"\1", " ".join(text.split())).replace("`", ""))
        parts = [("", first), *zip(labelled[::2], labelled[1::2], strict=True)]
        found[name] = [(label, said.strip().removesuffix(" *")) for label, said in parts if said.strip()]
    return found
