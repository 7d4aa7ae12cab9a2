"""Suspicions as a `TableModel`: observers by suspects; a cell is made only when a table asks for it."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from quarterdeck.backend.picture.boards.suspicion_board import SuspicionSummary, summarize_suspicions, suspicion_cell
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.text.formatting import one_line
from quarterdeck.widgets.line_table import Column, TableCell

FIXED_COLUMNS = 2
AGE_WIDTH = len("⇄ 119 min") + 1
LONGEST_NAME = 18


class SuspicionModel:
    """`update` takes in what changed; columns only ever grow wider while the same members are shown."""

    fixed_columns = FIXED_COLUMNS

    def __init__(self) -> None:
        self._picture = Picture()
        self._now_us = 0
        self._name_width = len("observer") + 1
        self._laid_out: object = None
        self.survey: SuspicionSummary = summarize_suspicions(self._picture, everybody=True)
        self.columns: tuple[Column, ...] = ()

    @property
    def keys(self) -> Sequence[str]:
        return self.survey.observers

    def show_at(self, picture: Picture, now_us: int) -> None:
        """Let cells speak of `picture` at `now_us`; rows and columns stay."""
        self._picture, self._now_us = picture, now_us

    def update(self, picture: Picture, now_us: int, *, everybody: bool) -> None:
        """Count the suspicions anew; with `everybody`, those who have no part in any are shown too."""
        self.show_at(picture, now_us)
        self.survey = summarize_suspicions(picture, everybody=everybody)
        shown = (self.survey.observers, self.survey.suspects)
        if shown != self._laid_out:
            self._laid_out = shown
            names = max((cell_len(one_line(label)) for label in self.survey.observers), default=0)
            self._name_width = max(self._name_width, min(names, LONGEST_NAME) + 1)
            titles = [one_line(label) for label in self.survey.suspects]
            self.columns = (
                Column("observer", self._name_width),
                Column("suspects", len("suspects") + 1),
                *(Column(title, max(min(cell_len(title), LONGEST_NAME) + 1, AGE_WIDTH)) for title in titles),
            )

    def cells(self, key: str, first: int, last: int) -> Sequence[TableCell]:
        picture, now_us = self._picture, self._now_us
        belief = picture.members.get(key)
        found: list[TableCell] = []
        if first < FIXED_COLUMNS:
            greyed = belief is None or not belief.running
            count = len(belief.suspicions) if belief is not None else 0
            still = (
                TableCell(one_line(key), "faint" if greyed else "plain"),
                TableCell(str(count) if count else "", "faint" if greyed else "warning"),
            )
            found.extend(still[first:last])
        for label in self.survey.suspects[max(first - FIXED_COLUMNS, 0) : max(last - FIXED_COLUMNS, 0)]:
            seen = suspicion_cell(picture, key, label, now_us)
            found.append(TableCell(seen.text, seen.tone))
        return found

    def outlier(self, key: str) -> bool:
        return False

    def rank(self, key: str, title: str) -> object:
        """Ages compare by when they began, the oldest last; all else by its text."""
        belief = self._picture.members.get(key)
        if title == "observer":
            return one_line(key).casefold()
        if title == "suspects":
            return len(belief.suspicions) if belief is not None and belief.suspicions else None
        for label in self.survey.suspects:
            if one_line(label) == title:
                since_us = suspicion_cell(self._picture, key, label, self._now_us).since_us
                return None if since_us is None else -since_us
        return None
