"""The board of migrations as a `TableModel`."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from quarterdeck.backend.picture.boards.migration_board import GLYPHS, TONES, MigrationBoard, MigrationRow
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.widgets.line_table import Column, TableCell

FIXED_COLUMNS = 2
"""State and partition stay in sight."""

STATE_WIDTH = max(len(f"{glyph} {state}") for state, glyph in GLYPHS.items()) + 1
KIND_WIDTH = len("SHIFT DOWN") + 1
LONGEST_NAME = 22
NOTE_WIDTH = 80


class MigrationModel:
    """Rows are migrations. `update` takes in what changed; rows are made when a table asks for them."""

    fixed_columns = FIXED_COLUMNS

    def __init__(self) -> None:
        self._board = MigrationBoard((), {}, Picture(), 0)
        self._rows: dict[str, MigrationRow] = {}
        self._name_width = len("in place of") + 1
        self.columns: tuple[Column, ...] = ()
        self.keys: Sequence[str] = ()

    def update(self, board: MigrationBoard) -> None:
        """Show `board` from now on. Columns only ever grow wider, so that nothing jumps to and fro."""
        self._board = board
        self._rows.clear()
        self.keys = tuple(board.entries)
        longest = max(map(cell_len, board.picture.members), default=0)
        self._name_width = max(self._name_width, min(longest + len("→0"), LONGEST_NAME) + 1)
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
        return self._row(key) if key is not None and key in self._board.entries else None

    def cells(self, key: str, first: int, last: int) -> Sequence[TableCell]:
        row = self._row(key)
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

    def rank(self, key: str, title: str) -> object:
        """What a column is sorted by: states as they follow one another, partitions and ages by their size."""
        row = self._row(key)
        match title:
            case "state":
                return list(GLYPHS).index(row.state)
            case "part":
                return int(row.partition.removeprefix("p"))
            case "age":
                return row.age_us
            case _:
                place = next((place for place, column in enumerate(self.columns) if column.title == title), 0)
                return self.cells(key, place, place + 1)[0].text or None

    def outlier(self, key: str) -> bool:
        return False

    def _row(self, key: str) -> MigrationRow:
        row = self._rows.get(key)
        if row is None:
            row = self._rows[key] = self._board.row(key)
        return row
