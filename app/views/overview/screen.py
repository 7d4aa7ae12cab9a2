"""The first view: the present state at one glance, in panes, each of which opens the view that shows it in full."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from textual.containers import Container
from textual.events import DescendantFocus
from textual.widget import Widget

from quarterdeck.app.actions.action import ViewName
from quarterdeck.app.actions.registry import action_called
from quarterdeck.app.console_interface import ConsoleInterface, Pointed
from quarterdeck.app.screen.view_screen import ViewScreen
from quarterdeck.app.session import ConsoleSession
from quarterdeck.app.views.beliefs import verdict_cells
from quarterdeck.app.views.overview.panes import (
    PANES,
    DetailPane,
    HappenedPane,
    ListsPane,
    MigrationsPane,
    OverviewPane,
    PaneArrangement,
    PaneName,
    SuspicionsPane,
    TablesPane,
    arrange,
)
from quarterdeck.backend.boards.overview_rows import Activity
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.link_condition import LinkChanged
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.picture.text.formatting import Refusal
from quarterdeck.widgets.line_table import LineTable, TableCell
from quarterdeck.widgets.pane import Pane
from quarterdeck.widgets.status_line import StatusLine

ROWS_FOR_VERDICT = 16
ROWS_FOR_ACTIVITY = 45
COLUMNS_FOR_ACTIVITY = 130

HALVES = ("upper", "lower")
"""What happened and the detail, which stand below, are painted in other ticks than the rest: a key never waits for both."""

MANY_MEMBERS = 50
"""With more members only the matrix and what happened are updated in every tick, the other panes twice a second."""
SELDOM_US = SECOND_US // 2


ROOMY_ROWS = 20
"""A screen of fewer rows has no room for suggestions."""

WORTH_A_TRY = (
    ("demos", "D a three-minute lesson"), ("time-fork", "F a copy to try"), ("cut", "6 n predicts a fault"),
    ("help", "? all keys"),
)  # fmt: skip
"""What nothing else resembles, and how to get to it: shown as far as the action is bound."""

FIRST_STEPS = "try: space marks two · c cuts them off · two masters lead · h heals"
"""What to do first in a cluster whose network may be cut, until a cut was seen."""
HEALING = "two sides now: 7 says why they do not merge · h heals"

NEW_US = 60 * SECOND_US
CALM_US = 5 * SECOND_US
"""How long a run is new, and after how long without an event it is calm."""


class OverviewScreen(ViewScreen):
    """The home of a session. The filter is for what happened; actions are for the member under the cursor of the focused pane."""

    view = "overview"
    DEFAULT_CSS = """
    OverviewScreen #verdict, OverviewScreen #pulses { height: 1; }
    OverviewScreen #overview { height: 1fr; layout: vertical; }
    """

    def __init__(self, session: ConsoleSession, console: ConsoleInterface) -> None:
        super().__init__(session, console)
        self._marks: Mapping[str, str] = {}
        self._labels: tuple[str, ...] = ()
        self._arranged: PaneArrangement | None = None
        self._enlarged: PaneName | None = None
        self._seldom_painted = -1
        self._half: str | None = None
        """What is painted in this tick; all of it outside of ticks."""
        self._waiting: set[str] = set()
        self._half_painted_us = dict.fromkeys(HALVES, -SECOND_US)
        self._latest_half = HALVES[-1]
        self._detail_waits = False
        self._activity = Activity()
        self._has_cut = False
        """Whether a link was ever cut in the run as far as it is shown."""
        self._pointed: PaneName = "lists"
        """The pane that has the focus, or had it last, of those whose rows have a detail."""
        self.verdict = StatusLine(id="verdict", most_lines=3)
        self.pulses = StatusLine(id="pulses")
        self.lists = ListsPane(session, self._key_of("beliefs"))
        self.happened = HappenedPane(session, self._key_of("events"))
        self.detail = DetailPane(session, self._key_of("member"))
        self.panes: dict[PaneName, OverviewPane] = {
            "lists": self.lists,
            "suspicions": SuspicionsPane(session, self._key_of("suspicions")),
            "tables": TablesPane(session, self._key_of("partitions")),
            "migrations": MigrationsPane(session, self._key_of("migrations")),
            "happened": self.happened,
            "detail": self.detail,
        }
        self.overview = Container(*(self.panes[name] for name in PANES), id="overview")

    def body(self) -> Iterable[Widget]:
        return self.verdict, self.pulses, self.overview

    @property
    def table(self) -> LineTable:
        """The table of the focused pane; the matrix if it has none."""
        table = self.panes[self._pointed].table
        return table if table is not None else self.matrix

    @property
    def matrix(self) -> LineTable:
        return self.lists.table

    @property
    def focused_first(self) -> Widget:
        return self.matrix

    def targets(self) -> tuple[str, ...]:
        selected = self.table.selection if self._pointed != "suspicions" else ()
        under = self.member_under_cursor
        return selected or ((under,) if under else ())

    @property
    def member_under_cursor(self) -> str:
        return self.panes[self._pointed].member

    def point_at(self, label: str) -> None:
        self.matrix.point_at(label)

    def filter_by(self, text: str) -> None:
        self.happened.tail.set_filter(text)
        self.happened.say()

    @property
    def filter_text(self) -> str:
        return self.happened.tail.filter_text

    def sentence(self) -> Sequence[TableCell]:
        entry = self.happened.tail.pointed
        if entry is not None and self._focused is self.happened:
            return [TableCell(entry.words(self.session.picture.label_of))]
        return self.lists.model.difference(self.matrix.cursor_key) or self._quiet_line()

    def on_tail_log_moved(self) -> None:
        self._say_sentence()

    def _quiet_line(self) -> Sequence[TableCell]:
        """Return the next step to try: cut, then heal, then more while the cluster is calm. Small screens have no room for it."""
        session = self.session
        now_us = session.now_us()
        if self.size.height < ROOMY_ROWS or self.console.has_way_back or not session.live:
            return ()
        if "cut" in self.bound_actions and (session.picture.links or not self._has_cut):
            return [TableCell(HEALING if session.picture.links else FIRST_STEPS, "faint")]
        if NEW_US < now_us < session.tape.end_us + CALM_US:
            return ()
        return [TableCell(" · ".join(text for name, text in WORTH_A_TRY if name in self.bound_actions), "faint")]

    def receive(self, records: Sequence[Record]) -> None:
        self._activity.take(records)
        self._has_cut = self._has_cut or any(isinstance(record.event, LinkChanged) for record in records)
        for pane in self.panes.values():
            pane.receive(records)

    def restart(self, records: Sequence[Record]) -> None:
        self._activity.restart(records)
        self._has_cut = any(isinstance(record.event, LinkChanged) for record in records)
        for pane in self.panes.values():
            pane.restart(records)

    def tick(self, *, news: bool) -> None:
        """Treat new members and new episodes as news, too, and the cursor's rest as news of the detail."""
        grown = len(self.session.cluster.labels) != len(self._labels)
        if news or grown or self.happened.stale or self.session.now_us() // SECOND_US != self._painted_second:
            self._waiting = set(HALVES)
        elif self._detail_waits and self.at_rest:
            self._waiting.add("lower")
        due = [half for half in HALVES if half in self._waiting and self.may_change(self._half_painted_us[half])]
        self._half = min(due, key=lambda half: half == self._latest_half, default=None)
        super().tick(news=self._half is not None)
        self._half = None

    @property
    def due(self) -> bool:
        return self._half is not None

    def repaint(self) -> None:
        """Leave what stands around the panes to the tick of the upper half."""
        if self._half == "lower":
            self.paint_epoch()
        else:
            super().repaint()

    def paint(self) -> None:
        """Paint everything, or the half whose turn it is: changes in one frame should stand close together."""
        if self._half != "lower":
            self._labels, self._marks = self.session.labels, self.connections.marks()
            self._arrange()
        if self._half != "upper":
            self._painted("lower")
            self.happened.paint(self._labels, self._marks)
            self._detail_waits = self.detail.display and not self.at_rest
            if self.detail.display and self.at_rest:
                self.detail.say(self.member_under_cursor, tuple(self.connections.facts(self.member_under_cursor)))
        if self._half == "lower":
            return
        self._painted("upper")
        self.lists.paint(self._labels, self._marks)
        summary = self.lists.model.summary
        apart = [cell for quoted in summary.apart for cell in (TableCell("∦", "warning"), TableCell(quoted))]
        self.verdict.show(*verdict_cells(summary, self.session.picture), *apart)
        if self._due():
            for name, pane in self.panes.items():
                if pane.display and name not in ("lists", "happened"):
                    pane.paint(self._labels, self._marks)
            self._say_activity()

    def _painted(self, half: str) -> None:
        self._waiting.discard(half)
        self._latest_half = half
        self._half_painted_us[half] = self.session.now_us()

    # Events

    def on_resize(self) -> None:
        if self.is_mounted:
            self.call_after_refresh(self.repaint)

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        pane = self._focused
        if pane.pane_name not in ("happened", "detail"):
            self._pointed = pane.pane_name
            self._waiting.add("lower")
            self._say_below()

    def on_line_table_moved(self, event: LineTable.Moved) -> None:
        """Let the detail follow once the cursor rests."""
        self._detail_waits = True

    def on_pane_chosen(self, message: Pane.Chosen) -> None:
        if isinstance(message.pane, OverviewPane):
            self._open(message.pane)

    # What keys do

    @property
    def _focused(self) -> OverviewPane:
        return next((pane for pane in self.panes.values() if pane.has_focus_within), self.lists)

    def do_open_pane(self, _: str) -> None:
        self._open(self._focused)

    def do_follow(self, _: str) -> None:
        self.happened.tail.set_following(not self.happened.tail.following)

    def _open(self, pane: OverviewPane) -> None:
        if pane is self.happened:
            record = self.happened.pointed
            self.console.goto(pane.view, event=Pointed(record) if record is not None else None)
        else:
            self.console.goto(pane.view, member=pane.member or self.member_under_cursor)

    def do_event_because(self, line: str) -> None:
        """Explain what made the named member, or the one under the cursor, what it is; in the tail, the event there."""
        member = line.partition(" ")[2]
        if member or (self._focused is not self.happened and (member := self.member_under_cursor)):
            self.console.goto("events", event=Pointed(None, because=True, member=member))
            return
        record = self.happened.latest
        if record is None:
            raise Refusal("nothing has happened yet")
        self.console.goto("events", event=Pointed(record, because=True))

    def do_back(self, _: str) -> None:
        if self._enlarged is None:
            self.console.back()
        else:
            self.do_enlarge_pane("")

    def do_enlarge_pane(self, _: str) -> None:
        focused = self._focused
        self._enlarged = focused.pane_name if self._enlarged is None else None
        self._arrange()
        focused.focus_inside()
        self.repaint()

    # Painting

    def _due(self) -> bool:
        part = self.session.now_us() // SELDOM_US
        if len(self._labels) <= MANY_MEMBERS or part != self._seldom_painted:
            self._seldom_painted = part
            return True
        return False

    def _arrange(self) -> None:
        width, height = self.app.size
        self.verdict.display = height >= ROWS_FOR_VERDICT
        self.pulses.display = height >= ROWS_FOR_ACTIVITY and width >= COLUMNS_FOR_ACTIVITY
        rows = self.overview.size.height or self._rows_to_be()
        wanted = arrange(self.app.size, rows, len(self._labels), self._enlarged, lists=self.lists.rows_wanted)
        if wanted == self._arranged:
            return
        self._arranged = wanted
        grid = wanted.shape != "lines"
        styles = self.overview.styles
        styles.layout = "grid" if grid else "vertical"
        if grid:
            styles.grid_size_columns = 2
            styles.grid_rows = " ".join(map(_height, wanted.rows))
        heights = iter(wanted.rows)
        for name, pane in self.panes.items():
            pane.display = name not in wanted.hidden
            pane.fold(name in wanted.folded)
            if pane.display:
                pane.styles.height = "1fr" if grid else _height(next(heights))
        self.happened.styles.column_span = self.detail.styles.column_span = 2 if grid else 1

    def _rows_to_be(self) -> int:
        """Return the rows of the panes before the layout: all but the lines around them.

        This saves laying out and painting twice.
        """
        around = [*self.children, self.verdict, self.pulses]
        return self.app.size.height - sum(widget.display for widget in around if widget.id != "body")

    def _say_activity(self) -> None:
        if self.pulses.display:
            self.pulses.show(
                *(
                    TableCell(" ".join(filter(None, (pulse.title, pulse.bars, pulse.rate))), pulse.tone)
                    for pulse in self._activity.pulses(self.session.picture, self.session.now_us())
                )
            )

    def _key_of(self, view: ViewName) -> str:
        wanted = "detail" if view == "member" else view
        for binding in self.BINDINGS:
            if not isinstance(binding, tuple) and binding.action == f"app.act('{wanted}')":
                return binding.key_display or ""
        return action_called(wanted).key_display


def _height(cells: int) -> str:
    """Return so many cells, or for 0 all that is left, as style sheets write it."""
    return str(cells) if cells else "1fr"
