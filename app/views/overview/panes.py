"""The panes of the overview: each shows one thing that streams, and names the view that has all of it.

Where they stand follows from the room that there is and the number of members.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from rich.cells import cell_len
from textual.geometry import Size
from textual.widget import Widget

from quarterdeck.app.actions.action import ViewName
from quarterdeck.app.event_lines import Entry, LevelFeed, LineFormat
from quarterdeck.app.screen.columns import BoardModel, ColumnOf, SortableModel, SortFilterModel
from quarterdeck.app.session import ConsoleSession
from quarterdeck.app.views.beliefs import BeliefMatrixModel
from quarterdeck.backend.boards.belief_matrix import DIGEST_SHOWN
from quarterdeck.backend.boards.member_detail import member_detail
from quarterdeck.backend.boards.migration_lanes import SLOTS, LaneRow, MigrationLanes, nothing_moved, queue_figure
from quarterdeck.backend.boards.overview_rows import NO_TABLE, TableRow, TableRows, no_table_yet, table_figure
from quarterdeck.backend.boards.suspicion_board import SuspicionRow, SuspicionRows, suspicion_figure, suspicion_rows
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.judgement.health.copy_counts import STRIP_LENGTH
from quarterdeck.backend.picture.text.fact import Fact
from quarterdeck.backend.picture.text.formatting import listed, one_line
from quarterdeck.widgets.fact_sheet import FactSheet
from quarterdeck.widgets.line_table import LineTable, TableCell
from quarterdeck.widgets.pane import Pane
from quarterdeck.widgets.tail_log import TailLog

PaneName = Literal["lists", "suspicions", "tables", "migrations", "happened", "detail"]

PANES: tuple[PaneName, ...] = ("lists", "suspicions", "tables", "migrations", "happened", "detail")
"""In the order in which tab visits them."""

Shape = Literal["lines", "two"]
"""All below each other, most of them a line each; or two side by side, above what happened and the detail in the whole width."""

TWO_FROM = (110, 30)
"""Columns and rows of the screen from which two panes stand side by side, whatever there is to say around them just now."""
DETAIL_FROM = (150, 42)
FRAME = 3
"""Lines of a pane that are no rows: upper edge, heading of the columns, lower edge."""
LEAST_ROWS = 2
"""The least rows of a table that is not folded."""
LEAST_HAPPENED = 4
LEAST_SIDE_BY_SIDE = 3 * (FRAME + LEAST_ROWS)
"""The least rows of all panes together while some stand side by side."""
DETAIL_ROWS = 15
"""The most rows of the detail: the events have the rest."""
LEAST_LISTED = 5
"""The least rows of the lists when members that agree share one: suspicions stand beside them."""


class PaneArrangement(NamedTuple):
    """The arrangement. `rows` has the heights of the lines of panes from the top; 0 means all that is left."""

    shape: Shape
    rows: tuple[int, ...]
    folded: frozenset[PaneName] = frozenset()
    """Panes of which only the edge is shown."""
    hidden: frozenset[PaneName] = frozenset()


def arrange(
    screen: Size, height: int, members: int, enlarged: PaneName | None = None, *, lists: int | None = None
) -> PaneArrangement:
    """Return the arrangement on this `screen`, where panes have so much `height`; an `enlarged` pane has all of it.

    The pane of the lists has so many `lists` rows, fewer than there are members while many of them agree.
    """
    if enlarged is not None:
        return PaneArrangement("lines", (0,), hidden=frozenset(PANES) - {enlarged})
    wanted = members + FRAME
    first = wanted if lists is None else max(lists, LEAST_LISTED) + FRAME
    if height >= LEAST_SIDE_BY_SIDE:
        rows = (_shared(first, height, 3), _shared(wanted, height, 3), 0)
        if _fits(screen, DETAIL_FROM):
            left = height - rows[0] - rows[1]
            return PaneArrangement("two", (*rows, min(DETAIL_ROWS, left // 2)))
        if _fits(screen, TWO_FROM):
            return PaneArrangement("two", rows, hidden=frozenset({"detail"}))
    single: tuple[PaneName, ...] = ("suspicions", "tables", "migrations")
    left = height - len(single)
    if left < FRAME + LEAST_ROWS + 1:
        return PaneArrangement("lines", (0, 1, 1, 1), frozenset(single), frozenset({"happened", "detail"}))
    lists = max(FRAME + LEAST_ROWS, min(wanted, left - LEAST_HAPPENED))
    if left - lists < LEAST_HAPPENED:
        return PaneArrangement("lines", (0, 1, 1, 1, 1), frozenset({*single, "happened"}), frozenset({"detail"}))
    return PaneArrangement("lines", (lists, 1, 1, 1, 0), frozenset(single), frozenset({"detail"}))


def _fits(screen: Size, least: tuple[int, int]) -> bool:
    return screen.width >= least[0] and screen.height >= least[1]


def _shared(wanted: int, height: int, rows: int) -> int:
    return max(FRAME + LEAST_ROWS, min(wanted, height // rows))


LONGEST_NAME = 16

SUSPICION_COLUMNS: tuple[ColumnOf[SuspicionRow], ...] = (
    ColumnOf("who suspects whom", lambda row: row.pair, "warning"),
    ColumnOf("for", lambda row: f"{row.glyph} {row.age}", "warning", "⇄ 119 min", lambda row: -row.since_us),
    ColumnOf("because", lambda row: row.reason, widest=60),
)

TABLE_COLUMNS: tuple[ColumnOf[TableRow], ...] = (
    ColumnOf("member", lambda row: row.label),
    ColumnOf("table", lambda row: row.version, widest="v9999"),
    ColumnOf("owns", lambda row: str(row.owned or ""), widest="9999", rank=lambda row: row.owned),
    ColumnOf("", lambda row: row.state, lambda row: row.tone, "! 271 with one copy"),
    ColumnOf("digest", lambda row: row.digest, lambda row: "warning" if row.differs else "faint", DIGEST_SHOWN),
    ColumnOf("copies", lambda row: row.strip, lambda row: row.tone if row.tone == "bad" else "plain", STRIP_LENGTH),
)

LANE_COLUMNS: tuple[ColumnOf[LaneRow], ...] = (
    ColumnOf("member", lambda row: row.label, lambda row: "plain" if row.busy else "faint"),
    ColumnOf("out", lambda row: row.given.lane, "strong", SLOTS),
    ColumnOf("/s", lambda row: row.given.rate, widest="99.9", rank=lambda row: row.given.count),
    ColumnOf("in", lambda row: row.taken.lane, "good", SLOTS),
    ColumnOf("/s ", lambda row: row.taken.rate, widest="99.9", rank=lambda row: row.taken.count),
    ColumnOf("bytes in/s", lambda row: row.taken.copied),
)


@lru_cache(maxsize=4)
def longest(labels: tuple[str, ...]) -> str:
    """Return the label that takes the most room, as it is shown. Members seldom come and go, so it is remembered."""
    return max(map(one_line, labels), key=cell_len, default="")


NAMED = 3
"""Rows that the edge of a folded pane names."""
MOST_COUNTED = 30
"""With more members, only the figure is shown there."""


class OverviewPane(Pane):
    """A pane of the overview. `view` is opened by enter."""

    view: ViewName
    pane_name: PaneName
    table: LineTable | None = None

    def __init__(self, session: ConsoleSession, key: str, title: str, body: Widget) -> None:
        super().__init__(key, title, body, id=f"pane-{self.pane_name}")
        self.session = session

    @property
    def member(self) -> str:
        """The label of the member of the row under the cursor; empty for none."""
        return ""

    def receive(self, records: Sequence[Record]) -> None:
        """Receive new records."""

    def restart(self, records: Sequence[Record]) -> None:
        """Forget all records but `records`."""

    def paint(self, labels: Sequence[str], marks: Mapping[str, str]) -> None:
        """Show the session as it is now. `marks` has the age of each outdated report, by label."""


class TablePane(OverviewPane):
    """A pane with a table of `model`."""

    def __init__(self, session: ConsoleSession, key: str, title: str, model: SortableModel, table_id: str) -> None:
        self.table: LineTable = LineTable(SortFilterModel(model), id=table_id)
        super().__init__(session, key, title, self.table)

    @property
    def member(self) -> str:
        return self.table.cursor_key or ""


class ListsPane(TablePane):
    """The matrix of member lists."""

    view, pane_name = "beliefs", "lists"

    def __init__(self, session: ConsoleSession, key: str) -> None:
        self.model = BeliefMatrixModel(session.picture, in_pane=True)
        self.rows_wanted: int | None = None
        """How many rows it shows while there are fewer than members, because many of these agree."""
        super().__init__(session, key, "member lists", self.model, "matrix")

    def paint(self, labels: Sequence[str], marks: Mapping[str, str]) -> None:
        self.model.fit(self.body.size.width)
        self.model.update(self.session.judge.agreement, labels, marks)
        dissenters = self.model.summary.dissenters
        if dissenters and len(labels) > self.body.size.height - 1:
            self.model.lead_with(dissenters)
        self.rows_wanted = len(self.model.keys) if len(self.model.keys) < len(labels) else None
        agreed = f"{len(self.model.summary.lists[0].held_by)} agree" if dissenters else ""
        self.edge.show(self._figure(), TableCell(agreed, "faint"))
        self.table.show()

    def _figure(self) -> TableCell:
        lists = self.model.summary.lists
        lineages = self.model.summary.lineages
        if lineages > 1:
            return TableCell(f"≠ {lineages} lineages", "warning")
        if len(lists) > 1:
            return TableCell(f"≠ {len(lists)} lists", "warning")
        return TableCell(f"= v{lists[0].version}", "good") if lists else TableCell("none yet", "faint")


class SuspicionsPane(TablePane):
    """Every suspicion in force."""

    view, pane_name = "suspicions", "suspicions"

    def __init__(self, session: ConsoleSession, key: str) -> None:
        self.model = BoardModel(SUSPICION_COLUMNS)
        self._rows = SuspicionRows()
        super().__init__(session, key, "suspicions", self.model, "overview-suspicions")

    @property
    def member(self) -> str:
        observer, _ = self._rows.entries.get(self.table.cursor_key or "", ("", None))
        return observer

    def paint(self, labels: Sequence[str], marks: Mapping[str, str]) -> None:
        picture, now_us = self.session.picture, self.session.now_us()
        found = self.session.judge.agreement.suspicions
        rows = self._rows = suspicion_rows(found, labels)
        self.model.show_rows(tuple(rows.entries), lambda key: rows.row(picture, key, now_us))
        if rows.entries:
            pair_width = 2 * min(max(map(len, labels), default=0), LONGEST_NAME) + 3
            self.model.widen("who suspects whom", [" " * pair_width])
        parts = [TableCell(*suspicion_figure(found))]
        if self.folded:
            first = [rows.row(picture, key, now_us) for key in self.model.keys[: NAMED + 1]]
            parts.append(TableCell(listed([f"{row.pair} {row.age}" for row in first], NAMED), "warning"))
        else:
            self.table.say_when_empty(rows.nothing)
            self.table.show()
        self.edge.show(*parts)


class TablesPane(TablePane):
    """The partition table of every member."""

    view, pane_name = "partitions", "tables"

    def __init__(self, session: ConsoleSession, key: str) -> None:
        self.model = BoardModel(
            TABLE_COLUMNS,
            fixed=1,
            tone=lambda row: "faint" if row.greyed else "plain",
            outlier=lambda row: row.tone == "bad",
        )
        self._rows = TableRows()
        super().__init__(session, key, "partition tables", self.model, "overview-tables")

    def paint(self, labels: Sequence[str], marks: Mapping[str, str]) -> None:
        judge = self.session.judge
        picture, now_us = judge.picture, judge.now_us
        shown = () if no_table_yet(picture, labels) else labels
        self.model.show_rows(shown, lambda label: self._rows.row(judge, label))
        self.table.say_when_empty(NO_TABLE)
        self.model.widen("member", [longest(tuple(labels))], LONGEST_NAME)
        parts = [TableCell(*table_figure(picture, labels, now_us))]
        if self.folded:
            parts += self._states(labels) if len(labels) <= MOST_COUNTED else []
        else:
            self.table.show()
        self.edge.show(*parts)

    def _states(self, labels: Sequence[str]) -> list[TableCell]:
        counts: dict[TableCell, int] = {}
        for label in labels:
            row = self.model.row(label)
            if row is not None and row.version:
                cell = TableCell(row.state, row.tone)
                counts[cell] = counts.get(cell, 0) + 1
        if len(counts) == 1:
            return list(counts)
        return [TableCell(f"{number} {cell.text}", cell.tone) for cell, number in counts.items()]


class MigrationsPane(TablePane):
    """The queue in its edge, and below it what each member sends and receives."""

    view, pane_name = "migrations", "migrations"

    def __init__(self, session: ConsoleSession, key: str) -> None:
        self.model = BoardModel(LANE_COLUMNS, fixed=1)
        self._lanes = MigrationLanes()
        super().__init__(session, key, "migrations", self.model, "overview-lanes")

    def receive(self, records: Sequence[Record]) -> None:
        self._lanes.take(records)

    def restart(self, records: Sequence[Record]) -> None:
        self._lanes.restart(records)

    def paint(self, labels: Sequence[str], marks: Mapping[str, str]) -> None:
        picture, now_us = self.session.picture, self.session.now_us()
        self.edge.show(TableCell(*queue_figure(self.session.judge)))
        if not self.folded:
            self.model.show_rows(labels if self._lanes.moved else (), self._lanes.rows(picture, now_us))
            self.table.say_when_empty(nothing_moved(picture))
            self.model.widen("member", [longest(tuple(labels))], LONGEST_NAME)
            self.table.show()


class DetailPane(OverviewPane):
    """The facts about the member under the cursor of another pane, as the overview calls `say`."""

    view, pane_name = "member", "detail"
    member = ""

    def __init__(self, session: ConsoleSession, key: str) -> None:
        self.sheet = FactSheet(id="overview-detail")
        self._about: object = None
        super().__init__(session, key, "detail", self.sheet)

    def say(self, label: str, links: Sequence[Fact]) -> None:
        """Show the facts about this member, in a large cluster at most once a second.

        `links` are those about the connection to it.
        """
        about = (label, self.session.detail_beat)
        if about == self._about:
            return
        self._about, self.member = about, label
        self.edge.show(TableCell(one_line(label), "strong"))
        if not label:
            self.sheet.show(())
            return
        session = self.session
        facts = member_detail(
            session.picture, label, session.now_us(), recent=session.recent, listing=False, time_of=session.clock.spoken
        )
        self.sheet.show((*links, *facts))


class HappenedPane(OverviewPane):
    """The latest episodes, one on a line; `f`, or moving up, pauses it."""

    view, pane_name = "events", "happened"

    def __init__(self, session: ConsoleSession, key: str) -> None:
        self._format = LineFormat(session.label_of, lambda: self.tail.size.width, session.clock)
        self.tail: TailLog[Entry] = TailLog(
            self._format.entry_line, title="", headed=False, matcher_of=self._format.matcher, id="tail"
        )
        self._feed = LevelFeed(session, self.tail)
        super().__init__(session, key, "what happened", self.tail)

    def receive(self, records: Sequence[Record]) -> None:
        self._feed.extend(records)

    def restart(self, records: Sequence[Record]) -> None:
        self._feed.restart(records)

    @property
    def pointed(self) -> Record | None:
        """The first event of the line under the cursor; None while the end is followed."""
        entry = self.tail.pointed
        return entry.record if entry is not None else None

    @property
    def latest(self) -> Record | None:
        """The first event of the line under the cursor, or of the last line."""
        entry = self.tail.current
        return entry.record if entry is not None else None

    @property
    def stale(self) -> bool:
        """Whether there are episodes that are not shown yet."""
        return self._feed.stale

    def paint(self, labels: Sequence[str], marks: Mapping[str, str]) -> None:
        self.tail.set_zone(self.session.clock.zone)
        self._feed.grow(())
        self.say()

    def say(self) -> None:
        """Show whether it follows, and the filter; if folded, the latest line."""
        parts = [TableCell(self.tail.title_text, "faint" if self.tail.following else "strong")]
        if self.folded and self.tail.shown:
            latest = self._format.entry_line(self.tail.shown[-1])
            parts = [TableCell(latest.text.strip(), latest.tone)]
        self.edge.show(*parts)
