"""What happened, the latest at the bottom, as a pane of the overview."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from quarterdeck.app.events.tones import tone_of
from quarterdeck.app.session import Session
from quarterdeck.app.views.overview.panes import OverviewPane
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.picture.text.event_description import describe_record
from quarterdeck.widgets.line_table import TableCell
from quarterdeck.widgets.tail_log import TailLine, TailLog


class HappenedPane(OverviewPane):
    """Follows what happens; `f`, or moving up, pauses it."""

    view, pane_name = "events", "happened"

    def __init__(self, session: Session, key: str) -> None:
        self.tail: TailLog[Record] = TailLog(self._line_of, title="", headed=False, id="tail")
        super().__init__(session, key, "what happened", self.tail)

    def take(self, records: Sequence[Record]) -> None:
        self.tail.extend(records)

    def restart(self, records: Sequence[Record]) -> None:
        self.tail.restart(records)

    def paint(self, labels: Sequence[str], marks: Mapping[str, str]) -> None:
        self.say()

    def say(self) -> None:
        """Whether it follows, and what is filtered; folded the latest of it."""
        parts = [TableCell(self.tail.title_text, "faint" if self.tail.following else "strong")]
        if self.folded and self.tail.shown:
            latest = self._line_of(self.tail.shown[-1])
            parts = [TableCell(latest.text.strip(), latest.tone)]
        self.edge.show(parts)

    def _line_of(self, record: Record) -> TailLine:
        return TailLine(describe_record(record, self.session.picture.label_of), tone_of(record.event))
