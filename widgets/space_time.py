"""The space–time diagram, painted line by line: members as lanes, time downward, arrows where messages arrived.

Only rows in sight are asked for. The cursor is on a row; while the diagram follows, it is on the last one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, NamedTuple

from rich.segment import Segment
from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.strip import Strip

from quarterdeck.backend.picture.explain.space_time import Mark, SpaceTime, SpaceTimeRow
from quarterdeck.backend.picture.text.formatting import duration_text
from quarterdeck.widgets.component_styles import ComponentStyles, fit
from quarterdeck.widgets.line_table import CURSOR_MARK, MOVES
from quarterdeck.widgets.tail_log import WHEEL_LINES

LEAST_LANE, MOST_LANE = 9, 16
LEAST_WORDS = 24
"""The least width of the words at the right; with less room they are left out."""

LONG_GAP_US = 500_000
GAP_MARK = "⋮"
HEAD_LINES = 2
STRIPS_KEPT = 1_000


class Layout(NamedTuple):
    """Where things stand in a line. `lanes` counts the lanes in sight, beginning with lane `first`."""

    left: int
    lane: int
    first: int
    lanes: int
    words: int

    def x(self, lane: int) -> int:
        """Return the column of a lane's line."""
        return self.left + (lane - self.first) * self.lane + 1


