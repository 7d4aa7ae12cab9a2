"""What every member believes, side by side: the matrix of observers by members, and the observer under the cursor."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace
from rich.cells import cell_len
from textual.widget import Widget

from quarterdeck.app.console_interface import ConsoleInterface
from quarterdeck.app.screen.columns import ColumnOf, MatrixModel, SortFilterModel
from quarterdeck.app.screen.view_screen import ViewScreen
from quarterdeck.app.session import ConsoleSession
from quarterdeck.backend.boards.belief_matrix import (
    BELIEF_CELLS,
    DISSENT_GLYPH,
    NOT_REACHED,
    BeliefState,
    BeliefSummary,
    ObserverFacts,
    cells,
    how_it_differs,
    observer_facts,
    state_word,
    summarize_beliefs,
)
from quarterdeck.backend.judgement.agreement import ListAgreement
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.text.formatting import distinguishable, one_line
from quarterdeck.widgets.line_table import MARKER_WIDTH, Column, LineTable, TableCell
from quarterdeck.widgets.status_line import StatusLine, StatusLines

TONE_OF: dict[BeliefState, str] = {
    "member": "good",
    "master": "strong",
    "suspected": "warning",
    "removed": "bad",
    "held": "warning",
    "unknown": "faint",
}

TABLE_CELLS = {
    (glyphs_only, greyed): {
        word: TableCell(seen.glyph if glyphs_only else seen.text, "faint" if greyed else TONE_OF[word])
        for word, seen in BELIEF_CELLS.items()
    }
    for glyphs_only in (False, True)
    for greyed in (False, True)
}
"""The cells of the matrix, made once: a large cluster shows hundreds of them several times a second."""

PLAIN_WIDTH = len("✕ removed") + 1
SUSPECTED_WIDTH = len("? suspected") + 1
NAME_OVER_GLYPH = (3, 10)
"""The least and the greatest width of a name above a column that has room for glyphs only."""
LONGEST_NAME = 22
"""Longer labels are cut in columns; the fixed columns have to leave room for the rest."""
MOST_ALIKE = 20
"""With more rows that say the same, one stands for all of them in the overview."""
FACTS_WIDTH = 34
"""The usual width of what an observer reports of itself."""


class BeliefRow(NamedTuple):
    """What an observer reports of itself. `mark` is the age of an outdated report."""

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
        """The version of its list, after the age of the report."""
        return f"{self.mark} {self.facts.list_version}".strip()


COLUMNS: tuple[ColumnOf[BeliefRow], ...] = (
    ColumnOf("", lambda row: DISSENT_GLYPH if row.dissents else "", "warning", DISSENT_GLYPH),
    ColumnOf("observer", lambda row: row.facts.label),
    ColumnOf("master", lambda row: row.facts.master),
    ColumnOf("list", lambda row: row.list_text, lambda row: "warning" if row.mark else row.tone),
)

TABLE_COLUMN: ColumnOf[BeliefRow] = ColumnOf(
    "table",
    lambda row: row.facts.table_version,
    lambda row: "warning" if row.facts.table_differs else row.tone,
    f"{DISSENT_GLYPH} none",
)
"""Shown once there are partition tables."""


WITH_WORDS_ONLY = ("master", "table")
"""Columns that a pane leaves out where there is no room for words; a glyph marks the master as well."""


class BeliefMatrixModel(MatrixModel[BeliefRow]):
    """Rows are observers, columns are members, both in the order of the given labels.

    Cells have a glyph and a word; after `fit` to a width that is too small for words, only glyphs.
    """

    def __init__(self, picture: Picture, *, in_pane: bool = False) -> None:
        super().__init__(COLUMNS, self._member_cells, tone=lambda row: row.tone, outlier=lambda row: row.dissents)
        self._picture, self._in_pane = picture, in_pane
        self._marks: Mapping[str, str] = {}
        self._ever_suspected: set[str] = set()
        self._named: tuple[str, ...] = ()
        self._laid_out: object = None
        self._width = 0
        self._glyphs_only = self._with_tables = False
        self._name_width = 0
        self._fitted: object = None
        self.summary: BeliefSummary = summarize_beliefs(ListAgreement(picture))

    def update(self, agreement: ListAgreement, labels: Sequence[str], marks: Mapping[str, str]) -> None:
        """Compare the beliefs again. `marks` has the age of each outdated report, by label."""
        picture = self._picture = agreement.picture
        self._marks, self.summary = marks, summarize_beliefs(agreement)
        keys = tuple(labels)
        self.show_rows(keys, self._observer)
        for belief in picture.members.values():
            if belief.suspicions:
                self._ever_suspected.update(picture.label_of(address) for address in belief.suspicions)
        if keys != self._named:
            self._named = keys
            self.widen("observer", map(one_line, keys), LONGEST_NAME)
        self._widen_facts()
        self._fit()
        laid_out = (tuple(keys), len(self._ever_suspected), self._name_width, self._glyphs_only)
        if laid_out != self._laid_out:
            self._laid_out = laid_out
            titles = dict(zip(keys, self._titles(keys), strict=True))
            self.show_members({label: self._member_column(title, label) for label, title in titles.items()})

    def lead_with(self, observers: frozenset[str]) -> None:
        """Show the rows of these observers before all others: not all rows are in sight.

        In a large cluster those who agree with most, and suspect no member, share one row below them.
        """
        first = [key for key in self.keys if key in observers]
        rest = [key for key in self.keys if key not in observers]
        alike = self._agreeing() if len(rest) > MOST_ALIKE else ()
        if alike:
            self.widen("observer", [agreed_text(one_line(alike[0]), len(alike))], LONGEST_NAME)
            merged = frozenset(alike)
            rest = [alike[0], *(key for key in rest if key not in merged)]
        self.show_rows((*first, *rest), lambda key: self._observer(key, len(alike) if key in alike[:1] else 0))

    def _agreeing(self) -> tuple[str, ...]:
        """Return who holds the list that most hold, and suspects no member."""
        members, holders = self._picture.members, frozenset(self.summary.lists[0].held_by)
        return tuple(
            key
            for key in self.keys
            if key in holders and key not in self._marks and members[key].running and not members[key].suspicions
        )

    def fit(self, width: int) -> None:
        """Leave out words if the width is too small for them, and in a pane the columns of masters and tables, too."""
        self._width = width

    def _fit(self) -> None:
        width = self._width
        if not width:  # it is not known yet
            return
        glyphs_only = MARKER_WIDTH + FACTS_WIDTH + len(self.keys) * SUSPECTED_WIDTH > width
        if self._glyphs_only != glyphs_only:
            self._glyphs_only = glyphs_only
            self._declare()
        facts = MARKER_WIDTH + sum(column.width for column in self.columns[: self.fixed_columns])
        wanted = (self.keys, width - facts, glyphs_only)
        if wanted != self._fitted:
            self._fitted = wanted
            self._name_width = longest_name(self.keys, width - facts) if glyphs_only else 0

    def difference(self, key: str | None) -> Sequence[TableCell]:
        """Say how the list of this observer differs from that of most; nothing if it does not."""
        text = how_it_differs(self._picture, self.summary, key) if key is not None else ""
        return [TableCell("≠", "warning"), TableCell(text)] if text else ()

    def _declare(self) -> None:
        columns = (*COLUMNS, TABLE_COLUMN) if self._with_tables else COLUMNS
        narrow = self._in_pane and self._glyphs_only
        self.declare(column for column in columns if column.title not in WITH_WORDS_ONLY or not narrow)

    def _observer(self, key: str, agreeing: int = 0) -> BeliefRow:
        facts, mark = observer_facts(self._picture, key), self._marks.get(key, "")
        if agreeing:
            facts = replace(facts, label=agreed_text(facts.label, agreeing))
        if mark and key not in self._picture.members:
            facts = replace(facts, list_version="")
        elif mark:  # how long it is not reached says that it is not
            facts = replace(facts, list_version=facts.list_version.removeprefix(NOT_REACHED).strip())
        return BeliefRow(key, facts, mark, key in self.summary.dissenters)

    def _member_cells(self, row: BeliefRow, labels: Sequence[str]) -> Iterator[TableCell]:
        known = TABLE_CELLS[self._glyphs_only, row.greyed]
        return (known[seen.word] for seen in cells(self._picture, row.key, labels))

    def _titles(self, labels: Sequence[str]) -> Sequence[str]:
        names = [one_line(label) for label in labels]
        return distinguishable(names, self._name_width if self._glyphs_only else LONGEST_NAME)

    def _member_column(self, title: str, label: str) -> Column:
        if self._glyphs_only:
            return Column(title, cell_len(title) + 1, whole=True)
        least = SUSPECTED_WIDTH if label in self._ever_suspected else PLAIN_WIDTH
        return Column(title, max(min(cell_len(title), LONGEST_NAME) + 1, least), whole=True)

    def _widen_facts(self) -> None:
        """Make room for the longest facts that any observer may report, without writing each of them out."""
        beliefs = self._picture.members.values()
        masters = {belief.master for belief in beliefs if belief.master}
        self.widen("master", (one_line(self._picture.label_of(master)) for master in masters), LONGEST_NAME)
        newest = max((belief.version for belief in beliefs), default=0)
        version = f" v{newest}" if newest else ""
        states = {f"{state_word(belief)}{version}".strip() for belief in beliefs}
        if states == {version.strip()} and not self._marks:  # no member is in a state of its own any more
            self.refit("list", states)
        else:
            self.widen("list", states)
        self.widen("list", (self._observer(label).list_text for label in self._marks))
        tables = [belief.table.version for belief in beliefs if belief.table is not None]
        if tables:
            if not self._with_tables:
                self._with_tables = True
                self._declare()
            if not (self._glyphs_only and self._in_pane):
                self.widen("table", [f"{DISSENT_GLYPH} t{max(tables)}"])


def agreed_text(label: str, observers: int) -> str:
    """Return the name of a row for all who agree: actions on it are for the member that it names."""
    return f"{label} +{observers - 1} agree"


def longest_name(labels: Sequence[str], room: int) -> int:
    """Return the width of the longest names with which all columns are in sight, if possible."""
    least, most = NAME_OVER_GLYPH
    lengths = [cell_len(one_line(label)) for label in labels]
    fitting = (
        longest
        for longest in range(most, least, -1)
        if sum(min(length, longest) + 1 for length in lengths) <= room + 1  # the last one needs no gap
    )
    return next(fitting, least)


def verdict_cells(summary: BeliefSummary, picture: Picture) -> list[TableCell]:
    """Return whether all agree, and what is wrong with the links; empty cells are not shown."""
    cut = sum(bool(link.blocked) for link in picture.links.values())
    worse = len(picture.links) - cut
    agreed = not summary.dissenters
    return [
        TableCell("=" if agreed else "≠", "good" if agreed else "warning"),
        TableCell(f"~ {worse} one-way links slow or lossy" if worse else "", "warning"),
        TableCell(f"✂ {cut} one-way links cut" if cut else "", "bad"),
        TableCell(summary.sentence, "plain" if agreed else "warning"),
    ]


MASTERS_QUOTED = 2
"""How many masters are quoted on why they do not merge; each takes a line or two."""


class BeliefsScreen(ViewScreen):
    """The matrix, and where there is room all that is known of the observer under the cursor."""

    view = "beliefs"
    detail_below = True
    DEFAULT_CSS = """
    BeliefsScreen #verdict { height: 1; }
    """

    def __init__(self, session: ConsoleSession, console: ConsoleInterface) -> None:
        super().__init__(session, console)
        self._matrix = BeliefMatrixModel(session.picture)
        self._marks: dict[str, str] = {}
        self.verdict = StatusLine(id="verdict", most_lines=3)
        self.apart = StatusLines(MASTERS_QUOTED, id="apart")
        self.main = self.matrix = LineTable(SortFilterModel(self._matrix), id="beliefs-matrix")

    def body(self) -> Iterable[Widget]:
        return self.verdict, self.apart, self.matrix

    def paint(self) -> None:
        self._marks = self.connections.marks()
        self._matrix.fit(self.matrix.size.width or self.app.size.width)
        self._matrix.update(self.session.judge.agreement, self.session.labels, self._marks)
        summary = self._matrix.summary
        self.verdict.show(*verdict_cells(summary, self.session.picture))
        quoted = [[TableCell("∦", "warning"), TableCell(sentence)] for sentence in summary.apart[:MASTERS_QUOTED]]
        if len(summary.apart) > len(quoted):
            quoted[-1].append(TableCell(f"({len(summary.apart) - len(quoted)} more masters)", "faint"))
        self.apart.show(quoted)
        self.matrix.show()

    def on_resize(self) -> None:
        if self.is_mounted:
            self.call_after_refresh(self.repaint)

    def sentence(self) -> Sequence[TableCell]:
        return self._matrix.difference(self.matrix.cursor_key)
