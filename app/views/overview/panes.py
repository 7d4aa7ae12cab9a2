"""The panes of the overview: each shows one thing that streams, and names the view that has all of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from textual.widget import Widget

from quarterdeck.app.actions.action import ViewName
from quarterdeck.app.session import ConsoleSession
from quarterdeck.app.views.beliefs.model import BeliefMatrixModel
from quarterdeck.app.views.overview.layout import PaneName
from quarterdeck.app.views.overview.models import LanesModel, SuspicionRowsModel, TableRowsModel
from quarterdeck.app.views.sort_filter_model import SortFilterModel
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.picture.boards.member_detail import member_detail
from quarterdeck.backend.picture.boards.overview.migration_lanes import queue_figure
from quarterdeck.backend.picture.boards.overview.suspicion_rows import suspicion_figure
from quarterdeck.backend.picture.boards.overview.table_rows import table_figure
from quarterdeck.backend.picture.text.fact import Fact
from quarterdeck.backend.picture.text.formatting import listed, one_line
from quarterdeck.widgets.fact_sheet import FactSheet
from quarterdeck.widgets.line_table import LineTable, TableCell
from quarterdeck.widgets.pane import Pane

NAMED = 3
"""How many rows are told in the edge of a pane that is folded."""
MOST_TOLD = 30
"""Of more members nothing is told there but the figure."""


class OverviewPane(Pane):
    """What all of them have. `view` is opened by enter."""

    view: ViewName
    pane_name: PaneName

    def __init__(self, session: ConsoleSession, key: str, title: str, body: Widget) -> None:
        super().__init__(key, title, body, id=f"pane-{self.pane_name}")
        self.session = session

    @property
    def table(self) -> LineTable | None:
        """The table in it, if there is one."""
        return self.body if isinstance(self.body, LineTable) else None

    @property
    def member(self) -> str:
        """Label of the member that the row under the cursor is about; empty for none."""
        return (self.table.cursor_key or "") if self.table is not None else ""

    def take(self, records: Sequence[Record]) -> None:
        """Take in what happened."""

    def restart(self, records: Sequence[Record]) -> None:
        """What happened until now are `records`, and nothing else."""

    def paint(self, labels: Sequence[str], marks: Mapping[str, str]) -> None:
        """Show the session as it is now. `marks` says whose news are old, and how old."""
        raise NotImplementedError


class ListsPane(OverviewPane):
    """The matrix of who holds whom for a member of what."""

    view, pane_name = "beliefs", "lists"

    def __init__(self, session: ConsoleSession, key: str) -> None:
        self.model = BeliefMatrixModel(session.picture)
        super().__init__(session, key, "member lists", LineTable(SortFilterModel(self.model), id="matrix"))

    def paint(self, labels: Sequence[str], marks: Mapping[str, str]) -> None:
        self.model.fit(self.body.size.width)
        self.model.update(self.session.picture, labels, marks)
        self.edge.show([self._figure()])
        if self.table is not None:
            self.table.show()

    def _figure(self) -> TableCell:
        lists = self.model.summary.lists
        lineages = len({one.lineage for one in lists})
        if lineages > 1:
            return TableCell(f"≠ {lineages} lineages", "warning")
        if len(lists) > 1:
            return TableCell(f"≠ {len(lists)} lists", "warning")
        return TableCell(f"= v{lists[0].version}", "good") if lists else TableCell("none yet", "faint")


class SuspicionsPane(OverviewPane):
    """Every suspicion in force."""

    view, pane_name = "suspicions", "suspicions"

    def __init__(self, session: ConsoleSession, key: str) -> None:
        self.model = SuspicionRowsModel()
        table = LineTable(SortFilterModel(self.model), id="overview-suspicions")
        super().__init__(session, key, "suspicions", table)

    @property
    def member(self) -> str:
        return self.model.member(self.table.cursor_key if self.table is not None else None)

    def paint(self, labels: Sequence[str], marks: Mapping[str, str]) -> None:
        picture, now_us = self.session.picture, self.session.now_us()
        self.model.update(picture, labels, now_us)
        parts = [TableCell(*suspicion_figure(self.model.rows))]
        if self.folded:
            rows = [self.model.rows.row(picture, key, now_us) for key in list(self.model.keys)[: NAMED + 1]]
            parts.append(TableCell(listed([f"{row.pair} {row.age}" for row in rows], NAMED), "warning"))
        elif self.table is not None:
            self.table.say_when_empty(self.model.rows.nothing)
            self.table.show()
        self.edge.show(parts)


class TablesPane(OverviewPane):
    """The partition table of every member."""

    view, pane_name = "partitions", "tables"

    def __init__(self, session: ConsoleSession, key: str) -> None:
        self.model = TableRowsModel()
        super().__init__(session, key, "partition tables", LineTable(SortFilterModel(self.model), id="overview-tables"))

    def paint(self, labels: Sequence[str], marks: Mapping[str, str]) -> None:
        picture = self.session.picture
        self.model.update(picture, labels, self.session.now_us())
        parts = [TableCell(*table_figure(picture, labels))]
        if self.folded:
            parts += self._states(labels) if len(labels) <= MOST_TOLD else []
        elif self.table is not None:
            self.table.show()
        self.edge.show(parts)

    def _states(self, labels: Sequence[str]) -> list[TableCell]:
        """What is said of the tables, each with how many members that is so of."""
        told: dict[TableCell, int] = {}
        for label in labels:
            row = self.model.row(label)
            if row is not None and row.version:
                cell = TableCell(row.state, row.tone)
                told[cell] = told.get(cell, 0) + 1
        alike = len(told) == 1
        return [TableCell(cell.text if alike else f"{number} {cell.text}", cell.tone) for cell, number in told.items()]


class MigrationsPane(OverviewPane):
    """The queue in its edge, and below what each member gives away and takes in."""

    view, pane_name = "migrations", "migrations"

    def __init__(self, session: ConsoleSession, key: str) -> None:
        self.model = LanesModel()
        super().__init__(session, key, "migrations", LineTable(SortFilterModel(self.model), id="overview-lanes"))

    def take(self, records: Sequence[Record]) -> None:
        self.model.lanes.take(records)

    def restart(self, records: Sequence[Record]) -> None:
        self.model.lanes.restart(records)

    def paint(self, labels: Sequence[str], marks: Mapping[str, str]) -> None:
        picture, now_us = self.session.picture, self.session.now_us()
        self.edge.show([TableCell(*queue_figure(picture, now_us))])
        if not self.folded and self.table is not None:
            self.model.update(picture, labels, now_us)
            self.table.show()


class DetailPane(OverviewPane):
    """What is known of the member under the cursor of another pane."""

    view, pane_name = "member", "detail"

    def __init__(self, session: ConsoleSession, key: str) -> None:
        self.sheet = FactSheet(id="overview-detail")
        self._about: object = None
        self._label = ""
        super().__init__(session, key, "detail", self.sheet)

    @property
    def member(self) -> str:
        return self._label

    def paint(self, labels: Sequence[str], marks: Mapping[str, str]) -> None:
        """The overview says whom it is about."""

    def say(self, label: str, links: Sequence[Fact]) -> None:
        """Tell of this member, of one of many at most once a second; `links` are what is known of the connection to it."""
        now_us = self.session.now_us()
        picture = self.session.picture
        news = picture.at if len(picture.members) <= MOST_TOLD else 0
        about = (label, now_us // SECOND_US, self.session.epoch, news)
        if about == self._about:
            return
        self._about, self._label = about, label
        self.edge.show([TableCell(one_line(label), "strong")])
        if not label:
            self.sheet.show(())
            return
        facts = member_detail(picture, label, now_us, recent=self.session.recent, listing=False)
        self.sheet.show((*links, *facts))
