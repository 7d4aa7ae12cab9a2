"""Which events a reader wants to see, as one line of text: words, phrases, kinds and members, each of them also turned around."""

from __future__ import annotations

import re
from collections.abc import Callable
from fnmatch import fnmatchcase

from msgspec import Struct

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.picture.events.catalogue import kind_of

TERM = re.compile(
    r'(?P<turned>!?)(?:(?P<field>kind|member|life):)?(?:/(?P<expression>(?:[^/\\]|\\.)+)/|"(?P<phrase>[^"]*)"?|(?P<word>\S*))'
)
"""A term of a selection. A quote that is not closed yet holds the rest: the user is still typing."""


class FilterTerm(Struct, frozen=True):
    """One condition: `wanted` is looked for in `field`, or in the whole line; `negated` takes what does not meet it."""

    field: str
    wanted: tuple[str, ...]
    negated: bool

    def accepts(self, record: Record, words: Callable[[], str]) -> bool:
        """Return whether `record`, whose line reads `words`, meets the condition."""
        return self._meets(record, words) is not self.negated

    def _meets(self, record: Record, words: Callable[[], str]) -> bool:
        match self.field:
            case "expression":
                return re.search(self.wanted[0], words(), re.IGNORECASE) is not None
            case "kind":
                return _one_fits(kind_of(record), self.wanted)
            case "member":
                return _one_fits(record.member.casefold(), self.wanted)
            case "life":
                return any(record.uuid.startswith(beginning) for beginning in self.wanted)
            case _:
                return self.wanted[0] in words()


class EventFilter(Struct, frozen=True):
    """What a line of text selects: records that meet every one of its terms."""

    terms: tuple[FilterTerm, ...]

    @classmethod
    def of(cls, text: str) -> EventFilter:
        r"""Read ``suspects "no heartbeat" !cyrene /v\d+/ kind:suspicion* member:athens``. Every text means something."""
        return cls(tuple(filter(None, map(_term, TERM.finditer(text)))))

    def accepts(self, record: Record, words: Callable[[], str]) -> bool:
        """Return whether `record` is selected. `words` returns its line in lower case, and is called only when that is needed."""
        return all(term.accepts(record, words) for term in self.terms)


def _term(found: re.Match[str]) -> FilterTerm | None:
    if found["expression"] is not None and not found["field"] and _can_be_read(found["expression"]):
        return FilterTerm("expression", (found["expression"],), bool(found["turned"]))
    said = (found["phrase"], found["expression"], found["word"])
    text = next((part for part in said if part is not None), "")
    field = found["field"] or ""
    if field:
        wanted = tuple(filter(None, (name if field == "life" else name.casefold() for name in text.split(","))))
    else:
        wanted = tuple(filter(None, (text.casefold(),)))
    if not wanted or (not field and not found["phrase"] and text == "!"):
        return None
    return FilterTerm(field, wanted, bool(found["turned"]))


def _can_be_read(expression: str) -> bool:
    try:
        re.compile(expression)
    except re.error:
        return False
    return True


def _one_fits(text: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(text, pattern) for pattern in patterns)
