"""What all views share: a first line, a body, a sentence on what the cursor is on, a message, the prompt and the footer."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from time import monotonic
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.events import ScreenResume
from textual.geometry import Size
from textual.screen import Screen
from textual.widget import Widget

from quarterdeck.app.actions.action import Action, ViewName, WordKind
from quarterdeck.app.actions.registry import action_called
from quarterdeck.app.actions.views import VIEW_OF
from quarterdeck.app.console_interface import ConsoleInterface, Pointed
from quarterdeck.app.key_map import ACT, BAR, KEPT, KEPT_AT_HOME, TYPING, works
from quarterdeck.app.screen.columns import SortFilterModel
from quarterdeck.app.screen.header import ConnectionSummary, header_parts
from quarterdeck.app.session import ConsoleSession
from quarterdeck.backend.boards.member_detail import member_detail
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.picture.text.fact import Fact
from quarterdeck.backend.picture.text.formatting import one_line
from quarterdeck.widgets.dirty_rows import DirtyRowsCompositor
from quarterdeck.widgets.fact_sheet import RowDetail
from quarterdeck.widgets.hint_line import Hint, HintLine, ViewBar
from quarterdeck.widgets.line_table import LineTable, TableCell
from quarterdeck.widgets.prompt import CandidateList, Prompt
from quarterdeck.widgets.status_line import StatusLine

REST_SECONDS = 0.3
"""How long the cursor rests before the detail follows it: the keys of one who passes by are answered first."""

STORM_US = 400_000
"""While events never stop, a view is painted once in this time."""

MESSAGE_SECONDS = 60.0
COLUMNS_FOR_DETAIL = 150
"""The width from which the detail of a row stands beside the tables."""

COLUMNS_BESIDE_PICTURES = 190
"""The same for views whose drawings or lines need the width themselves."""

ROWS_FOR_VIEWS = 30
"""The height from which there is a line with the names of the views."""

ROWS_FOR_DETAIL = 36
"""The height from which the detail of a row stands below the table."""


def show_if(widget: Widget, wanted: bool) -> None:
    if widget.display != wanted:
        widget.display = wanted


class ViewScreen(Screen[None]):
    """One view of a session. The console calls `tick`; a view implements `body` and `paint`.

    Actions on members are for `targets()`. What the view itself can do are its methods that begin with `do_`: they precede the
    console's own.
    """

    DEFAULT_CSS = """
    #body { height: 1fr; overflow: hidden; }
    ViewScreen LineTable { height: 1fr; min-height: 3; scrollbar-size: 1 1; }
    #body-and-detail { height: 1fr; }
    #body-and-detail #body { width: 1fr; }
    #row-detail { display: none; width: 60; height: 1fr; border-left: solid $panel; scrollbar-size: 1 1; }
    ViewScreen.-wide #row-detail { display: block; }
    .detail-below { layout: vertical; }
    ViewScreen .detail-below #row-detail { display: none; width: 1fr; border-left: none; border-top: solid $panel; }
    ViewScreen.-high .detail-below #row-detail { display: block; }
    ViewScreen #row-detail.-about-nothing { display: none; }
    ViewScreen.-high .detail-below #body { height: auto; max-height: 60%; }
    ViewScreen.-high .detail-below #body LineTable { height: auto; }
    """

    view: ClassVar[ViewName]

    detailed = False
    """Whether the detail of the row under the cursor is shown beside the tables, where there is room."""

    detail_below = False
    """Whether it is shown below the table, which is too wide for anything beside it; the table is as high as its rows then."""

    main: LineTable | None = None
    """The table of a view that has one and the same all the time."""

    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (COLUMNS_FOR_DETAIL, "-wide")]
    VERTICAL_BREAKPOINTS = [(0, "-short"), (ROWS_FOR_VIEWS, "-tall"), (ROWS_FOR_DETAIL, "-high")]

    def __init__(self, session: ConsoleSession, console: ConsoleInterface) -> None:
        super().__init__()
        self._compositor = DirtyRowsCompositor()
        self.session, self.console = session, console
        self.connections = ConnectionSummary(session.cluster)
        self.header = StatusLine(id="header", most_lines=2)
        self.tabs_line = StatusLine(id="tabs")
        self.views_line = ViewBar(BAR, self.view, id="views")
        self.title_line = StatusLine(id="title", most_lines=2)
        """For views that have a title; they yield it in `body`."""
        self.row_detail = RowDetail(id="row-detail")
        self.below = StatusLine(id="below", most_lines=2, shrinks=False)
        self.message = StatusLine(id="message", most_lines=3)
        self.hints = HintLine(id="hints")
        self.candidates = CandidateList(id="candidates")
        self.prompt = Prompt(console.complete, console.state.typed_before, id="prompt")
        self._epoch: int | None = None
        """Whose records were received; None before the first paint, which receives all there are."""
        self._painted_second = -1
        self._painted_us = -STORM_US
        self._news_waits = self._hints_wait = False
        self._message_since = 0.0
        self._styled_for = ""
        """The theme in which the styles were looked up."""
        self._moved_at = 0.0
        self.bound_actions: set[str] = set()
        """The ids of all actions that have a key here."""
        self.bound_keys: frozenset[str] = frozenset()
        """All keys that do something here, those of the widget with the focus included."""
        self._hints: tuple[tuple[str, Hint], ...] = ()
        """What may be hinted at, by the id of the action: all keys that are bound."""

    def compose(self) -> ComposeResult:
        yield self.tabs_line
        yield self.views_line
        yield self.header
        body = Vertical(*self.body(), id="body")
        if self.detailed or self.detail_below:
            around = Horizontal(body, self.row_detail, id="body-and-detail")
            yield around.set_class(self.detail_below, "detail-below")
        else:
            yield body
        yield self.below
        yield self.message
        yield self.hints
        yield Vertical(self.candidates, self.prompt, id="typing")

    # What a view says of itself

    def body(self) -> Iterable[Widget]:
        """Return the widgets between the first line and the sentence."""
        raise NotImplementedError

    def paint(self) -> None:
        """Show the session as it is now; called when there is news, and once a second for the ages."""
        raise NotImplementedError

    def receive(self, records: Sequence[Record]) -> None:
        """Receive records that have just arrived; called also while the view is hidden."""

    def restart(self, records: Sequence[Record]) -> None:
        """Receive `records` in place of all before: what is shown next does not follow on what was."""
        self.receive(records)

    @property
    def table(self) -> LineTable | None:
        """The main table, if there is one, for targets, sorting, filtering, copying and export."""
        return self.main

    @property
    def sort_filter(self) -> SortFilterModel | None:
        """The sorted and filtered model of the main table."""
        table = self.table
        return table.model if table is not None and isinstance(table.model, SortFilterModel) else None

    def targets(self) -> tuple[str, ...]:
        """Return the labels of the members that an action is for; empty where the view does not show members."""
        return self.main.chosen if self.main is not None and VIEW_OF[self.view].points_at_members else ()

    @property
    def at_rest(self) -> bool:
        """Whether the cursor has not moved for a while."""
        return monotonic() - self._moved_at >= REST_SECONDS

    @property
    def member_under_cursor(self) -> str:
        """The label of the member under the cursor, whatever is selected; empty if the row is not a member."""
        return (self.table.cursor_key or "") if self.table is not None and self.targets() else ""

    def sentence(self) -> Sequence[TableCell]:
        """Return the sentence below the body on what is under the cursor."""
        return ()

    def row_pointed(self) -> Hashable:
        """Return what the detail is about; None for nothing."""
        return self.member_under_cursor or None

    def row_facts(self) -> Sequence[Fact]:
        """Return the facts of the detail: by default, all about the member under the cursor."""
        member = self.member_under_cursor
        picture, now_us = self.session.picture, self.session.now_us()
        facts = member_detail(picture, member, now_us, recent=self.session.recent, time_of=self.session.clock.spoken)
        return (
            Fact("member", one_line(member), "strong"),
            *self.connections.facts(member),
            *(fact for fact in facts if not fact.verbatim),
        )

    def runbooks(self) -> Sequence[str]:
        """Return whose runbooks help begins with: that of the condition in the first line, unless all is well."""
        condition = self.session.health.condition
        return () if condition in ("healthy", "changing") else (condition,)

    def filter_by(self, text: str) -> None:
        """Show only what contains `text`."""
        sort_filter, table = self.sort_filter, self.table
        if sort_filter is not None and table is not None:
            sort_filter.change_settings(filter=text)
            table.show()
            self._say_below()

    @property
    def filter_text(self) -> str:
        return self.sort_filter.table_settings.filter if self.sort_filter is not None else ""

    def rows(self) -> Iterable[Mapping[str, str]]:
        """Return all rows that the filter leaves, for an export."""
        sort_filter = self.sort_filter
        return [sort_filter.row(key) for key in sort_filter.keys] if sort_filter is not None else []

    def copied_rows(self) -> Sequence[Mapping[str, str]]:
        """Return the selected rows, or the one under the cursor."""
        sort_filter, table = self.sort_filter, self.table
        if sort_filter is None or table is None:
            return []
        return [sort_filter.row(key) for key in table.chosen]

    def holds_back(self, action: Action) -> str:
        """Return why `action` is not done now, in a sentence; empty if it is."""
        return ""

    def works(self, action_id: str) -> bool:
        """Return whether an action of this view can do something now; the footer leaves out what cannot."""
        return True

    @cached_property
    def _tables(self) -> Sequence[LineTable]:
        return list(self.query(LineTable))

    @property
    def selected_rows(self) -> int:
        """How many rows are selected, in all tables of the view: actions are for them until they are used up."""
        return sum(len(table.selection) for table in self._tables)

    def use_up_selection(self) -> None:
        """Clear the selection, after an action that was for it."""
        for table in self._tables:
            table.select_none()

    @on(LineTable.TitleClicked)
    def _title_clicked(self, event: LineTable.TitleClicked) -> None:
        event.sender.focus()
        self.call_after_refresh(self._sort_by_title, event)  # when the focus has made the table the main one

    async def _sort_by_title(self, event: LineTable.TitleClicked) -> None:
        """Sort by the column, and in the opposite order if it is sorted by already."""
        if event.sender is self.table and self.sort_filter is not None:
            line = self.sort_filter.order_after_click(event.place)
            await self.run_action(f"app.act('sort', {line!r})")

    @on(LineTable.Selected)
    def _show_header(self) -> None:
        parts, more = header_parts(self.session, self.connections, self.view, self.selected_rows)
        self.header.show(*parts, more=more)

    def clear_filter(self) -> bool:
        """Remove the filter. Return whether there was one."""
        if not self.filter_text:
            return False
        self.filter_by("")
        return True

    def fit(self, size: Size) -> None:
        """Set the classes for this size beforehand: otherwise everything is styled again when the screen learns its size."""
        across = self._get_breakpoint_classes(size.width, self.HORIZONTAL_BREAKPOINTS)
        down = self._get_breakpoint_classes(size.height, self.VERTICAL_BREAKPOINTS)
        self.add_class(*across, *down, update=False)

    def words(self) -> Mapping[WordKind, Sequence[str]]:
        return {"column": self.sort_filter.titles} if self.sort_filter is not None else {}

    @property
    def focused_first(self) -> Widget | None:
        """The widget that has the focus while nothing is typed."""
        return self.table

    # What the console calls

    def point_at(self, label: str) -> None:
        """Move the cursor to a member, where members are rows."""
        if self.table is not None:
            self.table.point_at(label)

    def point_at_event(self, event: Pointed) -> None:
        """Move the cursor to an event, where events are rows, and explain it if `event` asks for that."""

    def aim(self, member: str, event: Pointed | None) -> None:
        """Move the cursor to a member and to an event, as far as they are given."""
        if member:
            self.point_at(member)
        if event is not None:
            self.point_at_event(event)

    def tick(self, *, news: bool) -> None:
        """Update the view; called at the console's clock while it is in sight."""
        if self.message.parts and monotonic() - self._message_since > MESSAGE_SECONDS:
            self.message.show()
        now_us = self.session.now_us()
        second = now_us // SECOND_US
        self._news_waits |= news or second != self._painted_second
        if self._news_waits and self.may_change(self._painted_us):
            if second != self._painted_second and self.sort_filter is not None:
                self.sort_filter.renew()
            self._news_waits, self._painted_us, self._painted_second = False, now_us, second
            self.repaint()
        else:
            self._say_detail()
        if self._hints_wait:
            self._show_hints()

    def may_change(self, painted_us: int) -> bool:
        """Return whether what was painted at `painted_us` may be painted again."""
        return not self.session.in_storm or not 0 <= self.session.now_us() - painted_us < STORM_US

    def repaint(self) -> None:
        """Show everything as it is now; what has not changed is not painted again."""
        tabs = self.console.tabs
        self.tabs_line.show(*tabs)
        show_if(self.tabs_line, bool(tabs))
        self._show_header()
        self.paint_epoch()
        self._say_below()

    def paint_epoch(self) -> None:
        """Paint the body, after a restart if the playhead has jumped."""
        if self._epoch != self.session.epoch:
            self._epoch = self.session.epoch
            self.restart(self.session.recent)
        self.paint()

    def show_message(self, text: str, *, error: bool = False) -> None:
        self._message_since = monotonic()
        parts = [TableCell("✕ error", "bad")] if error else []
        self.message.show(*parts, TableCell(one_line(text), "bad" if error else "plain"))

    def focus_body(self) -> None:
        if self.focused_first is not None:
            self.focused_first.focus()

    # Events

    def on_mount(self) -> None:
        self._styled_for = self.app.theme
        self.bindings_updated_signal.subscribe(self, lambda _: self._find_hints())
        self.below.display = False
        self._find_hints()
        self.repaint()
        if not self.prompt.sign:  # otherwise the operator types already
            self.focus_body()

    def on_screen_resume(self, event: ScreenResume) -> None:
        """Show what is new. Textual would look up all styles again; while a view was hidden, only the theme can change them."""
        event.refresh_styles, self._styled_for = self._styled_for != self.app.theme, self.app.theme
        if self.is_mounted:
            self.repaint()

    def on_line_table_moved(self, event: LineTable.Moved) -> None:
        """Say what the cursor is on. The footer follows at the next tick: a key is answered by the few rows that it changes."""
        self._moved_at = monotonic()
        self._hints_wait = True
        self._say_sentence()

    def on_prompt_changed(self, message: Prompt.Changed) -> None:
        if message.sign == "/":
            self.filter_by(message.text)
        elif message.sign == ":":
            if message.text != self.prompt.offered and any(part.tone == "bad" for part in self.message.parts):
                self.message.show()  # an error is about what was typed before
            found, effect = self.console.suggestions(message.text)
            self.candidates.show([(suggestion.shown, suggestion.meaning) for suggestion in found], effect)

    def on_prompt_dismissed(self, message: Prompt.Dismissed) -> None:
        if message.sign == "/":
            self.filter_by("")
        self.candidates.hide()
        self.focus_body()

    def on_prompt_answered(self, message: Prompt.Answered) -> None:
        self.candidates.hide()
        # At once, not `focus_body`, which waits its turn: what is asked next would lose the focus to it.
        self.set_focus(self.focused_first)
        self.console.answered(message.sign, message.text)

    def _say_below(self) -> None:
        self._show_hints()
        self._say_detail()
        self._say_sentence()

    def _say_sentence(self) -> None:
        parts = self.sentence()
        self.below.show(*parts)
        show_if(self.below, bool(parts))

    def _say_detail(self) -> None:
        if (self.detailed or self.detail_below) and self.at_rest:
            self.row_detail.show_facts(self.row_pointed(), self.row_facts, self.session.detail_beat)

    def _find_hints(self) -> None:
        found: dict[str, Hint] = {}
        self.bound_actions.clear()
        bound = self.active_bindings
        self.bound_keys = frozenset(bound)
        for _, binding, enabled, _ in bound.values():
            called = ACT.fullmatch(binding.action)
            if called:
                self.bound_actions.add(called[1])
            if binding.show and enabled and called and called[1] not in found:
                found[called[1]] = Hint(self.app.get_key_display(binding), binding.description, binding.key)
        self._hints = tuple(found.items())
        self._show_hints()

    def _show_hints(self) -> None:
        self._hints_wait = False
        if self.prompt.sign:
            self.hints.show(TYPING if self.prompt.sign == ":" else TYPING[::3])
            return
        targets = self.targets()
        kept = KEPT if self.console.has_way_back else KEPT_AT_HOME
        asides = {*KEPT, *KEPT_AT_HOME}
        self.hints.show(
            [
                hint
                for action_id, hint in self._hints
                if action_id not in asides
                and self.works(action_id)
                and works(action_called(action_id), self.session, targets)
            ],
            [hint for name in kept for action_id, hint in self._hints if action_id == name],
        )
