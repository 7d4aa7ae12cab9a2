"""What every member believes, side by side; below it the member under the cursor."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from textual.containers import Vertical
from textual.widget import Widget

from quarterdeck.app.console_interface import ConsoleInterface
from quarterdeck.app.session import ConsoleSession
from quarterdeck.app.views.beliefs.model import BeliefMatrixModel
from quarterdeck.app.views.sort_filter_model import SortFilterModel
from quarterdeck.app.views.view_screen import ViewScreen
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.picture.boards.member_detail import member_detail
from quarterdeck.backend.picture.text.fact import Fact
from quarterdeck.backend.picture.text.formatting import one_line
from quarterdeck.widgets.fact_sheet import FactSheet
from quarterdeck.widgets.line_table import LineTable, TableCell
from quarterdeck.widgets.status_line import StatusLine

ROWS_FOR_DETAIL = 36
MASTERS_QUOTED = 2
"""How many masters are quoted on why they do not merge; each of them takes a line or two."""


class BeliefsScreen(ViewScreen):
    """The matrix, and where there is room all that is known of the observer under the cursor."""

    view = "beliefs"

    def __init__(self, session: ConsoleSession, console: ConsoleInterface) -> None:
        super().__init__(session, console)
        self._matrix = BeliefMatrixModel(session.picture)
        self._marks: dict[str, str] = {}
        self._detailed: object = None
        self.verdict = StatusLine(id="verdict", most_lines=3)
        self.apart = tuple(
            StatusLine(id=f"apart-{place}", classes="apart", most_lines=2) for place in range(MASTERS_QUOTED)
        )
        self.matrix = LineTable(SortFilterModel(self._matrix), id="beliefs-matrix")
        self.detail = FactSheet(id="beliefs-detail")

    def body(self) -> Iterable[Widget]:
        yield self.verdict
        yield from self.apart
        yield Vertical(self.matrix, self.detail, id="beliefs-body")

    @property
    def table(self) -> LineTable:
        return self.matrix

    def targets(self) -> tuple[str, ...]:
        return self.matrix.selection or ((self.matrix.cursor_key,) if self.matrix.cursor_key is not None else ())

    def tick(self, *, news: bool) -> None:
        """Besides records, other members and news that have become older are news."""
        labels = self.session.labels
        moved = labels != tuple(self._matrix.keys) or self.connections.marks() != self._marks
        super().tick(news=news or moved)

    def paint(self) -> None:
        self._marks = self.connections.marks()
        self._matrix.update(self.session.picture, self.session.labels, self._marks)
        summary = self._matrix.summary
        agreed = not summary.dissenters
        self.verdict.show([TableCell("=" if agreed else "≠", "good" if agreed else "warning"), *self._verdict_parts()])
        self._show_apart(summary.apart)
        self.matrix.show()
        self.set_class(self.app.size.height >= ROWS_FOR_DETAIL, "-detailed")
        self._show_detail()

    def sentence(self) -> Sequence[TableCell]:
        """How the observer under the cursor differs, when it does."""
        told = self._matrix.sentence(self.matrix.cursor_key) if self.matrix.cursor_key is not None else ""
        return [TableCell("≠", "warning"), TableCell(told)] if told else ()

    def _verdict_parts(self) -> list[TableCell]:
        links = self.session.picture.links.values()
        cut = sum(bool(link.blocked) for link in links)
        worse = len(links) - cut
        parts = [TableCell(self._matrix.summary.sentence, "warning" if self._matrix.summary.dissenters else "plain")]
        if cut:
            parts.insert(0, TableCell(f"✂ {cut} one-way links cut", "bad"))
        if worse:
            parts.insert(0, TableCell(f"~ {worse} one-way links slow or lossy", "warning"))
        return parts

    def _show_apart(self, sentences: Sequence[str]) -> None:
        """Quote the masters that do not merge, one a line; the lines are there only while there is something to quote."""
        for place, line in enumerate(self.apart):
            wanted = place < len(sentences)
            if wanted:
                more = len(sentences) - len(self.apart) if place == len(self.apart) - 1 else 0
                rest = [TableCell(f"({more} more masters)", "faint")] if more > 0 else []
                line.show([TableCell("∦", "warning"), TableCell(sentences[place]), *rest])
            if line.display != wanted:
                line.display = wanted

    def on_line_table_moved(self, event: LineTable.Moved) -> None:
        super().on_line_table_moved(event)
        self._show_detail()

    def _show_detail(self) -> None:
        """All that is known of the observer under the cursor, at most once a second."""
        label, now_us = self.matrix.cursor_key, self.session.now_us()
        about = (label, now_us // SECOND_US, self.session.picture.at)
        if label is None or about == self._detailed or not self.has_class("-detailed"):
            return
        self._detailed = about
        facts = member_detail(self.session.picture, label, now_us, recent=self.session.recent)
        self.detail.show((Fact("observer", one_line(label), "strong"), *self.connections.facts(label), *facts))
