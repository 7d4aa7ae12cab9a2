"""One thing to say about a member, for a painter of fact sheets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

Tone = Literal["plain", "good", "strong", "warning", "bad", "faint"]


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing to say, of one paragraph. An empty heading: it goes on under the one before."""

    heading: str
    text: str
    tone: Tone = "plain"
    verbatim: bool = False
    """Whether the line stands by itself, as it is, and is not wrapped."""


def fact_rows(facts: Iterable[Fact], about: str, content: str) -> Iterator[dict[str, str]]:
    """Yield facts as rows of an export, each with its heading; `about` and `content` name the columns."""
    heading = ""
    for fact in facts:
        heading = fact.heading or heading
        yield {about: heading, content: fact.text}
