"""The first view: what every member believes, side by side, and what happens, line by line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from textual.widget import Widget

from quarterdeck.app.console_interface import ConsoleInterface
from quarterdeck.app.events.tones import tone_of
from quarterdeck.app.session import Session
from quarterdeck.app.views.beliefs.model import BeliefMatrixModel
from quarterdeck.app.views.sort_filter_model import SortFilterModel
from quarterdeck.app.views.view_screen import ViewScreen
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.picture.text.event_description import describe_record
from quarterdeck.widgets.line_table import LineTable, TableCell
from quarterdeck.widgets.status_line import StatusLine
from quarterdeck.widgets.tail_log import TailLine, TailLog

MASTERS_QUOTED = 2
"""How many masters are quoted on why they do not merge; each of them takes a line or two."""


class BeliefsScreen(ViewScreen):
    """The home of a session. A filter at the prompt is for the events; those of other views are for their tables."""

    view = "beliefs"

    def __init__(self, session: Session, console: ConsoleInterface) -> None:
        super().__init__(session, console)
        self._matrix = BeliefMatrixModel(session.picture)
        self._marks: dict[str, str] = {}
        self._epoch = session.epoch
        self.verdict = StatusLine(id="verdict", most_lines=3)
        self.apart = tuple(
            StatusLine(id=f"apart-{place}", classes="apart", most_lines=2) for place in range(MASTERS_QUOTED)
        )
        self.matrix = LineTable(SortFilterModel(self._matrix), id="matrix")
        self.tail: TailLog[Record] = TailLog(self._line_of, title="events", id="tail")
        self.handlers["follow"] = lambda _: self.tail.set_following(not self.tail.following)

    def body(self) -> Iterable[Widget]:
        yield self.verdict
        yield from self.apart
        yield self.matrix
        yield self.tail

    @property
    def table(self) -> LineTable:
        return self.matrix

    def targets(self) -> tuple[str, ...]:
        return self.matrix.selection or ((self.matrix.cursor_key,) if self.matrix.cursor_key is not None else ())

    def filter_by(self, text: str) -> None:
        self.tail.set_filter(text)

    @property
    def filter_text(self) -> str:
        return self.tail.filter_text

    def take(self, records: Sequence[Record]) -> None:
        self.tail.extend(records)

    def tick(self, *, news: bool) -> None:
        """Besides records, other members and news that have become older are news."""
        cluster = self.session.cluster
        moved = tuple(cluster.labels) != tuple(self._matrix.keys) or self.connections.marks() != self._marks
        super().tick(news=news or moved)

    def paint(self) -> None:
        if self._epoch != self.session.epoch:
            self._epoch = self.session.epoch
            self.tail.restart(self.session.recent)
        self._marks = self.connections.marks()
        self._matrix.update(self.session.picture, self.session.cluster.labels, self._marks)
        summary = self._matrix.summary
        agreed = not summary.dissenters
        self.verdict.show([TableCell("=" if agreed else "≠", "good" if agreed else "warning"), *self._verdict_parts()])
        self._show_apart(summary.apart)
        self.matrix.show()

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

    def _line_of(self, record: Record) -> TailLine:
        return TailLine(describe_record(record, self.session.picture.label_of), tone_of(record.event))
