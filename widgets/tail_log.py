"""The last so many lines of an endless stream: follow, pause, scroll back, filter.

Entries are kept as they came and become text only when they are painted or searched, so a burst costs little more than
the memory it takes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import ClassVar, Generic, NamedTuple, TypeVar

from rich.cells import set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

Entry = TypeVar("Entry")

CAPACITY = 10_000
"""Entries kept unless told otherwise."""

TONES = ("plain", "good", "strong", "warning", "bad", "faint")

WHEEL_LINES = 3


class TailLine(NamedTuple):
    """A line of text and the tone it is painted in, one of `TONES`."""

    text: str
    tone: str = "plain"


class TailLog(Widget, Generic[Entry], can_focus=True):
    """Shows the end of a stream. The first line is its title: whether it follows, and what it does not show."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"tail-log--title", *(f"tail-log--{tone}" for tone in TONES)}

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "scroll_lines(-1)", "Up", show=False),
        Binding("down,j", "scroll_lines(1)", "Down", show=False),
        Binding("pageup", "scroll_pages(-1)", "Page up", show=False),
        Binding("pagedown", "scroll_pages(1)", "Page down", show=False),
        Binding("home,g", "oldest", "Oldest", show=False),
        Binding("end,G", "newest", "Newest", show=False),
        Binding("escape", "clear_filter", "Clear filter", show=False),
    ]

    class FilterCleared(Message):
        """The reader took the filter away."""

    def __init__(
        self, line_of: Callable[[Entry], TailLine], *, title: str, capacity: int = CAPACITY, id: str | None = None
    ) -> None:
        """`line_of` turns an entry into its line; it must give the same line each time."""
        super().__init__(id=id)
        self._line_of = line_of
        self._heading = title
        self._ring: deque[Entry] = deque(maxlen=capacity)
        self._shown: deque[Entry] = self._ring
        self._shown_ever = 0
        """How many entries were ever shown under the present filter; numbers the entries in `_shown` from the end."""
        self._bottom = 0
        """Number of the entry after the lowest line, while paused."""
        self._following = True
        self._filter = ""
        self._style_of: dict[str, Style] = {}

    @property
    def following(self) -> bool:
        return self._following

    @property
    def filter_text(self) -> str:
        return self._filter

    @property
    def unseen(self) -> int:
        """How many entries came below the lowest line since the tail was paused."""
        return 0 if self._following else self._shown_ever - self._bottom

    @property
    def title_text(self) -> str:
        said = [self._heading, "▼ follow" if self._following else f"‖ paused +{self.unseen} new"]
        if self._filter:
            said.append(f"/{self._filter}  {len(self._shown)} of {len(self._ring)}")
        return "  ".join(said)

    def extend(self, entries: Iterable[Entry]) -> None:
        """Add `entries`, in order, at the end."""
        added = list(entries)
        if not added:
            return
        self._ring.extend(added)
        if self._filter:
            matching = [entry for entry in added if self._matches(entry)]
            self._shown.extend(matching)
            self._shown_ever += len(matching)
        else:
            self._shown_ever += len(added)
        if self._following:
            self.refresh()
        elif self._bottom < self._lowest_bottom() and len(self._ring) == self._ring.maxlen:
            # The lines in sight fell out of the ring at its old end: move on to what is left.
            self._bottom = self._lowest_bottom()
            self.refresh()
        else:
            self.refresh(Region(0, 0, self.size.width, 1))

    def restart(self, entries: Iterable[Entry]) -> None:
        """Show `entries` instead of all that was shown; filter and following stay as they are."""
        self._ring.clear()
        self._ring.extend(entries)
        following = self._following
        self.set_filter(self._filter)
        self.set_following(following)

    def set_filter(self, text: str) -> None:
        """Show only the lines, old and new, that hold `text`, whatever its case; all of them when it is empty."""
        self._filter = text.casefold()
        if self._filter:
            self._shown = deque((entry for entry in self._ring if self._matches(entry)), maxlen=self._ring.maxlen)
        else:
            self._shown = self._ring
        self._shown_ever = len(self._shown)
        self._bottom = self._shown_ever
        self._following = True
        self.refresh()

    def set_following(self, following: bool) -> None:
        """Follow the end, or stand still at what is shown now."""
        if not following and self._following:
            self._bottom = self._shown_ever
        self._following = following
        self.refresh()

    def render_line(self, y: int) -> Strip:
        width, height = self.size
        if y == 0:
            return self._paint(self.title_text, "title", width)
        bottom = self._shown_ever if self._following else self._bottom
        first_kept = self._shown_ever - len(self._shown)
        room = height - 1
        top = max(first_kept, bottom - room)
        number = top + y - 1
        if number >= bottom:
            return self._paint("", "plain", width)
        text, tone = self._line_of(self._shown[number - first_kept])
        return self._paint(text, tone, width)

    def notify_style_update(self) -> None:
        self._style_of.clear()
        super().notify_style_update()

    def on_focus(self) -> None:
        self._restyle()

    def on_blur(self) -> None:
        self._restyle()

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self.action_scroll_lines(-WHEEL_LINES)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self.action_scroll_lines(WHEEL_LINES)

    def action_scroll_lines(self, lines: int) -> None:
        """Scrolling up stops following; reaching the end takes it up again."""
        if self._following and lines > 0:
            return
        bottom = (self._shown_ever if self._following else self._bottom) + lines
        if bottom >= self._shown_ever:
            self.set_following(True)
            return
        self._following = False
        self._bottom = max(bottom, self._lowest_bottom())
        self.refresh()

    def action_scroll_pages(self, pages: int) -> None:
        self.action_scroll_lines(pages * max(1, self.size.height - 2))

    def action_oldest(self) -> None:
        self.action_scroll_lines(-self._shown_ever)

    def action_newest(self) -> None:
        self.set_following(True)

    def action_clear_filter(self) -> None:
        if self._filter:
            self.set_filter("")
            self.post_message(self.FilterCleared())

    def _matches(self, entry: Entry) -> bool:
        return self._filter in self._line_of(entry).text.casefold()

    def _lowest_bottom(self) -> int:
        """The least `_bottom` that fills the view with what is kept."""
        first_kept = self._shown_ever - len(self._shown)
        return min(self._shown_ever, first_kept + max(1, self.size.height - 1))

    def _paint(self, text: str, tone: str, width: int) -> Strip:
        style = self._style_of.get(tone)
        if style is None:
            style = self.rich_style + self.get_component_rich_style(f"tail-log--{tone}", partial=True)
            self._style_of[tone] = style
        return Strip([Segment(set_cell_size(text, width), style)], width)

    def _restyle(self) -> None:
        self._style_of.clear()
        self.refresh()
