"""The columns of the data: the same by member, by map and by partition."""

from __future__ import annotations

from quarterdeck.app.views.columns import BoardModel, ColumnOf
from quarterdeck.backend.picture.boards.data_board import DataRow, Grouping, data_rows, rate_text
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.text.formatting import bytes_text
from quarterdeck.backend.picture.text.not_told import NOT_TOLD

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


def _tone(row: DataRow) -> str:
    return "faint" if row.entries is None else "plain"


COLUMNS: tuple[ColumnOf[DataRow], ...] = (
    ColumnOf("name", lambda row: row.name, widest=12),
    ColumnOf("at", lambda row: row.owner, widest=8),
    ColumnOf("keys", lambda row: _number(row, row.entries), _tone, 9, lambda row: row.entries),
    ColumnOf("bytes", lambda row: _size(row, row.bytes), _tone, "999 MB", lambda row: row.bytes),
    ColumnOf("reads/s", lambda row: _rate(row, _reads(row)), _tone, 7, _reads),
    ColumnOf("writes/s", lambda row: _rate(row, _writes(row)), _tone, 7, _writes),
    ColumnOf("backup keys", lambda row: _number(row, row.backup_entries), _tone, rank=lambda row: row.backup_entries),
    ColumnOf("backup bytes", lambda row: _size(row, row.backup_bytes), _tone, rank=lambda row: row.backup_bytes),
    ColumnOf("backup writes/s", lambda row: _rate(row, row.backup_rate), _tone, rank=lambda row: row.backup_rate),
    ColumnOf("backup lag", lambda row: row.lag, widest="9999 writes, 99.9 s", rank=lambda row: row.behind or None),
)


class TrafficModel(BoardModel[DataRow]):
    """Rows are members, maps or partitions; the name stays in sight."""

    def __init__(self) -> None:
        super().__init__(COLUMNS, fixed=1, tone=lambda row: row.tone)

    def update(self, picture: Picture, grouping: Grouping, now_us: int) -> None:
        """Show the data of this moment."""
        rows = data_rows(picture, grouping, now_us)
        self.show_rows(tuple(rows), rows.__getitem__)
        self.widen("name", (row.name for row in rows.values()), LONGEST_NAME)
        self.widen("at", (row.owner for row in rows.values()), LONGEST_NAME)
        if any(row.missing == NOT_TOLD for row in rows.values()):
            for title in ("keys", "bytes", "reads/s", "writes/s"):
                self.widen(title, [NOT_TOLD])
