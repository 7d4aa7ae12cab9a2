"""What happened, line by line or as a space–time diagram; why it happened; and the stories it belongs to."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import partial

from textual import on
from textual.widget import Widget

from quarterdeck.app.console_interface import ConsoleInterface, Pointed, choice_of
from quarterdeck.app.event_lines import (
    HEADINGS,
    LEVELS,
    BusyLine,
    Entry,
    EpisodeLine,
    EventLine,
    LevelFeed,
    LineFormat,
    episode_facts,
    exported,
    exported_entry,
    facts_of,
)
from quarterdeck.app.screen.view_screen import COLUMNS_BESIDE_PICTURES, ViewScreen
from quarterdeck.app.session import RECENT, ConsoleSession
from quarterdeck.app.views.events.log_screen import log_place, log_screen
from quarterdeck.app.views.events.pane import EventPane
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.picture.events.catalogue import kind_of, record_words
from quarterdeck.backend.picture.explain.causes import causes
from quarterdeck.backend.picture.explain.episodes.episodes import deciding_record
from quarterdeck.backend.picture.explain.event_index import EventIndex, identity
from quarterdeck.backend.picture.explain.event_trace import Subject, event_trace, state_record, subjects_of
from quarterdeck.backend.picture.explain.space_time import ZOOMS_US, SpaceTime, SpaceTimeRow
from quarterdeck.backend.picture.replay.tape import ReorderBuffer
from quarterdeck.backend.picture.text.fact import Fact
from quarterdeck.backend.picture.text.formatting import Refusal, duration_text, one_line
from quarterdeck.widgets.line_table import TableCell
from quarterdeck.widgets.space_time import SpaceTimeDiagram
from quarterdeck.widgets.tail_log import TailLog

ZOOM_WORDS = {"event": 0, **{f"{us // 1000}ms" if us < 1_000_000 else f"{us // 1_000_000}s": us for us in ZOOMS_US[1:]}}


class EventsScreen(ViewScreen):
    """The tail and the diagram show the same events, filtered alike, with one cursor; it may be on an event of a story, too."""

    view = "events"
    detailed = True
    DEFAULT_CSS = """
    EventsScreen #events-tail, EventsScreen #space-time { height: 1fr; min-height: 3; }
    EventsScreen #event-pane { height: 1fr; min-height: 4; }
    EventsScreen #event-title { height: 1; background: $panel; color: $foreground; }
    EventsScreen #event-story { height: 1fr; min-height: 3; scrollbar-size: 1 1; }
    EventsScreen #event-fields { height: 1fr; min-height: 3; scrollbar-size: 1 1; }
    """
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (COLUMNS_BESIDE_PICTURES, "-wide")]

    def __init__(self, session: ConsoleSession, console: ConsoleInterface) -> None:
        super().__init__(session, console)
        self._order = ReorderBuffer(RECENT)
        self._trail = EventIndex((), session.label_of)
        self._format = LineFormat(session.label_of, lambda: self.tail.size.width, session.clock)
        self._diagram: SpaceTime | None = None
        """What is drawn while the diagram is in sight, and only then."""
        self._chosen: Record | None = None
        """The event that the cursor was put on, which need not be the first one of its row."""
        self._has_been_sent = False
        """Whether another view has put the cursor where it is."""
        self._awaited: Pointed | None = None
        """The event to which the cursor moves as soon as it arrives, and whether it is then explained."""
        self.tail: TailLog[Entry] = TailLog(
            self._format.entry_line,
            title=HEADINGS[LEVELS[0]],
            matcher_of=self._format.matcher,
            id="events-tail",
        )
        self.diagram = SpaceTimeDiagram(session.clock.of_moment, self._row_words, id="space-time")
        self.pane = EventPane(self._format, session.label_of, partial(log_place, session), id="event-pane")
        self.diagram.display = False
        self.pane.close()
        self._zoom_us = 0
        self._subjects: tuple[Subject, ...] = ()
        self._subject_index = 0
        self._feed = LevelFeed(session, self.tail)

    def body(self) -> Iterable[Widget]:
        return self.tail, self.diagram, self.pane

    # What the console asks

    @property
    def focused_first(self) -> Widget:
        return self.pane.content or self._main

    def receive(self, records: Sequence[Record]) -> None:
        self._order.take(records)

    def aim(self, member: str, event: Pointed | None) -> None:
        """Follow the present again when the view is opened by itself after another view had opened it on an event."""
        if event is None and self._has_been_sent:
            self.pane.close()
            self._main.set_following(True)
        self._has_been_sent = event is not None
        super().aim(member, event)

    def point_at_event(self, event: Pointed) -> None:
        for _ in range(2):  # all that came while it was out of sight; then those that the first time held back
            self._absorb(self._order.release())
        self._awaited = event
        if self._epoch == self.session.epoch:
            self._go_to_awaited()

    def tick(self, *, news: bool) -> None:
        """Show records a tick after they came, so that overtaken ones are sorted in."""
        self._absorb(self._order.release())
        if self._epoch == self.session.epoch:
            self._feed.grow(self._trail.records)
        super().tick(news=news)

    def paint(self) -> None:
        self._go_to_awaited()
        self._reserve(self.session.cluster.labels)
        if self.tail.set_zone(self.session.clock.zone):
            self.diagram.forget()
        if self._diagram is not None:
            if len(self._diagram.lanes) != len(self.session.cluster.labels):
                self._redraw()
            self.diagram.show(self._diagram)

    def targets(self) -> tuple[str, ...]:
        """Return the member of the line under the cursor; nothing while events run past."""
        record = self._current()
        if record is None or (self._following and self.pane.pointed is None):
            return ()
        label = getattr(record.event, "target", record.member)
        entry = self._entry()
        subjects = entry.episode.subjects if isinstance(entry, EpisodeLine) else ()
        members = (*subjects, record.member, label)
        return tuple(member for member in members if member in self.session.cluster.labels)[:1]

    def sentence(self) -> Sequence[TableCell]:
        record = self._current()
        if record is None or (self._following and self.pane.pointed is None):
            return ()
        entry = self._entry()
        if isinstance(entry, EpisodeLine):
            return [TableCell(entry.episode.kind, "faint"), TableCell(entry.sentence().text)]
        place = TableCell(one_line(log_place(self.session, record)), "strong")
        return [TableCell(kind_of(record), "faint"), place, TableCell(record_words(record, self.session.label_of))]

    def filter_by(self, text: str) -> None:
        self.tail.set_filter(text)
        self._redraw()

    @property
    def filter_text(self) -> str:
        return self.tail.filter_text

    def rows(self) -> Iterable[Mapping[str, str]]:
        if self.pane.content is self.pane.story:
            return self.pane.rows()
        return [exported_entry(entry) for entry in self.tail.shown]

    def copied_rows(self) -> Sequence[Mapping[str, str]]:
        entry, record = self._entry(), self._current()
        if entry is not None:
            return [exported_entry(entry)]
        return [exported(record)] if record is not None else []

    # The row in full

    def row_pointed(self) -> Hashable:
        entry, record = self._entry(), self._current()
        if self._following or record is None:
            return None
        return (identity(record), entry.episode.count if isinstance(entry, EpisodeLine) else 0)

    def row_facts(self) -> Sequence[Fact]:
        entry, record = self._entry(), self._current()
        if isinstance(entry, EpisodeLine):
            return episode_facts(entry.episode, entry.sentence(), self._format.time_of, self.session.label_of)
        if record is None:
            return ()
        return facts_of(record, record_words(record, self.session.label_of), self.session.label_of)

    # The cursor

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
        return self.tail.current

    def _pointed(self) -> Record | None:
        if self._diagram is not None:
            place = self.diagram.cursor
            if place is None or (self._chosen is not None and self._diagram.row_of(self._chosen) == place):
                return self._chosen if place is not None else None
            return self._diagram.row(place).record
        entry = self.tail.current
        return entry.record if entry is not None else None

    def _point_at(self, record: Record) -> bool:
        wanted, self._chosen = identity(record), record
        if self._diagram is not None:
            row = self._diagram.row_of(record)
            if row is not None:
                self.diagram.point_at(row)
            return row is not None
        return self.tail.point_at(
            lambda entry: identity(entry.record) == wanted or (isinstance(entry, EpisodeLine) and entry.holds(record))
        )

    @on(TailLog.Moved)
    @on(SpaceTimeDiagram.Moved)
    def _cursor_moved(self) -> None:
        record = self._pointed()
        if self.pane.content is self.pane.fields and record is not None and not self._following:
            self.pane.show_fields(record)
        self._say_below()

    def on_tail_log_filter_cleared(self) -> None:
        self._redraw()

    def _reserve(self, names: Iterable[str]) -> None:
        if self._format.reserve(names):
            self.tail.refresh()

    # The events

    def _absorb(self, records: Sequence[Record]) -> None:
        if not records:
            return
        self._reserve({record.member for record in records})
        self._trail.extend(records)
        self._feed.extend(records)
        if len(self._trail) > 2 * RECENT:
            self._trail = EventIndex(self._trail.records[-RECENT:], self.session.label_of)
            self._redraw()
        elif self._diagram is not None:
            self._diagram.extend(self._selected(records))
            self.diagram.show(self._diagram)

    def restart(self, records: Sequence[Record]) -> None:
        self._order.clear()
        self._reserve({record.member for record in records})
        self._trail = EventIndex(records, self.session.label_of)
        self._feed.restart(records)
        self._redraw()

    def do_event_level(self, text: str) -> None:
        level = choice_of(text, LEVELS, self._feed.level, "level")
        if self.diagram.display:
            self.do_space_time()
        record, following = self._pointed(), self._following
        self._feed.choose(level, self._trail.records)
        if record is not None and not following:
            self._point_at(record)
        self.console.show_message(HEADINGS[level])
        self._say_below()

    def _selected(self, records: Iterable[Record]) -> Iterable[Record]:
        if not self.tail.filter_text.strip() or not self.tail.hides:
            return records
        accepts = self._format.matcher(self.tail.filter_text)
        return [record for record in records if accepts(EventLine(record))]

    def do_back(self, _: str) -> None:
        if self.pane.display:
            self.pane.close()
            self.focus_body()
            self._say_below()
        elif self.diagram.display:
            self.do_space_time()
        else:
            self.console.back()

    def _pause_at_current(self) -> Record | None:
        """Return the event in question with the cursor on it, so that it does not run away while the operator looks at it."""
        record = self._current()
        if record is None:
            self.console.show_message("there is no event yet", error=True)
        elif self._following:
            self._point_at(record)
        return record

    def _pane_shown(self) -> None:
        self.focus_body()
        self._say_below()

    def do_event_fields(self, _: str) -> None:
        entry = self._entry()
        if isinstance(entry, BusyLine):
            self.console.show_message("many events in one second; l shows each of them")
        elif isinstance(entry, EpisodeLine):
            self._pause_at_current()
            self.pane.unfold(entry)
            self._pane_shown()
        else:
            record = self._pause_at_current()
            if record is not None and not self._show_log(record):
                self.pane.show_fields(record)
                self._pane_shown()

    def _show_log(self, record: Record) -> bool:
        """Show the line of the log that reported it. Return whether a log did."""
        try:
            shown = log_screen(self.session, record, record_words(record, self.session.label_of))
        except OSError as problem:
            raise Refusal(str(problem)) from problem
        if shown is not None:
            self.app.push_screen(shown)
        return shown is not None

    def do_event_because(self, line: str) -> None:
        member = line.partition(" ")[2]
        if member:
            self._check_member(member)
            record = state_record(self._trail, member)
            if record is None:
                raise Refusal(f"nothing is recorded of {one_line(member)}")
            self._point_at(record)
        else:
            entry = self._entry()
            record = self._pause_at_current()
            if record is not None and isinstance(entry, EpisodeLine):
                record = deciding_record(entry.episode)
        if record is not None:
            self.pane.explain(record, causes(self._trail, record))
            self._pane_shown()

    def do_event_story(self, member: str) -> None:
        """Show all records of the named member, or of what the event under the cursor is about: each time of the next subject."""
        if member:
            self._check_member(member)
        record = None if member else self._pause_at_current()
        subjects: tuple[Subject, ...] = (Subject("member", member),) if member else ()
        if record is not None:
            subjects = subjects_of(self._trail, record, self.session.episodes)
        if not subjects:
            return
        again = subjects == self._subjects and self.pane.content is self.pane.story
        self._subject_index = (self._subject_index + 1) % len(subjects) if again else 0
        self._subjects = subjects
        others = f"u: the {subjects[(self._subject_index + 1) % len(subjects)].kind}" if len(subjects) > 1 else ""
        trace = event_trace(self._trail, subjects[self._subject_index], self.session.episodes)
        self.pane.show_trace(trace, others, record)
        self._pane_shown()

    def _check_member(self, member: str) -> None:
        if member not in self.session.cluster.labels:
            raise Refusal(f"there is no member {member!r}")

    def do_event_jump(self, _: str) -> None:
        record = self._current()
        if record is None:
            raise Refusal("there is no event yet")
        self.console.goto("time", at_us=record.at)

    def do_event_follow(self, _: str) -> None:
        self._main.set_following(not self._following)
        self._say_below()

    def do_event_next(self, back: str) -> None:
        """Go to the next event that matches the filter, or `back` to the previous one."""
        if not self.tail.filter_text.strip():
            raise Refusal("type what to look for with / first")
        if self.diagram.display:
            raise Refusal("the diagram has no matches to go to; z shows the lines again")
        if not self.tail.next_match(-1 if back else 1):
            self.console.show_message("no further match " + ("above" if back else "below"))

    def do_event_marking(self, text: str) -> None:
        if text:
            self.tail.set_filter(text)
        self.tail.set_hiding(not self.tail.hides and not text)
        self._redraw()
        marks = "the filter marks what matches; n and N go there"
        self.console.show_message("the filter hides what does not match" if self.tail.hides else marks)

    # The diagram

    def do_space_time(self, _: str = "") -> None:
        record, following = self._pointed(), self._following
        self.diagram.display = not self.diagram.display
        self.tail.display = not self.diagram.display
        self._redraw()
        self._main.set_following(following)
        if record is not None and not following and not self._point_at(record):
            if self._diagram is not None:  # it is not drawn: the row of its time
                self.diagram.point_at(self._diagram.row_at(record.at))
        self.focus_body()
        self._say_below()

    def _row_words(self, row: SpaceTimeRow) -> str:
        more = f" (+{row.events - 1} more)" if row.events > 1 else ""
        return f"{one_line(row.record.member)}  {record_words(row.record, self.session.label_of)}{more}"

    def _redraw(self) -> None:
        """Draw the diagram anew, if it is in sight."""
        if not self.diagram.display:
            self._diagram = None
            return
        self._diagram = SpaceTime(self._trail, self.session.cluster.labels, self._zoom_us)
        self._diagram.extend(self._selected(self._trail.records))
        self.diagram.show(self._diagram)

    def do_event_zoom(self, text: str) -> None:
        """Let a row take up the time in `text`; without it the next longer one, with `-` the next shorter one."""
        if text in ZOOM_WORDS:
            zoom_us = ZOOM_WORDS[text]
        elif text in ("", "-"):
            place = ZOOMS_US.index(self._zoom_us) + (-1 if text else 1)
            zoom_us = ZOOMS_US[min(max(place, 0), len(ZOOMS_US) - 1)]
        else:
            raise Refusal(f"a row takes up one of {', '.join(ZOOM_WORDS)}; not {text!r}")
        if not self.diagram.display:
            self.do_space_time()
        record, following = self._pointed(), self._following
        self._zoom_us = zoom_us
        self._redraw()
        if record is not None and not following:
            self._point_at(record)
        each = f"a row is at most {duration_text(zoom_us)}" if zoom_us else "every event has a row of its own"
        self.console.show_message(each)
