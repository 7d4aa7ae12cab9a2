"""The beliefs matrix as a `TableModel`: cells are looked up in the picture only when a table asks for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.cells import cell_len

from quarterdeck.backend.picture.boards.belief_matrix import (
    DISSENT_GLYPH,
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
from quarterdeck.backend.picture.text.formatting import one_line
from quarterdeck.widgets.line_table import Column, TableCell

TONE_OF: dict[BeliefState, str] = {
    "member": "good",
    "master": "strong",
    "suspected": "warning",
    "removed": "bad",
    "held": "warning",
    "unknown": "faint",
}

FIXED_COLUMNS = 4
"""One more when there are partition tables."""

PLAIN_WIDTH = len("✕ removed") + 1
SUSPECTED_WIDTH = len("? suspected") + 1
NO_TABLE_WIDTH = len(f"{DISSENT_GLYPH} none") + 1
LONGEST_NAME = 22
"""Longer labels are cut short in columns; the fixed columns have to leave room for the rest."""


class BeliefMatrixModel:
    """Rows are observers, columns are members, both in the order of `labels`. `update` takes in what changed."""

    def __init__(self, picture: Picture) -> None:
        self._picture = picture
        self._labels: tuple[str, ...] = ()
        self._titles: tuple[tuple[str, int], ...] = ()
        self._name_width = 0
        self._widths_known: object = None
        self._facts_widths = (len("master") + 1, len("joining") + 1)
        self._ever_suspected: set[str] = set()
        self._marks: Mapping[str, str] = {}
        self._table_width = 0
        """Of the column with the versions of partition tables; 0 until there is one."""
        self.survey: BeliefSummary = summarize_beliefs(picture)
        self.columns: tuple[Column, ...] = ()

    @property
    def fixed_columns(self) -> int:
        return FIXED_COLUMNS + bool(self._table_width)

    @property
    def keys(self) -> Sequence[str]:
        return self._labels

    def update(self, picture: Picture, labels: Sequence[str], marks: Mapping[str, str]) -> None:
        """Compare the beliefs anew. Columns only ever grow wider, so that nothing jumps to and fro.

        `marks` says by label whose beliefs are only what was heard last, and how old that is.
        """
        self._picture = picture
        self._marks = marks
        self.survey = summarize_beliefs(picture)
        if len(labels) != len(self._labels) or tuple(labels) != self._labels:
            self._labels = tuple(labels)
            texts = [one_line(label) for label in labels]
            self._titles = tuple((text, min(cell_len(text), LONGEST_NAME) + 1) for text in texts)
            self._name_width = max((width for _, width in self._titles), default=0)
            self._name_width = max(self._name_width, len("observer") + 1)
        for belief in picture.members.values():
            if belief.suspicions:
                self._ever_suspected.update(picture.label_of(address) for address in belief.suspicions)
        self._widen_facts()
        widths = (self._labels, self._facts_widths, self._table_width, len(self._ever_suspected))
        if widths != self._widths_known:
            self._widths_known = widths
            self._lay_out_columns()

    def cells(self, key: str, first: int, last: int) -> Sequence[TableCell]:
        facts = observer_facts(self._picture, key)
        greyed = facts.greyed or key in self._marks
        found: list[TableCell] = []
        fixed = self.fixed_columns
        if first < fixed:
            tone = "faint" if greyed else "plain"
            mark = DISSENT_GLYPH if self.outlier(key) else ""
            still = (
                TableCell(mark, "warning"),
                TableCell(facts.label, tone),
                TableCell(facts.master, tone),
                TableCell(self._list_text(key, facts), "warning" if key in self._marks else tone),
                TableCell(facts.table_version, "warning" if facts.table_differs else tone),
            )[:fixed]
            found.extend(still[first:last])
        for label in self._labels[max(first - fixed, 0) : max(last - fixed, 0)]:
            seen = cell(self._picture, key, label)
            found.append(TableCell(seen.text, "faint" if greyed else TONE_OF[seen.word]))
        return found

    def sentence(self, key: str) -> str:
        """In what the list of this observer is another one than most hold; empty when it is not."""
        return how_it_differs(self._picture, self.survey, key)

    def outlier(self, key: str) -> bool:
        return key in self.survey.dissenters

    def _list_text(self, key: str, facts: ObserverFacts) -> str:
        """What the row says of the observer's list, after how old that is."""
        mark = self._marks.get(key, "")
        known = facts.list_version if key in self._picture.members or not mark else ""
        return f"{mark} {known}".strip()

    def _widen_facts(self) -> None:
        beliefs = self._picture.members.values()
        masters = {belief.master for belief in beliefs if belief.master}
        names = [cell_len(one_line(self._picture.label_of(address))) for address in masters]
        # The longest that the facts of any observer can be, without spelling each of them out.
        words = {state_word(belief) for belief in beliefs}
        newest = max((belief.version for belief in beliefs), default=0)
        longest = max((len(word) + 1 for word in words if word), default=0) + len(f"v{newest}")
        master, version = self._facts_widths
        self._facts_widths = (
            max(master, min(max(names, default=0), LONGEST_NAME) + 1),
            max(version, longest + 1 if newest else 0),
        )
        for label in self._marks:
            text = self._list_text(label, observer_facts(self._picture, label))
            self._facts_widths = (self._facts_widths[0], max(self._facts_widths[1], len(text) + 1))
        tables = [belief.table.version for belief in beliefs if belief.table is not None]
        if tables:
            self._table_width = max(self._table_width, len(f"{DISSENT_GLYPH} t{max(tables)}") + 1, NO_TABLE_WIDTH)

    def _lay_out_columns(self) -> None:
        self.columns = (
            Column("", len(DISSENT_GLYPH) + 1),
            Column("observer", self._name_width),
            Column("master", self._facts_widths[0]),
            Column("list", self._facts_widths[1]),
            *([Column("table", self._table_width)] if self._table_width else []),
            *(
                Column(title, max(width, SUSPECTED_WIDTH if label in self._ever_suspected else PLAIN_WIDTH))
                for label, (title, width) in zip(self._labels, self._titles, strict=True)
            ),
        )
