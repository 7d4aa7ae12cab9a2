"""The log of a member at the line of an event, for clusters that are known from logs."""

from __future__ import annotations

from typing import ClassVar

from rich.cells import chop_cells
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import Static

from quarterdeck.app.session import ConsoleSession
from quarterdeck.backend.clusters.recorded.log_lines import LogExcerpt, excerpt_of
from quarterdeck.backend.clusters.recorded.recorded_run import LoggedCluster
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.picture.text.formatting import one_line
from quarterdeck.widgets.dialog import Dialog
from quarterdeck.widgets.line_table import TableCell
from quarterdeck.widgets.status_line import StatusLine

HINTS = "esc back   ↑ ↓ j k space scroll   g G first and last of these lines"
MARK = "▶"
ROWS_ABOVE = 4
"""Rows in sight above the message."""
LEAST_WIDTH = 20


class LogScreen(Dialog[None]):
    """Lines as they stand in the file, with their numbers, long ones wrapped; those of the message are marked."""

    DEFAULT_CSS = """
    LogScreen { background: $background; layout: vertical; }
    LogScreen #log-title { height: 1; }
    LogScreen #log-box { height: 1fr; overflow-x: hidden; scrollbar-size: 1 1; }
    LogScreen #log-text { width: 100%; height: auto; }
    LogScreen #log-hints { height: 1; color: $text-muted; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter", "dismiss", "Close"),
        Binding("j", "scroll('scroll_down')", show=False),
        Binding("k", "scroll('scroll_up')", show=False),
        Binding("g", "scroll('scroll_home')", show=False),
        Binding("G", "scroll('scroll_end')", show=False),
        Binding("space", "scroll('scroll_page_down')", show=False),
    ]

    def __init__(self, place: str, words: str, excerpt: LogExcerpt) -> None:
        """Create the screen. `place` is the file and the line, `words` is what was read from it."""
        super().__init__()
        self._place, self._words, self._excerpt = place, words, excerpt
        self.title_line = StatusLine(id="log-title", most_lines=2)
        self.box = VerticalScroll(id="log-box")
        self.text = Static(id="log-text", markup=False)

    def compose(self) -> ComposeResult:
        yield self.title_line
        with self.box:
            yield self.text
        yield Static(HINTS, id="log-hints", markup=False)

    def on_mount(self) -> None:
        words = TableCell(one_line(self._words))
        self.title_line.show(TableCell("log", "strong"), TableCell(one_line(self._place), "strong"), words)
        self.box.focus()

    def on_resize(self) -> None:
        rows, first = self._rows(max(LEAST_WIDTH, self.size.width - 2))
        self.text.update(rows)
        self.call_after_refresh(self.box.scroll_to, y=max(0, first - ROWS_ABOVE), animate=False)

    def action_scroll(self, how: str) -> None:
        """Scroll by one of the keys that move the cursor elsewhere."""
        getattr(self.box, how)(animate=False)

    def _rows(self, width: int) -> tuple[Text, int]:
        excerpt = self._excerpt
        digits = len(str(excerpt.first + len(excerpt.lines)))
        room = width - digits - 3
        text = Text(no_wrap=True)
        row = first = 0
        for number, line in enumerate(excerpt.lines, start=excerpt.first):
            marked = number in excerpt.message
            first = row if number == excerpt.message.start else first
            for place, part in enumerate(chop_cells(one_line(line), room) or [""]):
                gutter = f"{MARK if marked else ' '}{number if not place else '':>{digits}}  "
                text.append(gutter, "bold" if marked else "dim")
                text.append(f"{part}\n", "bold" if marked else "")
                row += 1
        return text, first


def log_place(session: ConsoleSession, record: Record) -> str:
    """Return the file and the line that reported `record`; empty if it is from no log."""
    cluster = session.cluster
    return cluster.place_of(record) if isinstance(cluster, LoggedCluster) else ""


def log_screen(session: ConsoleSession, record: Record, words: str) -> LogScreen | None:
    """Return the log at the line that reported `record`, or None if it is from no log. Raises `OSError` if it cannot be read."""
    cluster = session.cluster
    line = cluster.line_of(record) if isinstance(cluster, LoggedCluster) else None
    if line is None:
        return None
    return LogScreen(log_place(session, record), words, excerpt_of(line))
