"""Data in numbers: what is stored, how much is asked, and which backups lag, by member, by map or by partition."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from textual.widget import Widget

from quarterdeck.app.console_interface import ConsoleInterface, choice_of
from quarterdeck.app.screen.columns import BoardModel, ColumnOf, SortFilterModel
from quarterdeck.app.screen.view_screen import ViewScreen
from quarterdeck.app.session import ConsoleSession
from quarterdeck.backend.boards.data_board import (
    GROUPINGS,
    DataRow,
    Grouping,
    data_rows,
    data_sentence,
    rate_text,
)
from quarterdeck.backend.picture.text.fact import NOT_REPORTED
from quarterdeck.backend.picture.text.formatting import bytes_text, duration_text
from quarterdeck.widgets.line_table import LineTable, TableCell

LONGEST_NAME = 30


def _number(row: DataRow, value: int | None) -> str:
    return row.missing if row.entries is None else "" if value is None else str(value)


def _size(row: DataRow, value: int | None) -> str:
    return row.missing if row.entries is None else "" if value is None else bytes_text(value)


def _rate(row: DataRow, value: float | None) -> str:
    return row.missing if row.entries is None else "" if value is None else rate_text(value)


def _reads(row: DataRow) -> float | None:
    return None if row.rate is None else row.rate.reads


def _writes(row: DataRow) -> float | None:
    return None if row.rate is None else row.rate.writes


def _took(value: float | None) -> str:
    return "" if value is None else duration_text(round(value))


def _tone(row: DataRow) -> str:
    return "faint" if row.entries is None else "plain"


COLUMNS: tuple[ColumnOf[DataRow], ...] = (
    ColumnOf("name", lambda row: row.name, widest=12),
    ColumnOf("at", lambda row: row.owner, widest=8),
    ColumnOf("keys", lambda row: _number(row, row.entries), _tone, 9, lambda row: row.entries),
    ColumnOf("bytes", lambda row: _size(row, row.bytes), _tone, "99.9 MB", lambda row: row.bytes),
    ColumnOf("reads/s", lambda row: _rate(row, _reads(row)), _tone, 7, _reads),
    ColumnOf("writes/s", lambda row: _rate(row, _writes(row)), _tone, 7, _writes),
    ColumnOf("backup keys", lambda row: _number(row, row.backup_entries), _tone, rank=lambda row: row.backup_entries),
    ColumnOf("backup bytes", lambda row: _size(row, row.backup_bytes), _tone, rank=lambda row: row.backup_bytes),
    ColumnOf("backup writes/s", lambda row: _rate(row, row.backup_rate), _tone, rank=lambda row: row.backup_rate),
    ColumnOf("backup lag", lambda row: row.lag, widest="9999 writes, 99.9 s", rank=lambda row: row.behind or None),
    ColumnOf("hits/s", lambda row: _rate(row, row.answered.hits), _tone, 7, lambda row: row.answered.hits),
    ColumnOf("read in", lambda row: _took(row.answered.read_us), _tone, 8, lambda row: row.answered.read_us),
    ColumnOf("write in", lambda row: _took(row.answered.write_us), _tone, 8, lambda row: row.answered.write_us),
    ColumnOf(
        "slowest read",
        lambda row: _took(row.answered.slowest_read_us),
        _tone,
        rank=lambda row: row.answered.slowest_read_us,
    ),
    ColumnOf(
        "slowest write",
        lambda row: _took(row.answered.slowest_write_us),
        _tone,
        rank=lambda row: row.answered.slowest_write_us,
    ),
)


class TrafficScreen(ViewScreen):
    """One table for all three groupings: rows are members, maps or partitions."""

    view = "traffic"
    detail_below = True

    def __init__(self, session: ConsoleSession, console: ConsoleInterface) -> None:
        super().__init__(session, console)
        self._grouping: Grouping = GROUPINGS[0]
        self._model = BoardModel(COLUMNS, fixed=1, tone=lambda row: row.tone)
        self.main = self.board = LineTable(SortFilterModel(self._model), id="traffic")

    def body(self) -> Iterable[Widget]:
        return self.title_line, self.board

    def paint(self) -> None:
        picture, now_us = self.session.picture, self.session.now_us()
        said = data_sentence(picture, now_us)
        self.title_line.show(TableCell(f"data by {self._grouping}", "strong"), TableCell(said.text, said.tone))
        rows = data_rows(picture, self._grouping, now_us)
        self._model.show_rows(tuple(rows), rows.__getitem__)
        self._model.widen("name", (row.name for row in rows.values()), LONGEST_NAME)
        self._model.widen("at", (row.owner for row in rows.values()), LONGEST_NAME)
        if any(row.missing == NOT_REPORTED for row in rows.values()):
            for title in ("keys", "bytes", "reads/s", "writes/s"):
                self._model.widen(title, [NOT_REPORTED])
        self.board.show()

    def sentence(self) -> Sequence[TableCell]:
        row = self._model.row(self.board.cursor_key)
        if row is None or not row.behind:
            return ()
        whose = "its backups have" if self._grouping == "partition" else "as a backup it has"
        return (TableCell(f"{row.name}: {whose} not confirmed {row.lag}", "warning"),)

    @property
    def member_under_cursor(self) -> str:
        """The member of the row: itself, or where the partition is."""
        row = self._model.row(self.board.cursor_key)
        names = (row.name, row.owner) if row is not None else ()
        return next((name for name in names if name in self.session.picture.members), "")

    def do_traffic_by(self, text: str) -> None:
        self._grouping = choice_of(text, GROUPINGS, self._grouping, "grouping")
        self.repaint()
