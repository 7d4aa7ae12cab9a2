"""The log of a member at the line that told an event."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import ScrollableContainer
from textual.screen import ModalScreen
from textual.widgets import Static

from quarterdeck.backend.clusters.log_excerpt import LogExcerpt
from quarterdeck.backend.picture.text.formatting import one_line
from quarterdeck.widgets.line_table import TableCell
from quarterdeck.widgets.status_line import StatusLine

MARK = "▶"
LINES_ABOVE = 4
"""Lines of the log that are in sight above the message."""


class LogScreen(ModalScreen[None]):
    """Lines as they stand in the file, with their numbers; those of the message are marked."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter", "close", "Close"),
        Binding("j", "scroll('scroll_down')", show=False),
        Binding("k", "scroll('scroll_up')", show=False),
        Binding("g", "scroll('scroll_home')", show=False),
        Binding("G", "scroll('scroll_end')", show=False),
        Binding("space", "scroll('scroll_page_down')", show=False),
    ]

    def __init__(self, place: str, words: str, excerpt: LogExcerpt) -> None:
        """`place` is the file and the line, `words` what was made of it."""
        super().__init__()
        self._place, self._words, self._excerpt = place, words, excerpt
        self.title_line = StatusLine(id="log-title")
        self.box = ScrollableContainer(id="log-box")

    def compose(self) -> ComposeResult:
        yield self.title_line
        with self.box:
            yield Static(self._text(), id="log-text")
        yield Static(
            "esc back   ↑ ↓ ← → j k space scroll   g G first and last of these lines", id="log-hints", markup=False
        )

    def on_mount(self) -> None:
        self.title_line.show(
            [TableCell("log", "strong"), TableCell(one_line(self._place), "strong"), TableCell(self._words)]
        )
        self.box.focus()
        place = self._excerpt.message.start - self._excerpt.first
        self.call_after_refresh(self.box.scroll_to, y=max(0, place - LINES_ABOVE), animate=False)

    def action_close(self) -> None:
        self.dismiss()

    def action_scroll(self, how: str) -> None:
        """By the keys that move elsewhere."""
        getattr(self.box, how)(animate=False)

    def _text(self) -> Text:
        """Lines are not wrapped, so that one line of the file is one on the screen."""
        excerpt = self._excerpt
        width = len(str(excerpt.first + len(excerpt.lines)))
        text = Text(no_wrap=True)
        for number, line in enumerate(excerpt.lines, start=excerpt.first):
            is_told = number in excerpt.message
            mark = MARK if is_told else " "
            text.append(f"{mark}{number:>{width}}  ", "bold" if is_told else "dim")
            text.append(f"{one_line(line)}\n", "bold" if is_told else "")
        return text
