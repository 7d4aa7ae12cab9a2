"""The columns of the panes: suspicions, tables of partitions, and lanes of migrations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from quarterdeck.app.views.columns import BoardModel, ColumnOf
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.picture.boards.overview.migration_lanes import SLOTS, LaneRow, MigrationLanes
from quarterdeck.backend.picture.boards.overview.suspicion_rows import SuspicionRow, SuspicionRows, suspicion_rows
from quarterdeck.backend.picture.boards.overview.table_rows import DIGEST_SHOWN, STRIP_LENGTH, TableRow, TableRows
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.text.formatting import one_line

LONGEST_NAME = 16

SUSPICION_COLUMNS: tuple[ColumnOf[SuspicionRow], ...] = (
    ColumnOf("who suspects whom", lambda row: row.pair, "warning"),
    ColumnOf("for", lambda row: f"{row.glyph} {row.age}", "warning", "⇄ 119 min", lambda row: -row.since_us),
    ColumnOf("because", lambda row: row.reason, widest=60),
)

TABLE_COLUMNS: tuple[ColumnOf[TableRow], ...] = (
    ColumnOf("member", lambda row: row.label),
    ColumnOf("table", lambda row: row.version, widest="v9999"),
    ColumnOf("digest", lambda row: row.digest, lambda row: "warning" if row.differs else "faint", DIGEST_SHOWN),
    ColumnOf("copies", lambda row: row.strip, lambda row: row.tone if row.tone == "bad" else "plain", STRIP_LENGTH),
    ColumnOf("owns", lambda row: str(row.owned or ""), widest="9999", rank=lambda row: row.owned),
    ColumnOf("", lambda row: row.state, lambda row: row.tone, "! 271 with one copy"),
)

LANE_COLUMNS: tuple[ColumnOf[LaneRow], ...] = (
    ColumnOf("member", lambda row: row.label, lambda row: "plain" if row.busy else "faint"),
    ColumnOf("out", lambda row: row.given.lane, "strong", SLOTS),
    ColumnOf("/s", lambda row: row.given.rate, widest="99.9", rank=lambda row: row.given.count),
    ColumnOf("in", lambda row: row.taken.lane, "good", SLOTS),
    ColumnOf("/s ", lambda row: row.taken.rate, widest="99.9", rank=lambda row: row.taken.count),
    ColumnOf("bytes in/s", lambda row: row.taken.copied),
)


class SuspicionRowsModel(BoardModel[SuspicionRow]):
    """Rows are suspicions."""

    def __init__(self) -> None:
        super().__init__(SUSPICION_COLUMNS)
        self.rows = SuspicionRows({}, 0, 0)

    def update(self, picture: Picture, labels: Sequence[str], now_us: int) -> None:
        """Show the suspicions in force."""
        self.rows = suspicion_rows(picture, labels)
        self.show_rows(tuple(self.rows.entries), lambda key: self.rows.row(picture, key, now_us))
        if self.rows.entries:
            longest = max(map(len, labels), default=0)
            self.widen("who suspects whom", [" " * (2 * min(longest, LONGEST_NAME) + 3)])

    def member(self, key: str | None) -> str:
        """Who has the suspicion of this row."""
        entry = self.rows.entries.get(key) if key is not None else None
        return entry.observer if entry is not None else ""


class TableRowsModel(BoardModel[TableRow]):
    """Rows are members."""

    def __init__(self) -> None:
        super().__init__(
            TABLE_COLUMNS,
            fixed=1,
            tone=lambda row: "faint" if row.greyed else "plain",
            outlier=lambda row: row.tone == "bad",
        )
        self._rows_of_tables = TableRows()

    def update(self, picture: Picture, labels: Sequence[str], now_us: int) -> None:
        """Show the tables of these members."""
        second = now_us // SECOND_US
        self.show_rows(labels, lambda label: self._rows_of_tables.row(picture, label, second))
        self.widen("member", map(one_line, labels), LONGEST_NAME)


class LanesModel(BoardModel[LaneRow]):
    """Rows are members."""

    def __init__(self) -> None:
        super().__init__(LANE_COLUMNS, fixed=1)
        self.lanes = MigrationLanes()

    def update(self, picture: Picture, labels: Sequence[str], now_us: int) -> None:
        """Show the lanes of these members."""
        made: Mapping[str, LaneRow] = self.lanes.rows(picture, labels, now_us)
        self.show_rows(labels, made.__getitem__)
        self.widen("member", map(one_line, labels), LONGEST_NAME)
