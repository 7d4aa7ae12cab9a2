"""The columns of a story: why an event happened, as a tree of causes, or the records that belong together, as a list."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from quarterdeck.app.events.tones import tone_of
from quarterdeck.app.views.columns import BoardModel, ColumnOf
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.picture.explain.causes import Cause
from quarterdeck.backend.picture.text.formatting import one_line

INDENT = 2
DEEPEST = 12
"""Causes further back than this are not moved to the right any more."""

LONGEST_NAME = 16
MESSAGE_GLYPH, STEP_GLYPH = "⇠", "←"
"""Before a reason: the cause came as a message, or it took none."""


class StoryRow(NamedTuple):
    """A line of a story: a record, or the reason why the one above it follows from the one below."""

    record: Record
    time: str
    member: str
    text: str
    tone: str


COLUMNS: tuple[ColumnOf[StoryRow], ...] = (
    ColumnOf("time", lambda row: row.time, "faint"),
    ColumnOf("member", lambda row: row.member, widest="member "),
    ColumnOf("what happened", lambda row: row.text, lambda row: row.tone),
)


class StoryModel(BoardModel[StoryRow]):
    """Rows are lines of a story; `show_records` and `explain` replace them all."""

    def __init__(self, time_of: Callable[[Record], str], words_of: Callable[[Record], str]) -> None:
        super().__init__(COLUMNS)
        self._time_of, self._words_of = time_of, words_of

    def show_records(self, records: Iterable[Record]) -> None:
        """Show `records`, one a row."""
        self._show([self._of_record(record, 0) for record in records])

    def explain(self, record: Record, chain: Sequence[Cause]) -> None:
        """Show `record`, and below it what led to it: each cause under the reason why it is one."""
        rows = [self._of_record(record, 0)]
        for cause in chain:
            depth = min(cause.depth, DEEPEST) * INDENT
            glyph = MESSAGE_GLYPH if cause.message else STEP_GLYPH
            rows.append(StoryRow(cause.record, "", "", f"{' ' * depth}{glyph} because {cause.reason}", "faint"))
            rows.append(self._of_record(cause.record, depth))
        if not chain:
            rows.append(
                StoryRow(record, "", "", "  nothing that was recorded brought it about: it begins a story", "faint")
            )
        self._show(rows)

    def _of_record(self, record: Record, depth: int) -> StoryRow:
        text = " " * depth + self._words_of(record)
        return StoryRow(record, self._time_of(record), one_line(record.member), text, tone_of(record.event))

    def _show(self, rows: Sequence[StoryRow]) -> None:
        by_key = {str(number): row for number, row in enumerate(rows)}
        self.show_rows(tuple(by_key), by_key.__getitem__)
        self.narrow()
        self.widen("time", (row.time for row in rows), gap=2)
        self.widen("member", (row.member for row in rows), LONGEST_NAME, gap=2)
        self.widen("what happened", (row.text for row in rows))