class SpaceTimeDiagram(ComponentStyles, can_focus=True):
    """A diagram that paints a `SpaceTime`. Call `show` when it has grown, or to show another one."""

    PREFIX = "space-time"
    DEFAULT_CSS = """
    .space-time--title { text-style: bold; background: $panel; color: $foreground; }
    SpaceTimeDiagram:focus .space-time--title { background: $primary-muted; }
    .space-time--lanes { text-style: bold; }
    .space-time--arrow { color: $text-primary; }
    .space-time--cursor { background: $surface-lighten-2; }
    SpaceTimeDiagram:focus .space-time--cursor { background: $primary-muted; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        *MOVES,
        Binding("left", "slide(-1)", "Members to the left", show=False),
        Binding("right", "slide(1)", "Members to the right", show=False),
    ]

    class Moved(Message):
        """The cursor has moved to another row."""

    def __init__(
        self,
        time_of: Callable[[int], str],
        words_of: Callable[[SpaceTimeRow], str],
        *,
        id: str | None = None,
    ) -> None:
        """Create a diagram. `time_of` writes each moment in as many cells; `words_of` describes a row."""
        super().__init__(id=id)
        self._time_of, self._words_of = time_of, words_of
        self._model: SpaceTime | None = None
        self._revision = 0
        self._length = 0
        self._cursor = 0
        self._top = 0
        self._first_lane = 0
        self.following = True
        """Whether the newest row stays in sight."""
        self._strips: dict[tuple[int, bool], Strip] = {}
        self._layout: Layout | None = None

    @property
    def cursor(self) -> int | None:
        """The row under the cursor; None while the diagram is empty."""
        return self._cursor if self._length else None

    @property
    def title_text(self) -> str:
        """The title: the scale, and which part is in sight."""
        model = self._model
        if model is None:
            return "space–time"
        scale = f"a row is at most {duration_text(model.zoom_us)}" if model.zoom_us else "a row is an event"
        state = "▼ follow" if self.following else f"‖ paused, row {self._cursor + 1} of {self._length}"
        layout = self._laid_out()
        hidden = len(model.lanes) - layout.lanes
        sideways = f"← {layout.first} lanes, {hidden - layout.first} lanes →" if hidden else ""
        return "  ".join(filter(None, ("space–time", state, scale, sideways)))

    def show(self, model: SpaceTime) -> None:
        """Show `model` as it is now. The cursor keeps its row as far as possible."""
        if model is not self._model or model.revision != self._revision:
            self._model, self._revision = model, model.revision
            self.forget()
        elif len(model) == self._length and not model.zoom_us:
            return
        for place in (self._length - 1, self._length):
            self._strips.pop((place, False), None)
            self._strips.pop((place, True), None)
        self._length = len(model)
        if self.following:
            self._cursor = max(0, self._length - 1)
        self._cursor = max(0, min(self._cursor, self._length - 1))
        self._bring_into_sight()
        self.refresh()

    def forget(self) -> None:
        """Repaint everything, because times or words are written differently now."""
        self._strips.clear()
        self._layout = None
        self.refresh()

    def point_at(self, row: int) -> None:
        """Pause with the cursor on a row."""
        self.following = False
        self._move_to(row)

    def set_following(self, following: bool) -> None:
        """Follow the end, or pause."""
        self.following = following
        if following:
            self._move_to(self._length - 1)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        if self._model is None or y == 0:
            return Strip([Segment(fit(self.title_text, width, gap=0), self.part_style("title"))], width)
        if y == 1:
            return self._paint_names(self._model, width)
        place = self._top + y - HEAD_LINES
        if place >= self._length:
            return Strip.blank(width, self.part_style("plain"))
        at_cursor = place == self._cursor and not self.following
        strip = self._strips.get((place, at_cursor))
        if strip is None:
            if len(self._strips) > STRIPS_KEPT:
                self._strips.clear()
            strip = self._strips[place, at_cursor] = self._paint_row(self._model.row(place), at_cursor, width)
        return strip

    def forget_painted(self) -> None:
        self._strips.clear()

    def on_resize(self) -> None:
        self.forget()
        self._bring_into_sight()

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self.action_move(-WHEEL_LINES)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self.action_move(WHEEL_LINES)

    def on_click(self, event: events.Click) -> None:
        place = self._top + event.y - HEAD_LINES
        if event.y >= HEAD_LINES and place < self._length:
            self.point_at(place)

    def action_move(self, rows: int) -> None:
        """Move the cursor. Moving up stops following; moving beyond the end resumes it."""
        if not self._length or (self.following and rows > 0):
            return
        if self.following:
            self.following = False
            self._move_to(self._cursor + rows + 1)
            self.post_message(self.Moved())
        elif self._cursor + rows >= self._length:
            self.action_edge(1)
        else:
            self._move_to(self._cursor + rows)

    def action_page(self, pages: int) -> None:
        self.action_move(pages * max(1, self._room - 1))

    def action_edge(self, last: int) -> None:
        """Move to the oldest row, or follow the newest."""
        if not last:
            self.action_move(-max(1, self._length))
            return
        self.set_following(True)
        self.post_message(self.Moved())

    def action_slide(self, lanes: int) -> None:
        self._first_lane = self._laid_out().first + lanes
        self.forget()

    @property
    def _room(self) -> int:
        return max(1, self.size.height - HEAD_LINES)

    def _move_to(self, row: int) -> None:
        before = self._cursor
        self._cursor = max(0, min(row, self._length - 1))
        self._bring_into_sight()
        self.refresh()
        if self._cursor != before:
            self.post_message(self.Moved())

    def _bring_into_sight(self) -> None:
        self._top = max(0, min(self._top, self._cursor, self._length - self._room))
        self._top = max(self._top, self._cursor - self._room + 1)
        if self.following:
            self._top = max(0, self._length - self._room)

    def _laid_out(self) -> Layout:
        if self._layout is None:
            lanes = len(self._model.lanes) if self._model is not None else 0
            left = 1 + len(self._time_of(0)) + 2
            room = max(0, self.size.width - left)
            lane = min(MOST_LANE, max(LEAST_LANE, room // max(1, lanes)))
            in_sight = max(1, min(lanes, room // lane))
            first = max(0, min(self._first_lane, lanes - in_sight))
            words = room - in_sight * lane
            self._layout = Layout(left, lane, first, in_sight, words if words >= LEAST_WORDS else 0)
        return self._layout

    def _paint_names(self, model: SpaceTime, width: int) -> Strip:
        layout = self._laid_out()
        names = [
            fit(f"{lane.letter} {lane.label}", layout.lane)
            for lane in model.lanes[layout.first : layout.first + layout.lanes]
        ]
        text = " " * (layout.left + 1) + "".join(names)
        return Strip([Segment(fit(text, width, gap=0), self.part_style("lanes"))], width)

    def _paint_row(self, row: SpaceTimeRow, at_cursor: bool, width: int) -> Strip:
        layout = self._laid_out()
        lanes_end = layout.left + layout.lanes * layout.lane
        letters = [" "] * lanes_end
        for lane in range(layout.first, layout.first + layout.lanes):
            letters[layout.x(lane)] = row.lanes[lane]
        head = (CURSOR_MARK if at_cursor else " ") + self._time_of(row.at_us)
        letters[: len(head) + 1] = [*head, GAP_MARK if row.gap_us >= LONG_GAP_US else " "]
        spans = [(0, layout.left, "faint")]
        taken = [False] * lanes_end
        ends: dict[int, int] = {}
        for mark in row.marks:
            if layout.first <= mark.lane < layout.first + layout.lanes:
                start, end = self._put_mark(letters, layout, mark)
                taken[start:end] = [True] * (end - start)
                ends[mark.lane] = end
                spans.append((start, end, mark.tone))
        for arrow in row.arrows:
            spans += self._put_arrow(letters, taken, layout, arrow.source, arrow.target, ends)
        over = "cursor" if at_cursor else ""
        segments = self._segments(letters, spans, over)
        if layout.words:
            words = fit(self._words_of(row), width - lanes_end, gap=0)
            segments.append(Segment(words, self.part_style("faint", over)))
        return Strip(segments).crop_extend(0, width, self.part_style("plain", over))

    def _put_mark(self, letters: list[str], layout: Layout, mark: Mark) -> tuple[int, int]:
        start = layout.x(mark.lane)
        text = mark.text + (f"+{mark.more}" if mark.more else "")
        if len(text) > layout.lane - 2:
            text = f"{text[: layout.lane - 3]}…"
        letters[start : start + len(text)] = text
        return start, start + len(text)

    def _put_arrow(
        self, letters: list[str], taken: list[bool], layout: Layout, source: int, target: int, ends: dict[int, int]
    ) -> list[tuple[int, int, str]]:
        """Draw a message around the present marks. Return its spans."""
        last = layout.first + layout.lanes - 1
        if not layout.first <= target <= last:
            return []
        first_lane, last_lane = max(layout.first, min(source, last)), target
        if source < target:
            start = layout.left if source < layout.first else ends.get(first_lane, layout.x(first_lane))
            end = layout.x(last_lane) - 1
            head, tail, at_head = "▶", "├", end
        else:
            start = ends.get(last_lane, layout.x(last_lane)) + 1
            end = layout.left + layout.lanes * layout.lane - 1 if source > last else layout.x(first_lane)
            head, tail, at_head = "◀", "┤", start
        spans: list[tuple[int, int, str]] = []
        at_tail = start if at_head == end else end
        bare = source not in ends and layout.first <= source <= last
        for place in range(start, end + 1):
            if taken[place]:
                continue
            if letters[place] in "▶◀" and place not in (at_head, at_tail):
                continue
            letters[place] = head if place == at_head else tail if place == at_tail and bare else "─"
            spans.append((place, place + 1, "arrow"))
        return spans

    def _segments(self, letters: list[str], spans: list[tuple[int, int, str]], over: str) -> list[Segment]:
        """Return the line in runs of one tone; cells outside all spans are lanes."""
        tones = ["faint"] * len(letters)
        for start, end, tone in spans:
            tones[start:end] = [tone] * (end - start)
        return self.toned(zip(letters, tones, strict=True), over)
