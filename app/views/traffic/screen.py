"""Data in numbers: what is stored, how much is asked, and which backups lag, by member, by map or by partition."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from textual.widget import Widget

from quarterdeck.app.console_interface import ConsoleInterface
from quarterdeck.app.session import ConsoleSession
from quarterdeck.app.views.sort_filter_model import SortFilterModel
from quarterdeck.app.views.traffic.model import TrafficModel
from quarterdeck.app.views.view_screen import ViewScreen
from quarterdeck.backend.picture.boards.data_board import GROUPINGS, Grouping, data_sentence
from quarterdeck.widgets.line_table import LineTable, TableCell
from quarterdeck.widgets.status_line import StatusLine


class TrafficScreen(ViewScreen):
    """One table for all three; its rows are what is chosen."""

    view = "traffic"

    def __init__(self, session: ConsoleSession, console: ConsoleInterface) -> None:
        super().__init__(session, console)
        self._grouping: Grouping = GROUPINGS[0]
        self._model = TrafficModel()
        self.title_line = StatusLine(id="traffic-title")
        self.board = LineTable(SortFilterModel(self._model), id="traffic")
        self.handlers |= {"traffic-by": self._choose}

    def body(self) -> Iterable[Widget]:
        yield self.title_line
        yield self.board

    @property
    def table(self) -> LineTable:
        return self.board

    def paint(self) -> None:
        picture, now_us = self.session.picture, self.session.now_us()
        said = data_sentence(picture, now_us)
        self.title_line.show([TableCell(f"data by {self._grouping}", "strong"), TableCell(said.text, said.tone)])
        self._model.update(picture, self._grouping, now_us)
        self.board.show()

    def sentence(self) -> Sequence[TableCell]:
        row = self._model.row(self.board.cursor_key)
        if row is None or not row.behind:
            return ()
        whose = "its backups have" if self._grouping == "partition" else "as a backup it has"
        return (TableCell(f"{row.name}: {whose} not confirmed {row.lag}", "warning"),)

    def _choose(self, text: str) -> None:
        """By key the next; by word the one that is named."""
        known = {str(one): one for one in GROUPINGS}
        if text and text not in known:
            self.console.show_message(f"data is shown by {', '.join(known)}, not by {text!r}", error=True)
            return
        after = GROUPINGS[(GROUPINGS.index(self._grouping) + 1) % len(GROUPINGS)]
        self._grouping = known.get(text, after)
        self.repaint()
