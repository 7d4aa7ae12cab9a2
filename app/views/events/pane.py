"""The pane below the events: an event in full, why it happened, or the story that it belongs to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widget import Widget

from quarterdeck.app.event_lines import EpisodeLine, LineFormat, exported, facts_of
from quarterdeck.app.screen.columns import BoardModel, ColumnOf
from quarterdeck.backend.core.causes import RecordId
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.picture.events.catalogue import kind_of, record_words, tone_of
from quarterdeck.backend.picture.explain.causes import Cause
from quarterdeck.backend.picture.explain.event_index import identity
from quarterdeck.backend.picture.explain.event_trace import EventTrace
from quarterdeck.backend.picture.text.formatting import NameOf, one_line
from quarterdeck.widgets.fact_sheet import FactSheet
from quarterdeck.widgets.line_table import LineTable, TableCell
from quarterdeck.widgets.status_line import StatusLine

INDENT = 2
DEEPEST = 12
"""Causes further back than this are not indented further."""

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


class EventPane(Vertical):
    """A pane that shows one thing at a time, or is closed."""

    def __init__(self, line_format: LineFormat, name_of: NameOf, place_of: Callable[[Record], str], *, id: str) -> None:
        """Create the pane. `place_of` returns the line of a log in which an event stands; empty if it is from no log."""
        super().__init__(id=id)
        self._time_of, self._name_of, self._place_of = line_format.time_of, name_of, place_of
        self._model = BoardModel(COLUMNS)
        self.title_line = StatusLine(id="event-title")
        self.story = LineTable(self._model, id="event-story")
        self.fields = FactSheet(id="event-fields")

    def compose(self) -> ComposeResult:
        yield self.title_line
        yield self.story
        yield self.fields

    @property
    def content(self) -> Widget | None:
        """What is shown; None while the pane is closed."""
        if not self.display:
            return None
        return self.story if self.story.display else self.fields

    @property
    def pointed(self) -> Record | None:
        """The event under the cursor of a story."""
        row = self._model.row(self.story.cursor_key) if self.content is self.story else None
        return row.record if row is not None else None

    def close(self) -> None:
        self.display = False

    def show_fields(self, record: Record) -> None:
        self.title_line.show(TableCell(kind_of(record), "strong"), TableCell("every field that says anything", "faint"))
        self.fields.show(facts_of(record, record_words(record, self._name_of), self._name_of))
        self._open(self.fields)

    def explain(self, record: Record, chain: Sequence[Cause]) -> None:
        """Show `record`, and below it its causes, each under the reason why it is one."""
        rows = [self._line_of(record)]
        explained: set[RecordId] = set()
        for cause in chain:
            depth = min(cause.depth, DEEPEST) * INDENT
            glyph = MESSAGE_GLYPH if cause.message else STEP_GLYPH
            effect = identity(cause.effect)
            because = "and because" if effect in explained else "because"
            explained.add(effect)
            rows.append(
                StoryRow(cause.record, "", "", f"{' ' * (depth - 1)}{glyph} {because} {cause.reason}:", "faint")
            )
            rows.append(self._line_of(cause.record, depth + 1))
        if not chain:
            rows.append(StoryRow(record, "", "", "  no cause was recorded: the story begins here", "faint"))
        steps = f"{len(chain)} causes, the nearest first" if chain else "no cause was recorded"
        self._show_story("because", steps, "⇠ came as a message, ← needed none" if chain else "", rows)

    def unfold(self, line: EpisodeLine) -> None:
        """Show the events of an episode."""
        kept, count = len(line.episode.records), line.episode.count
        more = "" if kept == count else f"{kept} of {count} events; l shows all"
        self.show_trace(EventTrace(line.sentence().text, tuple(line.episode.records)), more, None)

    def show_trace(self, story: EventTrace, more: str, record: Record | None) -> None:
        """Show a story with the cursor on `record`, if that belongs to it. `more` is a hint about other stories."""
        self._show_story("story", story.heading, more, list(map(self._line_of, story.records)))
        if record is not None:
            place = next((place for place, other in enumerate(story.records) if identity(other) == identity(record)), 0)
            self.story.point_at(str(place))

    def rows(self) -> Iterable[Mapping[str, str]]:
        """Return the events of the story in sight, for an export."""
        rows = [row for row in map(self._model.row, self._model.keys) if row is not None]
        return [exported(row.record) for row in rows]

    def _line_of(self, record: Record, depth: int = 0) -> StoryRow:
        """Return what happened, after the line of the log that reports it."""
        place = self._place_of(record)
        text = " " * depth + (f"[{one_line(place)}] " if place else "") + record_words(record, self._name_of)
        return StoryRow(record, self._time_of(record), one_line(record.member), text, tone_of(record.event))

    def _show_story(self, word: str, heading: str, more: str, rows: Sequence[StoryRow]) -> None:
        self.title_line.show(TableCell(word, "strong"), TableCell(one_line(heading)), TableCell(more, "faint"))
        by_key = {str(number): row for number, row in enumerate(rows)}
        self._model.show_rows(tuple(by_key), by_key.__getitem__)
        self._model.narrow()
        self._model.widen("time", (row.time for row in rows), gap=2)
        self._model.widen("member", (row.member for row in rows), LONGEST_NAME, gap=2)
        self._model.widen("what happened", (row.text for row in rows))
        self.story.show()
        self.story.point_at("0")
        self.story.refresh()
        self._open(self.story)

    def _open(self, content: Widget) -> None:
        for widget in (self.story, self.fields):
            widget.display = widget is content
        self.display = True
