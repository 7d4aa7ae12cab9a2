"""Who suspects whom and why; what the master has heard of it, what it would decide now, and what that would cost."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from rich.cells import cell_len
from textual.widget import Widget

from quarterdeck.app.console_interface import ConsoleInterface, switched
from quarterdeck.app.screen.columns import ColumnOf, MatrixModel, SortFilterModel
from quarterdeck.app.screen.view_screen import ViewScreen
from quarterdeck.app.session import ConsoleSession
from quarterdeck.backend.boards.suspicion_board import (
    MOST_WHOLE,
    SuspicionSummary,
    summarize_suspicions,
    suspicion_cell,
    suspicion_facts,
    suspicion_sentence,
)
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.membership.events import MemberRemoved, SuspicionCleared, SuspicionRaised
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.judgement.agreement import ListAgreement
from quarterdeck.backend.judgement.what_if.disconnection_decision import (
    DisconnectionDecision,
    Timing,
    decide,
    decision_facts,
    reports_changed_us,
    timing_of,
)
from quarterdeck.backend.picture.events.catalogue import record_words
from quarterdeck.backend.picture.fold.belief import MemberBelief
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.text.fact import Fact
from quarterdeck.backend.picture.text.formatting import one_line
from quarterdeck.widgets.fact_sheet import FactSheet
from quarterdeck.widgets.line_table import Column, LineTable, TableCell

AGE_WIDTH = len("⇄ 119 min") + 1
LONGEST_NAME = 18
LATELY = 40
"""Suspicions and removals that are listed when they are over."""


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
    """Rows are observers, columns are suspects. Ages compare by their beginnings, the oldest last."""

    def __init__(self) -> None:
        super().__init__(COLUMNS, self._suspicions_of, rank_of=self._age_rank)
        self._picture = Picture()
        self._now_us = 0
        self.summary = SuspicionSummary((), (), 0, "")

    def show_at(self, picture: Picture, now_us: int) -> None:
        """Show the cells of `picture` at `now_us`; rows and columns stay."""
        self._picture, self._now_us = picture, now_us
        self.show_rows(self.summary.observers, self._row_of_observer)

    def update(self, agreement: ListAgreement, now_us: int, *, all_members: bool) -> None:
        """Count the suspicions again; with `all_members`, members without any are shown too."""
        former, self.summary = self.summary, summarize_suspicions(agreement, all_members=all_members)
        self.show_at(agreement.picture, now_us)
        self.widen("observer", map(one_line, self.keys), LONGEST_NAME)
        if self.summary.suspects != former.suspects:
            self.show_members({label: member_column(label) for label in self.summary.suspects})

    def _row_of_observer(self, key: str) -> SuspicionBoardRow:
        belief = self._picture.members.get(key)
        if belief is None:
            return SuspicionBoardRow(key, 0, greyed=True)
        return SuspicionBoardRow(key, len(belief.suspicions), not belief.running)

    def _suspicions_of(self, row: SuspicionBoardRow, suspects: Sequence[str]) -> Iterator[TableCell]:
        for label in suspects:
            seen = suspicion_cell(self._picture, row.label, label, self._now_us)
            yield TableCell(seen.text, seen.tone)

    def _age_rank(self, row: SuspicionBoardRow, suspect: str) -> int | None:
        since_us = suspicion_cell(self._picture, row.label, suspect, self._now_us).since_us
        return None if since_us is None else -since_us


def member_column(label: str) -> Column:
    """Return the column of a suspect."""
    title = one_line(label)
    return Column(title, max(min(cell_len(title), LONGEST_NAME) + 1, AGE_WIDTH), whole=True)


class SuspicionsScreen(ViewScreen):
    """The matrix above; below it the member under the cursor and its master."""

    view = "suspicions"
    detailed = True
    DEFAULT_CSS = """
    SuspicionsScreen #suspicions { height: auto; min-height: 4; max-height: 50%; scrollbar-size: 1 1; }
    SuspicionsScreen #conflict { height: 1fr; min-height: 5; scrollbar-size: 1 1; }
    """

    def __init__(self, session: ConsoleSession, console: ConsoleInterface) -> None:
        super().__init__(session, console)
        self._model = SuspicionModel()
        self._all_members: bool | None = None
        """None: as long as they are few."""
        self._counted: object = None
        self._decided_on: object = None
        self._decision: DisconnectionDecision | None = None
        self._timed: object = None
        self._timing = Timing()
        self._changed_us: int | None = None
        self._lately: deque[Record] = deque(maxlen=LATELY)
        self.main = self.matrix = LineTable(SortFilterModel(self._model), id="suspicions")
        self.sheet = FactSheet(id="conflict")

    def body(self) -> Iterable[Widget]:
        return self.title_line, self.matrix, self.sheet

    def receive(self, records: Sequence[Record]) -> None:
        ended = (SuspicionRaised, SuspicionCleared, MemberRemoved)
        self._lately.extend(record for record in records if isinstance(record.event, ended))

    def restart(self, records: Sequence[Record]) -> None:
        self._lately.clear()
        self.receive(records)

    def paint(self) -> None:
        picture, now_us = self.session.picture, self.session.now_us()
        all_members = self._shows_all
        moment = (all_members, picture.at, len(picture.members), self.session.epoch)
        if moment != self._counted:
            self._counted = moment
            self._model.update(self.session.judge.agreement, now_us, all_members=all_members)
        else:
            self._model.show_at(picture, now_us)
        summary = self._model.summary
        hidden = "" if all_members or not picture.members else "(only those with suspicions; z shows all)"
        self.title_line.show(
            TableCell("suspicions", "strong"),
            TableCell(summary.sentence, "warning" if summary.raised else "good"),
            TableCell(hidden, "faint"),
        )
        self.matrix.show()
        self._explain()

    @property
    def _shows_all(self) -> bool:
        return len(self.session.picture.members) <= MOST_WHOLE if self._all_members is None else self._all_members

    def sentence(self) -> Sequence[TableCell]:
        observer = self.matrix.cursor_key
        if observer is None:
            return ()
        return [TableCell(suspicion_sentence(self.session.picture, observer, self.session.now_us()), "faint")]

    def on_line_table_moved(self, event: LineTable.Moved) -> None:
        self._explain()

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
            facts.append(Fact("master", "no running member leads here, so nothing is decided", "faint"))
        else:
            self._reckon(master, now_us)
            facts += decision_facts(picture, master, self._decision, self._timing, now_us, self._changed_us)
        self.sheet.show((*facts, *self._history()))

    def _history(self) -> Iterator[Fact]:
        """Yield the latest suspicions and removals, the newest first: the master removes whom it suspects, and none is left."""
        for place, record in enumerate(reversed(self._lately)):
            words = record_words(record, self.session.picture.label_of)
            when = self.session.clock.spoken(record.at)
            yield Fact("" if place else "lately", f"{when} {one_line(record.member)}: {words}", "faint")

    def _master_of(self, observer: str) -> MemberBelief | None:
        picture = self.session.picture
        followed = picture.master_of(observer)
        if followed is not None:
            return followed
        return next(iter(self.session.judge.masters), None)

    def _reckon(self, master: MemberBelief, now_us: int) -> None:
        table = master.table
        held = (table.version, table.digest) if table is not None else None
        decides = (master.uuid, master.version, tuple(master.reports.items()), held)
        if decides != self._decided_on:
            self._decided_on = decides
            self._decision = decide(master)
        timed = (master.uuid, tuple(master.reports), now_us // SECOND_US, self.session.epoch)
        if timed != self._timed and self._decision is not None:
            self._timed = timed
            recent = self.session.recent
            self._timing, self._changed_us = timing_of(recent, master), reports_changed_us(recent, master.uuid)

    # What keys do

    def do_suspicions_whole(self, text: str) -> None:
        self._all_members = switched(text, self._shows_all)
        self._counted = None
        self.repaint()
