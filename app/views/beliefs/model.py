"""The columns of the beliefs matrix: what each observer says of itself, and how it sees each member."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from rich.cells import cell_len

from quarterdeck.app.views.columns import ColumnOf, MatrixModel
from quarterdeck.backend.picture.boards.belief_matrix import (
    DISSENT_GLYPH,
    NOT_REACHED,
    BeliefState,
    BeliefSummary,
    ObserverFacts,
    cell,
    how_it_differs,
    observer_facts,
    state_word,
    summarize_beliefs,
)
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.text.formatting import one_line, told_apart
from quarterdeck.widgets.line_table import MARKER_WIDTH, Column, TableCell

TONE_OF: dict[BeliefState, str] = {
    "member": "good",
    "master": "strong",
    "suspected": "warning",
    "removed": "bad",
    "held": "warning",
    "unknown": "faint",
}

PLAIN_WIDTH = len("✕ removed") + 1
SUSPECTED_WIDTH = len("? suspected") + 1
NAME_OVER_GLYPH = (3, 10)
"""Where there is room for glyphs only, at least and at most so much of a name stands above them."""
LONGEST_NAME = 22
"""Longer labels are cut short in columns; the fixed columns have to leave room for the rest."""
FACTS_WIDTH = 34
"""Cells that what an observer says of itself usually takes."""


class BeliefRow(NamedTuple):
    """What an observer says of itself. `mark` says how old that is, when it is only what was heard last."""

    key: str
    facts: ObserverFacts
    mark: str
    dissents: bool

    @property
    def greyed(self) -> bool:
        return self.facts.greyed or bool(self.mark)

    @property
    def tone(self) -> str:
        return "faint" if self.greyed else "plain"

    @property
    def list_text(self) -> str:
        """The version of its list, after how old the news of it are."""
        return f"{self.mark} {self.facts.list_version}".strip()


COLUMNS: tuple[ColumnOf[BeliefRow], ...] = (
    ColumnOf("", lambda row: DISSENT_GLYPH if row.dissents else "", "warning", DISSENT_GLYPH),
    ColumnOf("observer", lambda row: row.facts.label),
    ColumnOf("master", lambda row: row.facts.master),
    ColumnOf("list", lambda row: row.list_text, lambda row: "warning" if row.mark else row.tone, "joining"),
)

TABLE_COLUMN: ColumnOf[BeliefRow] = ColumnOf(
    "table",
    lambda row: row.facts.table_version,
    lambda row: "warning" if row.facts.table_differs else row.tone,
    f"{DISSENT_GLYPH} none",
)
"""It is there once there are partition tables."""


WITH_WORDS_ONLY = ("master", "table")
"""Columns that are left out where there is no room for words; a glyph tells the master as well."""


class BeliefMatrixModel(MatrixModel[BeliefRow]):
    """Rows are observers, columns are members, both in the order of the labels that it is given.

    Cells have a glyph and a word; after `fit` to a room that is too small for the words, glyphs alone.
    """

    def __init__(self, picture: Picture) -> None:
        super().__init__(COLUMNS, self._member_cells, tone=lambda row: row.tone, outlier=lambda row: row.dissents)
        self._picture = picture
        self._marks: Mapping[str, str] = {}
        self._ever_suspected: set[str] = set()
        self._laid_out: tuple[tuple[str, ...], int, int] = ((), 0, 0)
        self._glyphs_only = self._with_tables = False
        self._name_width = 0
        """Cells of the names above columns that have glyphs only."""
        self._fitted: object = None
        """What the width of the names was found for."""
        self.summary: BeliefSummary = summarize_beliefs(picture)

    def update(self, picture: Picture, labels: Sequence[str], marks: Mapping[str, str]) -> None:
        """Compare the beliefs anew. `marks` says by label whose beliefs are only what was heard last, and how old that is."""
        self._picture, self._marks = picture, marks
        self.summary = summarize_beliefs(picture)
        keys = self.keys if len(labels) == len(self.keys) and tuple(labels) == self.keys else tuple(labels)
        self.show_rows(keys, self._observer)
        for belief in picture.members.values():
            if belief.suspicions:
                self._ever_suspected.update(picture.label_of(address) for address in belief.suspicions)
        laid_out = (tuple(keys), len(self._ever_suspected), self._name_width)
        if laid_out != self._laid_out:
            self._laid_out = laid_out
            titles = dict(zip(keys, self._titles(keys), strict=True))
            self.show_members({label: self._member_column(title, label) for label, title in titles.items()})
            self.widen("observer", map(one_line, keys), LONGEST_NAME)
        self._widen_facts()

    def fit(self, width: int) -> None:
        """Leave the words and the column of masters out when there is no room for them in so many cells."""
        glyphs_only = MARKER_WIDTH + FACTS_WIDTH + len(self.keys) * SUSPECTED_WIDTH > width
        if self._glyphs_only != glyphs_only:
            self._glyphs_only = glyphs_only
            self._declare()
        facts = MARKER_WIDTH + sum(column.width for column in self.columns[: self.fixed_columns])
        wanted = (self.keys, width - facts, glyphs_only)
        if wanted != self._fitted:
            self._fitted = wanted
            self._name_width = longest_name(self.keys, width - facts) if glyphs_only else 0

    def sentence(self, key: str) -> str:
        """In what the list of this observer is another one than most hold; empty when it is not."""
        return how_it_differs(self._picture, self.summary, key)

    def _declare(self) -> None:
        columns = (*COLUMNS, TABLE_COLUMN) if self._with_tables else COLUMNS
        self.declare(column for column in columns if column.title not in WITH_WORDS_ONLY or not self._glyphs_only)

    def _observer(self, key: str) -> BeliefRow:
        facts, mark = observer_facts(self._picture, key), self._marks.get(key, "")
        if mark and key not in self._picture.members:
            facts = replace(facts, list_version="")
        elif mark:  # how long it is not reached says that it is not
            facts = replace(facts, list_version=facts.list_version.removeprefix(NOT_REACHED).strip())
        return BeliefRow(key, facts, mark, key in self.summary.dissenters)

    def _member_cells(self, row: BeliefRow, labels: Sequence[str]) -> Iterator[TableCell]:
        for label in labels:
            seen = cell(self._picture, row.key, label)
            yield TableCell(
                seen.glyph if self._glyphs_only else seen.text, "faint" if row.greyed else TONE_OF[seen.word]
            )

    def _titles(self, labels: Sequence[str]) -> Sequence[str]:
        """What stands above the columns of these members."""
        names = [one_line(label) for label in labels]
        return told_apart(names, self._name_width if self._glyphs_only else LONGEST_NAME)

    def _member_column(self, title: str, label: str) -> Column:
        if self._glyphs_only:
            return Column(title, cell_len(title) + 1)
        least = SUSPECTED_WIDTH if label in self._ever_suspected else PLAIN_WIDTH
        return Column(title, max(min(cell_len(title), LONGEST_NAME) + 1, least))

    def _widen_facts(self) -> None:
        """Make room for the longest that the facts of any observer can be, without spelling each of them out."""
        beliefs = self._picture.members.values()
        masters = {belief.master for belief in beliefs if belief.master}
        self.widen("master", (one_line(self._picture.label_of(master)) for master in masters), LONGEST_NAME)
        newest = max((belief.version for belief in beliefs), default=0)
        if newest:
            words = {state_word(belief) for belief in beliefs}
            self.widen("list", (f"{word} v{newest}".strip() for word in words))
        self.widen("list", (self._observer(label).list_text for label in self._marks))
        tables = [belief.table.version for belief in beliefs if belief.table is not None]
        if tables:
            if not self._with_tables:
                self._with_tables = True
                self._declare()
            if not self._glyphs_only:
                self.widen("table", [f"{DISSENT_GLYPH} t{max(tables)}"])


def longest_name(labels: Sequence[str], room: int) -> int:
    """How much of each name can stand above its column so that all columns are in sight, if that is possible."""
    least, most = NAME_OVER_GLYPH
    lengths = [cell_len(one_line(label)) for label in labels]
    fitting = (longest for longest in range(most, least, -1) if sum(min(one, longest) + 1 for one in lengths) <= room)
    return next(fitting, least)
