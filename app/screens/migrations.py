"""What migrates: the queue of every master, what runs, how the last ones ended and why some failed."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import Footer

from app.board_model import BoardModel
from backend.core.properties import SECOND_US
from backend.picture.migration_board import Head, migration_board
from backend.picture.picture import Picture
from widgets.line_table import LineTable, TableCell
from widgets.status_line import StatusLine

HEADS_SHOWN = 6
"""How many sentences stand above the table; each of them takes a line."""


class MigrationsScreen(Screen[None]):
    """Stays up to date while it is in sight. The line below the table spells out the row under the cursor."""

    # With priority, as the table takes escape for itself otherwise.
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,v,q", "close", "back", key_display="esc", priority=True),
    ]

    def __init__(self, picture: Picture, now_us: Callable[[], int]) -> None:
        super().__init__()
        self._picture, self._now_us = picture, now_us
        self._model = BoardModel()
        self._painted_second = -1
        self.title_line = StatusLine(id="board-title")
        self.heads = tuple(StatusLine(id=f"head-{place}", classes="head") for place in range(HEADS_SHOWN))
        self.table = LineTable(self._model, id="board")
        self.sentence = StatusLine(id="board-sentence")
        self.message = StatusLine(id="board-message")

    def compose(self) -> ComposeResult:
        yield self.title_line
        yield from self.heads
        yield self.table
        yield self.sentence
        yield self.message
        yield Footer(show_command_palette=False, compact=True)

    def on_mount(self) -> None:
        self.table.focus()
        self.show()

    def tick(self, *, news: bool) -> None:
        """Called at the console's clock: ages change once a second, all else only with `news` or the cursor."""
        if news or self._now_us() // SECOND_US != self._painted_second:
            self.show()
        else:
            self._spell_out()

    def show(self) -> None:
        """Tell what is known now; what has not changed is not painted again."""
        now_us = self._now_us()
        self._painted_second = now_us // SECOND_US
        board = migration_board(self._picture, now_us)
        history = self._picture.history
        ended = f"{history.done_count} done, {history.failed_count} failed, {history.lost_count} lost in this run"
        self.title_line.show([TableCell("migrations", "strong"), TableCell(ended, "faint")])
        self._show_heads(board.heads)
        self._model.update(board)
        self.table.show()
        self._spell_out()

    def action_close(self) -> None:
        self.dismiss()

    def _show_heads(self, heads: tuple[Head, ...]) -> None:
        for place, line in enumerate(self.heads):
            wanted = place < len(heads)
            if wanted:
                line.show([TableCell(*heads[place])])
            if line.display != wanted:
                line.display = wanted

    def _spell_out(self) -> None:
        row = self._model.row(self.table.cursor_key)
        self.sentence.show([TableCell(row.sentence if row is not None else "nothing has migrated yet", "faint")])
