"""Who suspects whom and why; what the master has heard of it, what it would decide now, and what that would cost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from textual.widget import Widget

from quarterdeck.app.console_interface import ConsoleInterface
from quarterdeck.app.session import ConsoleSession
from quarterdeck.app.views.sort_filter_model import SortFilterModel
from quarterdeck.app.views.suspicions.model import SuspicionModel
from quarterdeck.app.views.view_screen import ViewScreen
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.picture.boards.suspicion_board import MOST_WHOLE, suspicion_facts, suspicion_sentence
from quarterdeck.backend.picture.fold.belief import MemberBelief
from quarterdeck.backend.picture.text.fact import Fact
from quarterdeck.backend.picture.text.formatting import one_line
from quarterdeck.backend.picture.what_if.disconnection_decision import DisconnectionDecision, decide, decision_facts
from quarterdeck.backend.picture.what_if.timing import Timing, reports_changed_us, timing_of
from quarterdeck.widgets.fact_sheet import FactSheet
from quarterdeck.widgets.line_table import LineTable, TableCell
from quarterdeck.widgets.status_line import StatusLine


class SuspicionsScreen(ViewScreen):
    """The matrix above; below it the member under the cursor and the master that it follows."""

    view = "suspicions"

    def __init__(self, session: ConsoleSession, console: ConsoleInterface) -> None:
        super().__init__(session, console)
        self._model = SuspicionModel()
        self._everybody: bool | None = None
        """None: as long as they are few."""
        self._counted: object = None
        self._decided_on: object = None
        self._decision: DisconnectionDecision | None = None
        self._timed: object = None
        self._timing = Timing()
        self._changed_us: int | None = None
        self.title_line = StatusLine(id="suspicions-title")
        self.matrix = LineTable(SortFilterModel(self._model), id="suspicions")
        self.sheet = FactSheet(id="conflict")
        self.handlers |= {"suspicions-whole": self._choose_whom}

    def body(self) -> Iterable[Widget]:
        yield self.title_line
        yield self.matrix
        yield self.sheet

    @property
    def table(self) -> LineTable:
        return self.matrix

    def targets(self) -> tuple[str, ...]:
        under = self.matrix.cursor_key
        return self.matrix.selection or ((under,) if under is not None else ())

    def paint(self) -> None:
        picture, now_us = self.session.picture, self.session.now_us()
        everybody = self._everybody if self._everybody is not None else len(picture.members) <= MOST_WHOLE
        moment = (everybody, picture.at, len(picture.members), self.session.epoch)
        if moment != self._counted:
            self._counted = moment
            self._model.update(picture, now_us, everybody=everybody)
        else:
            self._model.show_at(picture, now_us)
        summary = self._model.summary
        hidden = "" if everybody or not picture.members else "(only those with suspicions; z shows all)"
        self.title_line.show(
            [
                TableCell("suspicions", "strong"),
                TableCell(summary.sentence, "warning" if summary.raised else "good"),
                TableCell(hidden, "faint"),
            ]
        )
        self.matrix.show()
        self._explain()

    def sentence(self) -> Sequence[TableCell]:
        observer = self.matrix.cursor_key
        if observer is None:
            return ()
        return [TableCell(suspicion_sentence(self.session.picture, observer, self.session.now_us()), "faint")]

    def on_line_table_moved(self, event: LineTable.Moved) -> None:
        self._explain()
        super().on_line_table_moved(event)

    # The sheet

    def _explain(self) -> None:
        picture, now_us = self.session.picture, self.session.now_us()
        observer = self.matrix.cursor_key or ""
        facts: list[Fact] = []
        if observer:
            facts.append(Fact("observer", one_line(observer), "strong"))
            facts += suspicion_facts(picture, observer, now_us)
        master = self._master_of(observer)
        if master is None:
            facts.append(Fact("master", "no running member leads here, so nobody decides", "faint"))
        else:
            self._reckon(master, now_us)
            facts += decision_facts(picture, master, self._decision, self._timing, now_us, self._changed_us)
        self.sheet.show(facts)

    def _master_of(self, observer: str) -> MemberBelief | None:
        """The master that the observer follows; else the first there is."""
        picture = self.session.picture
        followed = picture.master_of(observer)
        if followed is not None:
            return followed
        return next((picture.members[label] for label in picture.masters()), None)

    def _reckon(self, master: MemberBelief, now_us: int) -> None:
        """The decision only when what it depends on has changed, and timing at most once a second while it is of use."""
        table = master.table
        decides = (
            master.uuid,
            master.version,
            tuple(master.reports.items()),
            (table.version, table.digest) if table is not None else None,
        )
        if decides != self._decided_on:
            self._decided_on = decides
            self._decision = decide(master)
        timed = (master.uuid, tuple(master.reports), now_us // SECOND_US, self.session.epoch)
        if timed != self._timed and self._decision is not None:
            self._timed = timed
            recent = self.session.recent
            self._timing, self._changed_us = timing_of(recent, master), reports_changed_us(recent, master.uuid)

    # What keys do

    def _choose_whom(self, text: str) -> None:
        if text not in ("", "on", "off"):
            self.console.show_message(f"{text!r} is neither on nor off", error=True)
            return
        now = self._everybody if self._everybody is not None else len(self.session.picture.members) <= MOST_WHOLE
        self._everybody = text == "on" if text else not now
        self._counted = None
        self.repaint()
