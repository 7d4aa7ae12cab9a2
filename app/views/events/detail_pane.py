"""The pane below the events: an event in full, why it happened, or the story that it belongs to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widget import Widget

from quarterdeck.app.events.fields import exported, facts_of
from quarterdeck.app.events.levels import EpisodeLine
from quarterdeck.app.events.lines import LineFormat, words_of
from quarterdeck.app.views.events.story_model import StoryModel
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.picture.explain.causes import Cause
from quarterdeck.backend.picture.explain.event_filter import kind_of
from quarterdeck.backend.picture.explain.event_index import identity
from quarterdeck.backend.picture.explain.event_trace import EventTrace
from quarterdeck.backend.picture.text.formatting import NameOf, one_line
from quarterdeck.widgets.fact_sheet import FactSheet
from quarterdeck.widgets.line_table import LineTable, TableCell
from quarterdeck.widgets.status_line import StatusLine


def told_in(words: str, place: str) -> str:
    """What happened, with the line of the log that told it."""
    return f"[{one_line(place)}] {words}" if place else words


class EventPane(Vertical):
    """Shows one thing at a time, or is closed."""

    def __init__(
        self, line_format: LineFormat, name_of: NameOf, place_of: Callable[[Record], str] = lambda _: "", *, id: str
    ) -> None:
        """`place_of` says in which line of a log an event stands; empty where it is from no log."""
        super().__init__(id=id)
        self._name_of = name_of
        self._model = StoryModel(
            line_format.time_of, lambda record: told_in(words_of(record, name_of), place_of(record))
        )
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
        """Every field of an event."""
        self.title_line.show([TableCell(kind_of(record), "strong"), TableCell("every field of the event", "faint")])
        self.fields.show(facts_of(record, words_of(record, self._name_of)))
        self._open(self.fields)

    def explain(self, record: Record, chain: Sequence[Cause]) -> None:
        """Why an event happened."""
        steps = f"{len(chain)} causes, the nearest first" if chain else "no cause was recorded"
        legend = "⇠ came as a message, ← needed none" if chain else ""
        self._model.explain(record, chain)
        self._show_story("because", steps, legend)

    def unfold(self, line: EpisodeLine) -> None:
        """The events of an episode."""
        kept, count = len(line.episode.records), line.episode.count
        more = "" if kept == count else f"{kept} of {count} events; l shows all"
        self.show_trace(EventTrace(line.sentence().text, tuple(line.episode.records)), more, None)

    def show_trace(self, story: EventTrace, more: str, record: Record | None) -> None:
        """A story, with the cursor on `record` if that belongs to it. `more` says what else could be told."""
        self._model.show_records(story.records)
        self._show_story("story", story.heading, more)
        if record is not None:
            place = next((place for place, one in enumerate(story.records) if identity(one) == identity(record)), 0)
            self.story.point_at(str(place))

    def rows(self) -> Iterable[Mapping[str, str]]:
        """The events of the story in sight, for an export."""
        rows = [row for row in map(self._model.row, self._model.keys) if row is not None]
        return [exported(row.record) for row in rows]

    def _show_story(self, word: str, heading: str, more: str) -> None:
        self.title_line.show([TableCell(word, "strong"), TableCell(one_line(heading)), TableCell(more, "faint")])
        self.story.show()
        self.story.point_at("0")
        self.story.refresh()
        self._open(self.story)

    def _open(self, content: Widget) -> None:
        for one in (self.story, self.fields):
            one.display = one is content
        self.display = True
