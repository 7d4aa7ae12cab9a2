"""Events as lines of the tail: in columns, with the run's clock or UTC, searched by words and fields."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import lru_cache

from rich.cells import cell_len

from quarterdeck.app.events.tones import tone_of
from quarterdeck.backend.core.events import MemberStarted, Record
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.picture.explain.event_filter import EventFilter, kind_of
from quarterdeck.backend.picture.text.event_description import clock_text, describe_event
from quarterdeck.backend.picture.text.formatting import NameOf, one_line, with_names
from quarterdeck.widgets.line_table import fit
from quarterdeck.widgets.tail_log import TailLine

CLOCK_WIDTH = len("99999.999")
UTC_WIDTH = len("23:59:59.999")
KIND_WIDTH = len("explicit-suspicion-received") + 1
NARROW = 110
"""Below this width the column of kinds, which the words imply, is left out."""

LONGEST_NAME = 16


class EventLine:
    """A record of the tail, and its words once they were asked for."""

    __slots__ = ("_folded", "_words", "record")

    def __init__(self, record: Record) -> None:
        self.record = record
        self._words = ""
        self._folded = ""

    def words(self, name_of: NameOf) -> str:
        """What happened, without when and to whom."""
        if not self._words:
            self._words = words_of(self.record, name_of)
        return self._words

    def folded(self, name_of: NameOf) -> str:
        """Everything that a plain word of a filter is looked for in, in lower case."""
        if not self._folded:
            self._folded = f"{self.record.member} {kind_of(self.record)} {self.words(name_of)}".casefold()
        return self._folded


class LineFormat:
    """Writes events in columns. `utc` chooses the clock, `width` whether there is room for the kinds."""

    def __init__(self, name_of: NameOf) -> None:
        self._name_of = name_of
        self.utc = False
        self.width = NARROW
        self._name_width = len("member") + 1

    @property
    def time_width(self) -> int:
        return UTC_WIDTH if self.utc else CLOCK_WIDTH

    def time_of(self, record: Record) -> str:
        """When it happened, on the clock that is chosen."""
        return utc_text(record.utc) if self.utc else clock_text(record.at)

    def line(self, entry: EventLine) -> TailLine:
        """The line of an event."""
        record = entry.record
        words = self.in_columns(record, one_line(record.member), kind_of(record), entry.words(self._name_of))
        return TailLine(words, tone_of(record.event))

    def in_columns(self, record: Record, name: str, kind: str, words: str) -> str:
        """A line of these columns, at the time of `record`."""
        self.reserve((name,))
        kinds = fit(kind, KIND_WIDTH) if self.width >= NARROW else ""
        return f"{self.time_of(record)}  {fit(name, self._name_width)}{kinds}{words}"

    def reserve(self, names: Iterable[str]) -> None:
        """Let the column of names be wide enough for these, up to a limit: lines above would not be in columns with it else."""
        for name in names if self._name_width <= LONGEST_NAME else ():
            self._name_width = max(self._name_width, min(cell_len(name), LONGEST_NAME) + 1)

    def matcher(self, text: str) -> Callable[[EventLine], bool]:
        """Whether a line is selected by a filter's text."""
        selection = EventFilter.of(text)
        return lambda entry: selection.accepts(entry.record, lambda: entry.folded(self._name_of))


def words_of(record: Record, name_of: NameOf) -> str:
    """What happened, as one line that may be painted."""
    told = describe_event(record.event, name_of)
    if not isinstance(record.event, MemberStarted):  # which is where a name's address is told
        told = with_names(told, name_of)
    return one_line(told)


@lru_cache(maxsize=4096)
def utc_text(utc_us: int) -> str:
    """The time of day in UTC, with milliseconds."""
    return datetime.fromtimestamp(utc_us / SECOND_US, tz=UTC).strftime("%H:%M:%S.%f")[:-3]
