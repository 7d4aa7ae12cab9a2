"""The board of migrations as a `TableModel`."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from backend.picture.migration_board import GLYPHS, TONES, Board, MigrationRow
from widgets.line_table import Column, TableCell

FIXED_COLUMNS = 2
"""State and partition stay in sight."""

STATE_WIDTH = max(len(f"{glyph} {state}") for state, glyph in GLYPHS.items()) + 1
KIND_WIDTH = len("SHIFT DOWN") + 1
LONGEST_NAME = 22
NOTE_WIDTH = 80


class BoardModel:
    """Rows are migrations. `update` takes in what changed."""

    fixed_columns = FIXED_COLUMNS

    def __init__(self) -> None:
        self._rows: dict[str, MigrationRow] = {}
        self._name_width = len("in place of") + 1
        self.columns: tuple[Column, ...] = ()

    @property
    def keys(self) -> Sequence[str]:
        return tuple(self._rows)

    def update(self, board: Board) -> None:
        """Show `board` from now on. Columns only ever grow wider, so that nothing jumps to and fro."""
        self._rows = {row.key: row for row in board.rows}
        names = (name for row in board.rows for name in (row.destination, row.displaced))
        self._name_width = max(self._name_width, min(max(map(cell_len, names), default=0), LONGEST_NAME) + 1)
        self.columns = (
            Column("state", STATE_WIDTH),
            Column("part", len("p99999") + 1),
            Column("kind", KIND_WIDTH),
            Column("to", self._name_width),
            Column("index", len("index") + 1),
            Column("in place of", self._name_width),
            Column("age", len("119 min") + 1),
            Column("note", NOTE_WIDTH),
        )

    def row(self, key: str | None) -> MigrationRow | None:
        """The row of this key, if there is one."""
        return self._rows.get(key) if key is not None else None

    def cells(self, key: str, first: int, last: int) -> Sequence[TableCell]:
        row = self._rows[key]
        return (
            TableCell(row.state_text, TONES[row.state]),
            TableCell(row.partition),
            TableCell(row.kind),
            TableCell(row.destination),
            TableCell(row.index),
            TableCell(row.displaced),
            TableCell(row.age),
            TableCell(row.note),
        )[first:last]

    def outlier(self, key: str) -> bool:
        return False
