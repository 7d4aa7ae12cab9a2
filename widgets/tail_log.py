"""The last lines of an endless stream: follow, pause, scroll back, filter, or go to the next match.

Entries become text only when they are painted or searched, so a burst costs little more than the memory it takes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import ClassVar, Generic, NamedTuple, TypeVar

from rich.segment import Segment
from textual import events
from textual.actions import SkipAction
from textual.binding import Binding, BindingType
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip

from quarterdeck.widgets.component_styles import ComponentStyles, fit
from quarterdeck.widgets.line_table import CURSOR_MARK, MOVES, NO_MATCH, chip_text

Entry = TypeVar("Entry")

CAPACITY = 10_000
"""The number of entries kept by default."""

WHEEL_LINES = 3

MATCH_MARK = "•"


class TailLine(NamedTuple):
    """A line of text and its tone, a `Tone`."""

    text: str
    tone: str = "plain"


class TailLog(ComponentStyles, Generic[Entry], can_focus=True):
    """A view of the end of a stream. Its first line is a title: whether it follows, and what it hides.

    A paused tail has its cursor on one of its entries: `pointed`.
    """

    PREFIX = "tail-log"

    BINDINGS: ClassVar[list[BindingType]] = [
        *MOVES,
        Binding("escape", "clear_filter", "Clear filter", show=False),
    ]

    class FilterCleared(Message):
        """The operator has removed the filter."""

    class Moved(Message):
        """The cursor has moved to another entry, or to none."""

    def __init__(
        self,
        line_of: Callable[[Entry], TailLine],
        *,
        title: str,
        headed: bool = True,
        matcher_of: Callable[[str], Callable[[Entry], bool]],
        capacity: int = CAPACITY,
        id: str | None = None,
    ) -> None:
        """Create a tail. `line_of` turns an entry into its line, the same one each time.

        A tail that is not `headed` leaves it to others to show its `title_text`. `matcher_of` turns a filter into a function
        that says whether an entry matches.
        """
        super().__init__(id=id)
        self._line_of = line_of
        self._matcher_of = matcher_of
        self._heading, self._zone = title, ""
        self._head = int(headed)
        self._ring: deque[Entry] = deque(maxlen=capacity)
        self.shown: deque[Entry] = self._ring
        """The entries that the filter leaves."""
        self._shown_ever = 0
        """The number of entries ever shown under the present filter; it numbers those in `shown` from the end."""
        self._bottom = 0
        self._cursor = 0
        self.following = True
        """Whether the newest line stays in sight."""
        self.filter_text = ""
        """The filter in force; empty without one."""
        self._matches: Callable[[Entry], bool] | None = None
        self.hides = True
        """Whether the filter hides the lines that do not match, instead of marking the others."""

    @property
    def unseen(self) -> int:
        """The number of entries that came below the lowest line since the tail was paused."""
        return 0 if self.following else self._shown_ever - self._bottom

    @property
    def pointed(self) -> Entry | None:
        """The entry under the cursor; None while the tail follows, or shows nothing."""
        return None if self.following else self.current

    @property
    def current(self) -> Entry | None:
        """The entry under the cursor, or the last one; None while the tail shows nothing."""
        if not self.shown:
            return None
        return self.shown[-1 if self.following else self._cursor - self._first_kept]

    @property
    def title_text(self) -> str:
        """The title: the heading, whether new lines are followed, and the filter."""
        parts = [
            *filter(None, [self._heading, self._zone]),
            "▼ follow" if self.following else f"‖ paused +{self.unseen} new",
        ]
        if self.filter_text and self.hides:
            parts.append(chip_text(f"/{self.filter_text}  {len(self.shown)} of {len(self._ring)}"))
        elif self.filter_text:
            parts.append(f"{MATCH_MARK} marks /{self.filter_text}")
        return "  ".join(parts)

    def extend(self, entries: Iterable[Entry]) -> None:
        added = list(entries)
        if not added:
            return
        self._ring.extend(added)
        if self.shown is not self._ring:
            matching = [entry for entry in added if self._accepts(entry)]
            self.shown.extend(matching)
            self._shown_ever += len(matching)
        else:
            self._shown_ever += len(added)
        if self.following:
            self.refresh()
        elif self._bottom < self._lowest_bottom() and len(self._ring) == self._ring.maxlen:
            # The lines in sight fell out of the ring at its old end: move on to what is left.
            self._bottom = self._lowest_bottom()
            self._place_cursor(self._cursor)
            self.refresh()
        else:
            self._place_cursor(self._cursor)
            self.refresh(Region(0, 0, self.size.width, 1))

    def restart(self, entries: Iterable[Entry]) -> None:
        """Show `entries` instead of all that was shown. Filter and following stay as they are."""
        self._ring.clear()
        self._ring.extend(entries)
        following = self.following
        self._select()
        self.set_following(following)

    def set_heading(self, heading: str) -> None:
        self._heading = heading
        self.refresh()

    def set_zone(self, zone: str) -> bool:
        """Name the zone of the times in the title. Return whether it is another one than before."""
        changed, self._zone = zone != self._zone, zone
        if changed:
            self.refresh()
        return changed

    def set_filter(self, text: str) -> None:
        """Show, or mark, only the lines that match `text`; show all if it is empty."""
        self.filter_text = text
        self._matches = self._matcher_of(text) if text.strip() else None
        self._select()
        self.set_following(True)

    def set_hiding(self, hides: bool) -> None:
        """Let the filter hide the lines that do not match, or mark the others. The entry under the cursor stays in sight."""
        following, pointed = self.following, self.pointed
        self.hides = hides
        self._select()
        self.set_following(following)
        if pointed is not None:
            self.point_at(lambda entry: entry is pointed)

    def set_following(self, following: bool) -> None:
        """Follow the end, or pause with the cursor on the last line."""
        if not following and self.following:
            self._bottom = self._shown_ever
            self._place_cursor(self._shown_ever - 1)
        changed = following != self.following
        self.following = following
        self.refresh()
        if changed:
            self.post_message(self.Moved())

    def point_at(self, wanted: Callable[[Entry], bool]) -> bool:
        """Pause with the cursor on the latest `wanted` entry. Return whether an entry is wanted."""
        for number in range(self._shown_ever - 1, self._first_kept - 1, -1):
            if wanted(self.shown[number - self._first_kept]):
                self._point(number)
                return True
        return False

    def next_match(self, step: int) -> bool:
        """Move the cursor to the next line that matches the filter, down for 1 and up for -1. Return whether a line matches."""
        if self._matches is None:
            return False
        number = (self._shown_ever if self.following else self._cursor) + step
        while self._first_kept <= number < self._shown_ever:
            if self._accepts(self.shown[number - self._first_kept]):
                self._point(number)
                return True
            number += step
        return False

    def render_line(self, y: int) -> Strip:
        width, height = self.size
        if y < self._head:
            return Strip([Segment(fit(self.title_text, width, gap=0), self.part_style("title"))], width)
        bottom = self._shown_ever if self.following else self._bottom
        first_kept = self._first_kept
        top = max(first_kept, bottom - (height - self._head))
        number = top + y - self._head
        if number >= bottom:
            text = f"  {NO_MATCH}" if y == self._head and self._ring and not self.shown else ""
            return Strip([Segment(text, self.part_style("faint"))]).crop_extend(0, width, self.part_style("plain"))
        entry = self.shown[number - first_kept]
        text, tone = self._line_of(entry)
        at_cursor = not self.following and number == self._cursor
        matches = not self.hides and self._matches is not None and self._accepts(entry)
        text = (CURSOR_MARK if at_cursor else " ") + (MATCH_MARK if matches else " ") + text
        over = "cursor" if at_cursor else "match" if matches else ""
        return Strip([Segment(fit(text, width, gap=0), self.part_style(tone, over))], width)

    def on_resize(self) -> None:
        if not self.following:
            self._bottom = min(self._bottom, self._cursor + self._room)
            self.refresh()

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self._scroll(-WHEEL_LINES)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self._scroll(WHEEL_LINES)

    def on_click(self, event: events.Click) -> None:
        bottom = self._shown_ever if self.following else self._bottom
        number = max(self._first_kept, bottom - (self.size.height - self._head)) + event.y - self._head
        if event.y >= self._head and number < bottom:
            self._point(number)

    def action_move(self, lines: int) -> None:
        """Move the cursor. Moving up stops following; reaching the end resumes it."""
        if self.following:
            if lines < 0 and self.shown:
                self.set_following(False)
                if lines < -1:
                    self._point(self._cursor + lines + 1)
        elif self._cursor + lines >= self._shown_ever:
            self.set_following(True)
        else:
            self._point(self._cursor + lines)

    def action_page(self, pages: int) -> None:
        self.action_move(pages * max(1, self.size.height - 2))

    def action_edge(self, last: int) -> None:
        """Move to the oldest line, or follow the newest."""
        if last:
            self.set_following(True)
        else:
            self.action_move(-max(1, self._shown_ever))

    def action_clear_filter(self) -> None:
        if not self.filter_text:
            raise SkipAction  # the screen knows what else escape means
        self.set_filter("")
        self.post_message(self.FilterCleared())

    @property
    def _first_kept(self) -> int:
        return self._shown_ever - len(self.shown)

    def _select(self) -> None:
        if self._matches is not None and self.hides:
            self.shown = deque((entry for entry in self._ring if self._accepts(entry)), maxlen=self._ring.maxlen)
        else:
            self.shown = self._ring
        self._shown_ever = len(self.shown)
        self._bottom = self._shown_ever
        self._place_cursor(self._shown_ever - 1)

    def _accepts(self, entry: Entry) -> bool:
        return self._matches is None or self._matches(entry)

    def _scroll(self, lines: int) -> None:
        if self.following and lines > 0:
            return
        bottom = (self._shown_ever if self.following else self._bottom) + lines
        if bottom >= self._shown_ever:
            self.set_following(True)
            return
        if self.following:
            self.set_following(False)
        self._bottom = max(bottom, self._lowest_bottom())
        self._place_cursor(max(self._bottom - self._room, min(self._cursor, self._bottom - 1)))
        self.refresh()

    def _point(self, number: int) -> None:
        if self.following:
            self.set_following(False)
        before = self._cursor
        self._place_cursor(number)
        self._bottom = min(max(self._bottom, self._cursor + 1), self._cursor + self._room)
        self._bottom = max(self._bottom, self._lowest_bottom())
        self.refresh()
        if self._cursor != before:
            self.post_message(self.Moved())

    def _place_cursor(self, number: int) -> None:
        self._cursor = max(self._first_kept, min(number, self._shown_ever - 1))

    @property
    def _room(self) -> int:
        return max(1, self.size.height - self._head)

    def _lowest_bottom(self) -> int:
        """Return the least `_bottom` that fills the view with entries that are kept."""
        return min(self._shown_ever, self._first_kept + self._room)
