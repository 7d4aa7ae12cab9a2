"""Events as lines of the tail: in columns, with the run's clock or UTC, searched by words and fields."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import lru_cache
from typing import Protocol

from rich.cells import cell_len

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.picture.events.catalogue import kind_of, record_words, tone_of
from quarterdeck.backend.picture.explain.event_filter import EventFilter
from quarterdeck.backend.picture.text.formatting import NameOf, clock_text, one_line
from quarterdeck.widgets.line_table import fit
from quarterdeck.widgets.tail_log import TailLine

CLOCK_WIDTH = len("99999.999")
UTC_WIDTH = len("23:59:59.999")
KIND_WIDTH = len("explicit-suspicion-received") + 1
NARROW = 110
"""Below this width the column of kinds, which the words imply, is not shown."""

LONGEST_NAME = len("255.255.255.255:65535")
LONGEST_NAME_NARROW = 16
"""The greatest width of names where kinds are not shown."""


class EventLine:
    """The line of a record. Its words are made when they are first asked for."""

    __slots__ = ("_folded", "_words", "record")

    def __init__(self, record: Record) -> None:
        self.record = record
        self._words = ""
        self._folded = ""

    def words(self, name_of: NameOf) -> str:
        """Return what happened, without when and to whom."""
        if not self._words:
            self._words = record_words(self.record, name_of)
        return self._words

    def matches(self, selection: EventFilter, name_of: NameOf) -> bool:
        """Return whether a filter selects the line."""
        return selection.accepts(self.record, lambda: self._searched(name_of))

    def _searched(self, name_of: NameOf) -> str:
        if not self._folded:
            self._folded = f"{self.record.member} {kind_of(self.record)} {self.words(name_of)}".casefold()
        return self._folded


class Searched(Protocol):
    """A line that a filter may select."""

    def matches(self, selection: EventFilter, name_of: NameOf) -> bool: ...


class LineFormat:
    """Writes events in columns. `utc` chooses the clock, `width` whether there is room for the kinds."""

    def __init__(self, name_of: NameOf) -> None:
        self._name_of = name_of
        self.utc = False
        self.width = NARROW
        self._longest_name = len("member")

    @property
    def time_width(self) -> int:
        return UTC_WIDTH if self.utc else CLOCK_WIDTH

    def time_of(self, record: Record) -> str:
        """Return when it happened, on the chosen clock."""
        return utc_text(record.utc) if self.utc else clock_text(record.at)

    def line(self, entry: EventLine) -> TailLine:
        """Return the line of an event."""
        record = entry.record
        words = self.in_columns(record, one_line(record.member), kind_of(record), entry.words(self._name_of))
        return TailLine(words, tone_of(record.event))

    def in_columns(self, record: Record, name: str, kind: str, words: str) -> str:
        """Return a line of these columns, at the time of `record`."""
        wide = self.width >= NARROW
        kinds = fit(kind, KIND_WIDTH) if wide else ""
        longest = LONGEST_NAME if wide else LONGEST_NAME_NARROW
        return f"{self.time_of(record)}  {fit(name, min(self._longest_name, longest) + 1)}{kinds}{words}"

    def reserve(self, names: Iterable[str]) -> bool:
        """Widen the column of names for these, up to a limit. Return whether lines have to be painted anew."""
        before = self._longest_name
        if before < LONGEST_NAME:
            longest = max((cell_len(one_line(name)) for name in names), default=0)
            self._longest_name = max(before, min(longest, LONGEST_NAME))
        return self._longest_name != before

    def matcher(self, text: str) -> Callable[[Searched], bool]:
        """Return the test whether a filter of this text selects a line."""
        selection = EventFilter.of(text)
        return lambda line: line.matches(selection, self._name_of)


@lru_cache(maxsize=4096)
def utc_text(utc_us: int) -> str:
    """Return the time of day in UTC, with milliseconds."""
    return datetime.fromtimestamp(utc_us / SECOND_US, tz=UTC).strftime("%H:%M:%S.%f")[:-3]
