"""What every member believes, side by side: the matrix of observers by members, and the observer under the cursor."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from rich.cells import cell_len
from textual.containers import Vertical
from textual.widget import Widget

from quarterdeck.app.console_interface import ConsoleInterface
from quarterdeck.app.screen.columns import ColumnOf, MatrixModel
from quarterdeck.app.screen.sort_filter_model import SortFilterModel
from quarterdeck.app.screen.view_screen import ViewScreen, show_if
from quarterdeck.app.session import ConsoleSession
from quarterdeck.backend.picture.boards.belief_matrix import (
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
from quarterdeck.backend.picture.boards.member_detail import member_detail
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.text.fact import Fact
from quarterdeck.backend.picture.text.formatting import distinguishable, one_line
from quarterdeck.widgets.fact_sheet import FactSheet
from quarterdeck.widgets.line_table import MARKER_WIDTH, Column, LineTable, TableCell
from quarterdeck.widgets.status_line import StatusLine

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
    ColumnOf("list", lambda row: row.list_text, lambda row: "warning" if row.mark else row.tone, "joining"),
)

TABLE_COLUMN: ColumnOf[BeliefRow] = ColumnOf(
    "table",
    lambda row: row.facts.table_version,
    lambda row: "warning" if row.facts.table_differs else row.tone,
    f"{DISSENT_GLYPH} none",
)
"""Shown once there are partition tables."""


WITH_WORDS_ONLY = ("master", "table")
"""Columns that are left out where there is no room for words; a glyph marks the master as well."""


class BeliefMatrixModel(MatrixModel[BeliefRow]):
    """Rows are observers, columns are members, both in the order of the given labels.

    Cells have a glyph and a word; after `fit` to a width that is too small for words, only glyphs.
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
        """Compare the beliefs again. `marks` has the age of each outdated report, by label."""
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
        """Leave out words and the column of masters if the width is too small for them."""
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
        self.declare(column for column in columns if column.title not in WITH_WORDS_ONLY or not self._glyphs_only)

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
            return Column(title, cell_len(title) + 1)
        least = SUSPECTED_WIDTH if label in self._ever_suspected else PLAIN_WIDTH
        return Column(title, max(min(cell_len(title), LONGEST_NAME) + 1, least))

    def _widen_facts(self) -> None:
        """Make room for the longest facts that any observer may report, without writing each of them out."""
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


def agreed_text(label: str, observers: int) -> str:
    """Return the name of a row for all who agree: actions on it are for the member that it names."""
    return f"{label} +{observers - 1} agree"


def longest_name(labels: Sequence[str], room: int) -> int:
    """Return the width of the longest names with which all columns are in sight, if possible."""
    least, most = NAME_OVER_GLYPH
    lengths = [cell_len(one_line(label)) for label in labels]
    fitting = (
        longest for longest in range(most, least, -1) if sum(min(length, longest) + 1 for length in lengths) <= room
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


ROWS_FOR_DETAIL = 36
MASTERS_QUOTED = 2
"""How many masters are quoted on why they do not merge; each takes a line or two."""


class BeliefsScreen(ViewScreen):
    """The matrix, and where there is room all that is known of the observer under the cursor."""

    view = "beliefs"
    DEFAULT_CSS = """
    BeliefsScreen #verdict, BeliefsScreen .apart { height: 1; }
    BeliefsScreen #beliefs-body { height: 1fr; layout: vertical; }
    BeliefsScreen #beliefs-matrix { height: 1fr; min-height: 4; scrollbar-size: 1 1; }
    BeliefsScreen #beliefs-detail { height: 1fr; display: none; scrollbar-size: 1 1; border-top: solid $panel; }
    BeliefsScreen.-detailed #beliefs-matrix { height: auto; max-height: 60%; }
    BeliefsScreen.-detailed #beliefs-detail { display: block; }
    """

    def __init__(self, session: ConsoleSession, console: ConsoleInterface) -> None:
        super().__init__(session, console)
        self._matrix = BeliefMatrixModel(session.picture)
        self._marks: dict[str, str] = {}
        self._detailed: object = None
        self.verdict = StatusLine(id="verdict", most_lines=3)
        self.apart = tuple(
            StatusLine(id=f"apart-{place}", classes="apart", most_lines=2) for place in range(MASTERS_QUOTED)
        )
        self.main = self.matrix = LineTable(SortFilterModel(self._matrix), id="beliefs-matrix")
        self.detail = FactSheet(id="beliefs-detail")

    def body(self) -> Iterable[Widget]:
        return self.verdict, *self.apart, Vertical(self.matrix, self.detail, id="beliefs-body")

    def tick(self, *, news: bool) -> None:
        """Treat a new order of members and outdated reports as news, too."""
        labels = self.session.labels
        moved = labels != tuple(self._matrix.keys) or self.connections.marks() != self._marks
        super().tick(news=news or moved)

    def paint(self) -> None:
        self._marks = self.connections.marks()
        self._matrix.update(self.session.picture, self.session.labels, self._marks)
        summary = self._matrix.summary
        self.verdict.show(verdict_cells(summary, self.session.picture))
        self._show_apart(summary.apart)
        self.matrix.show()
        self.set_class(self.app.size.height >= ROWS_FOR_DETAIL, "-detailed")

    def sentence(self) -> Sequence[TableCell]:
        return self._matrix.difference(self.matrix.cursor_key)

    def _show_apart(self, sentences: Sequence[str]) -> None:
        """Quote the masters that do not merge, one on a line."""
        for place, line in enumerate(self.apart):
            wanted = place < len(sentences)
            if wanted:
                more = len(sentences) - len(self.apart) if place == len(self.apart) - 1 else 0
                rest = [TableCell(f"({more} more masters)", "faint")] if more > 0 else []
                line.show([TableCell("∦", "warning"), TableCell(sentences[place]), *rest])
            show_if(line, wanted)

    def _say_detail(self) -> None:
        """Show all that is known of the observer under the cursor."""
        label, session = self.matrix.cursor_key, self.session
        about = (label, session.detail_beat)
        if label is None or about == self._detailed or not self.at_rest or not self.has_class("-detailed"):
            return
        self._detailed = about
        facts = member_detail(session.picture, label, session.now_us(), recent=session.recent)
        self.detail.show((Fact("observer", one_line(label), "strong"), *self.connections.facts(label), *facts))
