"""The columns of the migrations."""

from __future__ import annotations

from rich.cells import cell_len

from quarterdeck.app.views.columns import BoardModel, ColumnOf
from quarterdeck.backend.picture.boards.migration_board import GLYPHS, TONES, MigrationBoard, MigrationRow

STATES = tuple(GLYPHS)
LONGEST_NAME = 22

STATE_WIDTH = max(len(f"{glyph} {state}") for state, glyph in GLYPHS.items())

COLUMNS: tuple[ColumnOf[MigrationRow], ...] = (
    ColumnOf(
        "state",
        lambda row: row.state_text,
        lambda row: TONES[row.state],
        STATE_WIDTH,
        lambda row: STATES.index(row.state),
    ),
    ColumnOf("part", lambda row: row.partition, widest="p99999"),
    ColumnOf("kind", lambda row: row.kind, widest="SHIFT DOWN"),
    ColumnOf("to", lambda row: row.destination, widest="in place of"),
    ColumnOf("index", lambda row: row.index),
    ColumnOf("in place of", lambda row: row.displaced),
    ColumnOf("age", lambda row: row.age, widest="119 min", rank=lambda row: row.age_us),
    ColumnOf("note", lambda row: row.note, widest=79),
)


class MigrationModel(BoardModel[MigrationRow]):
    """Rows are migrations: state and partition stay in sight."""

    def __init__(self) -> None:
        super().__init__(COLUMNS, fixed=2)

    def update(self, board: MigrationBoard) -> None:
        """Show this board."""
        self.show_rows(tuple(board.entries), board.row)
        longest = max(board.picture.members, key=cell_len, default="")
        for title in ("to", "in place of"):
            self.widen(title, [f"{longest}→0"], LONGEST_NAME)
