"""One fact about a member, for a painter of fact sheets; and its replacement where the fact is not known.

It is never shown as none or well, and with it goes what would make it known.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Literal, NamedTuple

from msgspec import Struct

from quarterdeck.backend.core.causes import one_line
from quarterdeck.backend.core.witnessed.events import Aspect, Source

Tone = Literal["plain", "good", "strong", "warning", "bad", "faint"]


class Sign(NamedTuple):
    """How a state is shown beside its word: never by colour alone."""

    glyph: str
    tone: Tone


class Fact(Struct, frozen=True):
    """One fact of one paragraph. An empty heading: it goes on under the fact before."""

    heading: str
    text: str
    tone: Tone = "plain"
    verbatim: bool = False
    """Whether the line stands by itself, as it is, and is not wrapped."""


def under(heading: str, said: Iterable[str | tuple[str, Tone]], tone: Tone = "plain") -> Iterator[Fact]:
    """Yield each text as a fact of one line, the first under `heading`; `tone` is that of texts without one of their own."""
    for line in said:
        text, tone_of_it = (line, tone) if isinstance(line, str) else line
        yield Fact(heading, one_line(text), tone_of_it)
        heading = ""


def fact_rows(facts: Iterable[Fact], about: str, content: str) -> Iterator[dict[str, str]]:
    """Yield facts as rows of an export, each with its heading; `about` and `content` name the columns."""
    heading = ""
    for fact in facts:
        heading = fact.heading or heading
        yield {about: heading, content: fact.text}


NOT_REPORTED = "not reported"

LOGS_TELL: frozenset[Aspect] = frozenset(("suspicions", "claims", "merge-verdicts", "losses", "cluster-state"))
CLIENTS_ARE_TOLD: frozenset[Aspect] = frozenset(("owners", "migration-ends", "losses", "cluster-state", "join-list"))
"""The aspects that the log of a member of Hazelcast contains, and those that it sends to its clients."""


def not_told(aspect: Aspect, sources: Collection[Source]) -> str:
    """Say that `aspect` is not reported, and the source that an operator can add, when all is known from `sources`."""
    if aspect in LOGS_TELL and "logs" not in sources:
        return f"{NOT_REPORTED}: give logs with --logs"
    if aspect in CLIENTS_ARE_TOLD and "logs" in sources and "client-protocol" not in sources:
        return f"{NOT_REPORTED}: logs do not show it"
    if aspect in CLIENTS_ARE_TOLD and "client-protocol" not in sources:
        return f"{NOT_REPORTED}: attach to the members with --connect"
    return f"{NOT_REPORTED}: only the members themselves know"


def not_told_fact(heading: str, aspect: Aspect, sources: Collection[Source]) -> Fact:
    """Return the same as a fact."""
    return Fact(heading, not_told(aspect, sources), "faint")
