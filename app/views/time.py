"""The whole run as a strip of time with a playhead, and the events around the moment that is shown."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import ClassVar, NamedTuple

from textual.binding import Binding, BindingType
from textual.widget import Widget

from quarterdeck.app.console_interface import ConsoleInterface
from quarterdeck.app.event_lines import facts_of
from quarterdeck.app.handlers.time import violation_moments
from quarterdeck.app.screen.columns import BoardModel, ColumnOf, SortFilterModel
from quarterdeck.app.screen.view_screen import COLUMNS_BESIDE_PICTURES, ViewScreen
from quarterdeck.app.session import ConsoleSession
from quarterdeck.backend.clusters.cluster import StatusNotes, TimeControl
from quarterdeck.backend.clusters.observed_story import story_landmarks
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.membership.events import MemberStarted
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.picture.events.catalogue import describe_event, tone_of
from quarterdeck.backend.picture.replay.timeline import (
    LANES,
    LEGEND,
    OBSERVED_LANES,
    OBSERVED_LEGEND,
    Landmark,
    Landmarks,
    Timeline,
    draw_timeline,
    greatest_zoom,
    seconds_text,
    window,
)
from quarterdeck.backend.picture.text.fact import Fact
from quarterdeck.backend.picture.text.formatting import counted, one_line, with_names
from quarterdeck.widgets.line_table import LineTable, TableCell
from quarterdeck.widgets.status_line import StatusLine, StatusLines
from quarterdeck.widgets.timeline import TimelineStrip

BEFORE, AFTER = 150, 150
"""Events that are shown around a moment."""

MANY_NEW = 20
"""No operator can read so many new events at once: while they go on, the table changes only at each fifth look."""
LOOKS_PASSED_OVER = 4


class NearbyEvent(NamedTuple):
    """An event, and its distance from the moment that is shown."""

    record: Record
    when: str
    text: str
    away_us: int
    live: bool
    """Whether that moment is the present, which moves on."""

    @property
    def tone(self) -> str:
        """Grey for what has not happened yet at the moment."""
        return "plain" if self.away_us <= 0 else "faint"

    @property
    def event_tone(self) -> str:
        return tone_of(self.record.event) if self.away_us <= 0 else "faint"

    @property
    def away(self) -> str:
        """The distance from the moment; not shown at the present, where it changes all the time."""
        if not self.away_us:
            return "● here"
        if self.live:
            return ""
        near = abs(self.away_us) < SECOND_US
        return f"{self.away_us / 1_000:+.3g} ms" if near else f"{self.away_us / SECOND_US:+.3f} s"


COLUMNS: tuple[ColumnOf[NearbyEvent], ...] = (
    ColumnOf("when", lambda row: row.when, widest=14, rank=lambda row: row.record.at),
    ColumnOf(
        "from here",
        lambda row: row.away,
        lambda row: "faint" if row.away_us else "strong",
        12,
        lambda row: row.record.at,
    ),
    ColumnOf("member", lambda row: one_line(row.record.member), widest=14),
    ColumnOf("event", lambda row: str(row.record.event.__struct_config__.tag), "faint", 19),
    ColumnOf("what happened", lambda row: row.text, lambda row: row.event_tone, 199),
)


class NearbyEventsModel(BoardModel[NearbyEvent]):
    """Rows are events, in order of time."""

    def __init__(self, session: ConsoleSession) -> None:
        super().__init__(COLUMNS, fixed=4, tone=lambda row: row.tone, outlier=lambda row: not (row.away_us or row.live))
        self._session = session
        self._records: dict[str, Record] = {}
        self._seen: tuple[int, int, int, bool, str] | None = None
        self._looked = self._passed_over = 0
        self.shown_us = 0
        self.here = ""
        """Key of the last event up to the moment; empty when there is none."""

    def update(self) -> bool:
        """Show the session as it is now. Return whether anything has changed."""
        session = self._session
        tape, live = session.tape, session.live
        shown_us = session.playhead.shown_us
        seen = (len(tape), tape.revision, 0 if live else shown_us, live, session.clock.zone)
        total = tape.forgotten + len(tape)
        many_new, self._looked = live and total - self._looked > MANY_NEW, total
        if many_new and self._seen is not None and self._passed_over < LOOKS_PASSED_OVER:
            self._passed_over += 1
            return False
        self._passed_over = 0
        if seen == self._seen:
            return False
        self._seen, self.shown_us = seen, shown_us
        before = tape.last(BEFORE, None if live else shown_us)
        after = [] if live else tape.first(AFTER, shown_us)
        self._records = {f"{record.uuid}/{record.seq}": record for record in (*before, *after)}
        self.here = f"{before[-1].uuid}/{before[-1].seq}" if before else ""
        if live and before:
            self.shown_us = before[-1].at
        self.show_rows(tuple(self._records), self._event)
        return True

    def record(self, key: str | None) -> Record | None:
        return self._records.get(key) if key is not None else None

    def record_text(self, record: Record) -> str:
        """Return what happened, with names in place of addresses."""
        name_of = self._session.picture.label_of
        text = describe_event(record.event, name_of)
        return one_line(text if isinstance(record.event, MemberStarted) else with_names(text, name_of))

    def _event(self, key: str) -> NearbyEvent:
        record = self._records[key]
        when = self._session.clock.of_record(record)
        return NearbyEvent(record, when, self.record_text(record), record.at - self.shown_us, self._session.live)


NOTES_SHOWN = 3


class MomentsTable(LineTable):
    """A table whose keys for left, right and the ends move the playhead, by actions of its screen."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "screen.slide(-1)", "Left", show=False),
        Binding("right", "screen.slide(1)", "Right", show=False),
        Binding("home,g", "screen.edge(0)", "First", show=False),
        Binding("end,G", "screen.edge(1)", "Last", show=False),
    ]

    def centre_on(self, key: str) -> None:
        """Move the cursor to a row, and the row to the middle."""
        self.point_at(key)
        self.scroll_to(y=self._cursor_place() - self.scrollable_content_region.height // 2, animate=False)


class TimeScreen(ViewScreen):
    """Left and right move the playhead along the strip, up and down the cursor along the events around it."""

    view = "time"
    detailed = True
    DEFAULT_CSS = """
    TimeScreen #time-legend { height: 1; }
    TimeScreen #strip { height: 9; }
    TimeScreen #moments { height: 1fr; overflow-x: hidden; min-height: 4; scrollbar-size: 1 1; }
    """
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (COLUMNS_BESIDE_PICTURES, "-wide")]

    def __init__(self, session: ConsoleSession, console: ConsoleInterface) -> None:
        super().__init__(session, console)
        self._landmarks = Landmarks()
        self._zoom = 0
        self._drawn: Timeline | None = None
        self._drawn_for: object = None
        self._model = NearbyEventsModel(session)
        self.notes = StatusLines(NOTES_SHOWN, id="notes")
        self.strip = TimelineStrip(id="strip")
        self.legend = StatusLine(id="time-legend", most_lines=2)
        self.main = self.events = MomentsTable(SortFilterModel(self._model), id="moments")

    def body(self) -> Iterable[Widget]:
        return self.title_line, self.notes, self.strip, self.legend, self.events

    def targets(self) -> tuple[str, ...]:
        record = self._model.record(self.events.cursor_key)
        return (record.member,) if record is not None and record.member in self.session.picture.members else ()

    def sentence(self) -> Sequence[TableCell]:
        record = self._model.record(self.events.cursor_key)
        if record is None:
            return [TableCell("nothing has happened yet", "faint")]
        member = one_line(record.member)
        at, what = self.session.clock.spoken(record.at), self._model.record_text(record)
        return [TableCell(f"{at}  {member}#{record.seq}  {what}")]

    def row_pointed(self) -> Hashable:
        return self.events.cursor_key

    def row_facts(self) -> Sequence[Fact]:
        record = self._model.record(self.events.cursor_key)
        return facts_of(record, self._model.record_text(record), self.session.label_of) if record is not None else ()

    def paint(self) -> None:
        session = self.session
        self._landmarks.follow(session.tape)
        self.title_line.show(*self._title())
        self._show_notes()
        self._draw()
        self.legend.show(TableCell(LEGEND if self.session.story is None else OBSERVED_LEGEND, "faint"))
        moved = self._model.update()
        self.events.show()
        if moved and self._model.here:
            self.events.centre_on(self._model.here)

    def _draw(self) -> None:
        tape, playhead, columns = self.session.tape, self.session.playhead, self.strip.columns
        start_us, end_us = tape.start_us, playhead.now_us
        shown_us = end_us if playhead.live else playhead.shown_us
        self._zoom = min(self._zoom, greatest_zoom(start_us, end_us))
        in_sight = window(start_us, end_us, shown_us, self._zoom)
        story = self.session.story
        marked = len(self.session.violations), tape.bookmarks, story
        decides = (len(tape), tape.revision, self._landmarks.taken, in_sight, shown_us, columns, marked)
        if decides != self._drawn_for or self._drawn is None:
            self._drawn_for = decides
            lanes = LANES if story is None else OBSERVED_LANES
            self._drawn = draw_timeline(tape, self._marks(), in_sight, shown_us, columns, lanes)
            self.strip.show(self._drawn)

    # What is said

    def _title(self) -> list[TableCell]:
        session, playhead, tape = self.session, self.session.playhead, self.session.tape
        at = self.session.clock.spoken(session.now_us())
        if session.live:
            held = isinstance(session.cluster, TimeControl) and session.cluster.paused
            how = TableCell(f"‖ newest, standing still at {at}" if held else f"● following, at {at}", "strong")
        else:
            behind = seconds_text((playhead.now_us - playhead.shown_us) // 1_000 * 1_000)
            sign = f"▶ playing at speed {playhead.speed:g}, at" if playhead.mode == "playing" else "‖ standing at"
            how = TableCell(f"{sign} {at}, {behind} before the newest", "warning")
        here = [one_line(mark.name) for mark in tape.bookmarks if mark.at_us == playhead.shown_us]
        zoom = f"1/{1 << self._zoom} of the run in sight" if self._zoom else "the whole run in sight"
        forgotten = counted(tape.forgotten, "event") + f" before {seconds_text(tape.start_us)} forgotten"
        return [
            TableCell("time", "strong"),
            how,
            TableCell(f"bookmark {', '.join(here)}" if here else "", "strong"),
            TableCell(counted(len(tape), "event")),
            TableCell(zoom, "faint"),
            TableCell(forgotten if tape.forgotten else "", "faint"),
        ]

    def _show_notes(self) -> None:
        cluster = self.session.cluster
        notes = list(cluster.notes()) if isinstance(cluster, StatusNotes) else []
        if len(notes) > NOTES_SHOWN:
            more = len(notes) - NOTES_SHOWN
            notes = [*notes[: NOTES_SHOWN - 1], f"{notes[NOTES_SHOWN - 1]}  (and {counted(more, 'line')} more)"]
        self.notes.show([[TableCell(one_line(note), "faint")] for note in notes])

    def _marks(self) -> list[Landmark]:
        session = self.session
        return [
            *self._landmarks.marks,
            *(story_landmarks(story) if (story := self.session.story) is not None else ()),
            *(Landmark(at_us, "violations", "!", "bad", "violation") for at_us in violation_moments(session)),
            *(Landmark(mark.at_us, "bookmarks", "B", "strong", mark.name) for mark in session.tape.bookmarks),
        ]

    # What keys do

    def action_slide(self, columns: int) -> None:
        """Move by so many columns of the strip."""
        drawn = self._drawn
        if drawn is not None:
            column_us = max(1, (drawn.to_us - drawn.from_us) // drawn.width)
            self.session.playhead.go_by(columns * column_us)
            self.repaint()

    def action_edge(self, last: int) -> None:
        """Move to the end of the run, or to its beginning."""
        if last:
            self.session.playhead.follow()
        else:
            self.session.playhead.go(self.session.tape.start_us)
        self.repaint()

    def on_timeline_strip_resized(self) -> None:
        self.paint()
        self.events.centre_on(self._model.here)  # before there was room, nothing could be scrolled into sight

    def on_timeline_strip_chosen(self, message: TimelineStrip.Chosen) -> None:
        if self._drawn is not None and message.column < self._drawn.width:
            self.session.playhead.go(self._drawn.moment_of(message.column))
            self.repaint()

    def do_time_mark(self, back: str) -> None:
        """Go to the next mark, or `back` to the previous one."""
        marks = sorted(self._marks())
        at_us = self.session.playhead.go_among([mark.at_us for mark in marks], forward=not back)
        if at_us is None:
            self.console.show_message(f"there is no mark {'before' if back else 'after'} this")
            return
        here = [mark.text + (f" and {mark.times - 1} more" * (mark.times > 1)) for mark in marks if mark.at_us == at_us]
        self.console.show_message(f"{self.session.clock.spoken(at_us)}: {'; '.join(here)}")
        self.repaint()

    def do_time_here(self, _: str) -> None:
        record = self._model.record(self.events.cursor_key)
        if record is not None:
            self.session.playhead.go(record.at)
            self.repaint()

    def do_time_zoom(self, steps: str) -> None:
        """Zoom in or out by so many `steps`; without any, show the whole run."""
        self._zoom = max(0, self._zoom + int(steps)) if steps else 0
        self.repaint()
