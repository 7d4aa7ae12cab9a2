"""The columns of the suspicions: observers by suspects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rich.cells import cell_len

from quarterdeck.app.views.columns import ColumnOf, MatrixModel
from quarterdeck.backend.picture.boards.suspicion_board import SuspicionSummary, summarize_suspicions, suspicion_cell
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.text.formatting import one_line
from quarterdeck.widgets.line_table import Column, TableCell

AGE_WIDTH = len("⇄ 119 min") + 1
LONGEST_NAME = 18


class SuspicionBoardRow(NamedTuple):
    """A member that suspects others."""

    label: str
    suspects: int
    greyed: bool


COLUMNS: tuple[ColumnOf[SuspicionBoardRow], ...] = (
    ColumnOf("observer", lambda row: one_line(row.label), lambda row: "faint" if row.greyed else "plain"),
    ColumnOf("suspects", lambda row: str(row.suspects or ""), lambda row: "faint" if row.greyed else "warning"),
)


class SuspicionModel(MatrixModel[SuspicionBoardRow]):
    """Rows are observers, columns are suspects. Ages compare by when they began, the oldest last."""

    def __init__(self) -> None:
        super().__init__(COLUMNS, self._suspicions_of, rank_of=self._age_rank)
        self._picture = Picture()
        self._now_us = 0
        self.summary: SuspicionSummary = summarize_suspicions(self._picture, everybody=True)

    def show_at(self, picture: Picture, now_us: int) -> None:
        """Let cells speak of `picture` at `now_us`; rows and columns stay."""
        self._picture, self._now_us = picture, now_us
        self.show_rows(self.summary.observers, self._row_of_observer)

    def update(self, picture: Picture, now_us: int, *, everybody: bool) -> None:
        """Count the suspicions anew; with `everybody`, those who have no part in any are shown too."""
        former, self.summary = self.summary, summarize_suspicions(picture, everybody=everybody)
        self.show_at(picture, now_us)
        self.widen("observer", map(one_line, self.keys), LONGEST_NAME)
        if self.summary.suspects != former.suspects:
            self.show_members({label: member_column(label) for label in self.summary.suspects})

    def _row_of_observer(self, key: str) -> SuspicionBoardRow:
        belief = self._picture.members.get(key)
        return SuspicionBoardRow(
            key, len(belief.suspicions) if belief is not None else 0, belief is None or not belief.running
        )

    def _suspicions_of(self, row: SuspicionBoardRow, suspects: Sequence[str]) -> Iterator[TableCell]:
        for label in suspects:
            seen = suspicion_cell(self._picture, row.label, label, self._now_us)
            yield TableCell(seen.text, seen.tone)

    def _age_rank(self, row: SuspicionBoardRow, suspect: str) -> int | None:
        since_us = suspicion_cell(self._picture, row.label, suspect, self._now_us).since_us
        return None if since_us is None else -since_us


def member_column(label: str) -> Column:
    """The column of a suspect."""
    title = one_line(label)
    return Column(title, max(min(cell_len(title), LONGEST_NAME) + 1, AGE_WIDTH))
