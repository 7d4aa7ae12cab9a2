"""Why an event happened, or the story it belongs to, as a `TableModel`: a tree of causes, or a list of records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from rich.cells import cell_len

from quarterdeck.app.events.tones import tone_of
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.picture.explain.causes import Cause
from quarterdeck.backend.picture.text.formatting import one_line
from quarterdeck.widgets.line_table import Column, TableCell

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


class StoryModel:
    """Rows are lines of a story; `tell` and `explain` replace them all."""

    fixed_columns = 0

    def __init__(self, time_of: Callable[[Record], str], words_of: Callable[[Record], str]) -> None:
        self._time_of, self._words_of = time_of, words_of
        self._rows: dict[str, StoryRow] = {}
        self.columns: tuple[Column, ...] = ()

    @property
    def keys(self) -> Sequence[str]:
        return tuple(self._rows)

    def tell(self, records: Iterable[Record]) -> None:
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

    def row(self, key: str | None) -> StoryRow | None:
        """The row of this key, if there is one."""
        return self._rows.get(key) if key is not None else None

    def cells(self, key: str, first: int, last: int) -> Sequence[TableCell]:
        row = self._rows[key]
        cells = (TableCell(row.time, "faint"), TableCell(row.member), TableCell(row.text, row.tone))
        return cells[first:last]

    def outlier(self, key: str) -> bool:
        return False

    def _of_record(self, record: Record, depth: int) -> StoryRow:
        text = " " * depth + self._words_of(record)
        return StoryRow(record, self._time_of(record), one_line(record.member), text, tone_of(record.event))

    def _show(self, rows: Sequence[StoryRow]) -> None:
        self._rows = {str(number): row for number, row in enumerate(rows)}
        longest = max((cell_len(row.member) for row in rows), default=0)
        self.columns = (
            Column("time", max((cell_len(row.time) for row in rows), default=0) + 2),
            Column("member", max(len("member"), min(LONGEST_NAME, longest)) + 2),
            Column("what happened", max((cell_len(row.text) for row in rows), default=13) + 1),
        )
