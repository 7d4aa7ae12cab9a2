"""The cursor of the view of events: on a line of the tail, a row of the diagram, or an event of a story."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from quarterdeck.app.console_interface import ConsoleInterface, Pointed
from quarterdeck.app.event_lines import HEADINGS, LEVELS, Entry, EpisodeLine, LineFormat, episode_facts, facts_of
from quarterdeck.app.screen.view_screen import ViewScreen
from quarterdeck.app.session import ConsoleSession
from quarterdeck.app.views.events.log_screen import log_place
from quarterdeck.app.views.events.pane import EventPane
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.picture.events.catalogue import record_words
from quarterdeck.backend.picture.explain.event_index import EventIndex, identity
from quarterdeck.backend.picture.explain.space_time import SpaceTime, SpaceTimeRow
from quarterdeck.backend.picture.text.fact import Fact
from quarterdeck.backend.picture.text.formatting import clock_text, one_line
from quarterdeck.widgets.space_time import SpaceTimeDiagram
from quarterdeck.widgets.tail_log import TailLog


class EventCursorScreen(ViewScreen):
    """A screen with tail, diagram and pane, and one cursor for all of them."""

    def __init__(self, session: ConsoleSession, console: ConsoleInterface) -> None:
        super().__init__(session, console)
        self._trail = EventIndex((), self.session.label_of)
        self._format = LineFormat(self.session.label_of, lambda: self.tail.size.width)
        self._diagram: SpaceTime | None = None
        self._chosen: Record | None = None
        """The event that the cursor was put on, which need not be the first one of its row."""
        self._awaited: Pointed | None = None
        """The event to which the cursor moves as soon as it arrives, and whether it is then explained."""
        self.tail: TailLog[Entry] = TailLog(
            self._format.entry_line,
            title=HEADINGS[LEVELS[0]],
            matcher_of=self._format.matcher,
            id="events-tail",
        )
        self.diagram = SpaceTimeDiagram(clock_text, self._format.time_width, self._row_words, id="space-time")
        self.pane = EventPane(
            self._format, self.session.label_of, lambda record: log_place(session, record), id="event-pane"
        )
        self.diagram.display = False
        self.pane.close()

    def point_at_event(self, event: Pointed) -> None:
        self._awaited = event
        if self._epoch == self.session.epoch:
            self._go_to_awaited()

    def do_event_because(self, line: str) -> None:
        """Explain the event under the cursor, or what made the named member what it is."""
        raise NotImplementedError

    # The row in full

    def row_pointed(self) -> Hashable:
        entry = self._entry()
        record = self._current()
        if self._following or record is None:
            return None
        return (identity(record), entry.episode.count if isinstance(entry, EpisodeLine) else 0)

    def row_facts(self) -> Sequence[Fact]:
        entry, record = self._entry(), self._current()
        if isinstance(entry, EpisodeLine):
            return episode_facts(entry.episode, entry.sentence(), self._format.time_of, self.session.label_of)
        return (
            facts_of(record, record_words(record, self.session.label_of), self.session.label_of)
            if record is not None
            else ()
        )

    def _go_to_awaited(self) -> None:
        awaited, self._awaited = self._awaited, None
        if awaited is not None and awaited.record is None:
            self.do_event_because(f"because {awaited.member}")
        elif awaited is not None and awaited.record is not None and not self._point_at(awaited.record):
            self._awaited = awaited
        elif awaited is not None and awaited.because:
            self.do_event_because("")

    @property
    def _main(self) -> TailLog[Entry] | SpaceTimeDiagram:
        return self.diagram if self.diagram.display else self.tail

    @property
    def _following(self) -> bool:
        return self._main.following

    def _current(self) -> Record | None:
        """Return the event under the cursor: that of a story, unless the tail or the diagram has the focus."""
        pointed = self.pane.pointed if self.focused is not self._main else None
        return pointed or self._pointed()

    def _entry(self) -> Entry | None:
        """Return the line of the tail under the cursor, while that has the focus."""
        if self.diagram.display or (self.pane.pointed is not None and self.focused is not self._main):
            return None
        return self.tail.pointed or (self.tail.shown[-1] if self.tail.shown else None)

    def _pointed(self) -> Record | None:
        if self.diagram.display and self._diagram is not None:
            place = self.diagram.cursor
            if place is None or (self._chosen is not None and self._diagram.row_of(self._chosen) == place):
                return self._chosen if place is not None else None
            return self._diagram.row(place).record
        entry = self.tail.pointed
        if entry is None and self.tail.shown:
            entry = self.tail.shown[-1]
        return entry.record if entry is not None else None

    def _point_at(self, record: Record) -> bool:
        wanted, self._chosen = identity(record), record
        if self.diagram.display and self._diagram is not None:
            row = self._diagram.row_of(record)
            if row is not None:
                self.diagram.point_at(row)
            return row is not None
        return self.tail.point_at(
            lambda entry: identity(entry.record) == wanted or (isinstance(entry, EpisodeLine) and entry.holds(record))
        )

    def _row_words(self, row: SpaceTimeRow) -> str:
        more = f" (+{row.events - 1} more)" if row.events > 1 else ""
        return f"{one_line(row.record.member)}  {record_words(row.record, self.session.label_of)}{more}"
