"""Where members look for others, and why clusters stay apart: what is in the way of each pair now, and what helps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import ClassVar, NamedTuple

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Button, Static, TextArea

from quarterdeck.app.commands.command_text import connect_options, lines_of
from quarterdeck.app.console_interface import ConsoleInterface
from quarterdeck.app.screen.columns import BoardModel, ColumnOf, SortFilterModel
from quarterdeck.app.screen.view_screen import ViewScreen, show_if
from quarterdeck.app.session import ConsoleSession
from quarterdeck.backend.boards.join_list_board import TONES, JoinListBoard, ListRow, clusters_text
from quarterdeck.backend.clusters.cluster import ReachedByOptions
from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.membership.events import JoinListChanged
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.judgement.merging.join_list_edit import (
    SIGN_TONES,
    Draft,
    EditPlan,
    draft_lines,
    plan_edit,
    read_draft,
    spread_of,
    sub_cluster,
)
from quarterdeck.backend.judgement.merging.why_not_merging import GLYPHS, Pair, pairs_left_out
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.text.fact import Fact
from quarterdeck.backend.picture.text.formatting import Refusal, counted, one_line
from quarterdeck.widgets.dialog import Dialog
from quarterdeck.widgets.fact_sheet import FactSheet
from quarterdeck.widgets.line_table import LineTable, TableCell
from quarterdeck.widgets.status_line import StatusLine

LONGEST_NAME = 22
SOURCE_WIDTH = 33
NAMES_WIDTH = 31
LIST_WIDTH = 50
ROWS_MEASURED = 20
"""Rows that columns are fitted to."""
SENTENCE_WIDTH = 149
STATE_WIDTH = max(len(f"{glyph} {state}") for state, glyph in GLYPHS.items())


def tone_of(row: ListRow) -> str:
    """Return the tone of facts about a member that are no warnings."""
    return "faint" if row.greyed else "plain"


LIST_COLUMNS: tuple[ColumnOf[ListRow], ...] = (
    ColumnOf("member", lambda row: row.label),
    ColumnOf("master", lambda row: row.cluster),
    ColumnOf("list", lambda row: row.entries, longest=LIST_WIDTH),
    ColumnOf(
        "no answer at",
        lambda row: row.silent,
        lambda row: "faint" if row.greyed else "warning",
        longest=NAMES_WIDTH,
    ),
    ColumnOf("remembers", lambda row: row.remembered, longest=NAMES_WIDTH),
    ColumnOf(
        "from",
        lambda row: row.source,
        lambda row: "warning" if row.differs else tone_of(row),
        "as configured",
        longest=SOURCE_WIDTH,
    ),
    ColumnOf("does not list", lambda row: row.missing, longest=NAMES_WIDTH),
)

PAIR_COLUMNS: tuple[ColumnOf[Pair], ...] = (
    ColumnOf("state", lambda pair: pair.state_text, lambda pair: TONES[pair.state], STATE_WIDTH),
    ColumnOf("cluster of", lambda pair: one_line(pair.smaller), longest=LONGEST_NAME),
    ColumnOf("into that of", lambda pair: one_line(pair.greater), longest=LONGEST_NAME),
    ColumnOf("rule", lambda pair: pair.rule, widest="remote-is-my-member"),
    ColumnOf("why", lambda pair: pair.sentence, widest=SENTENCE_WIDTH),
)


SPREAD_SHOWN_US = 30 * SECOND_US
"""How long the progress of an edit is shown."""


class Edited(NamedTuple):
    """An edit of a join list: the member that received it, the new list, and when that was."""

    label: str
    addresses: tuple[Address, ...]
    at_us: int


class JoinListsScreen(ViewScreen):
    """Pairs of clusters above, what helps the one under the cursor, and the lists of all members."""

    view = "join-lists"
    detailed = True
    DEFAULT_CSS = """
    JoinListsScreen #spread { height: 1; }
    JoinListsScreen #pairs { height: auto; max-height: 30%; min-height: 2; scrollbar-size: 0 1; }
    JoinListsScreen #why { height: 7; scrollbar-size: 1 1; border-bottom: solid $panel; }
    """

    def __init__(self, session: ConsoleSession, console: ConsoleInterface) -> None:
        super().__init__(session, console)
        self._pairs = BoardModel(PAIR_COLUMNS, fixed=1)
        self._lists = BoardModel(LIST_COLUMNS, fixed=2, tone=tone_of)
        self._board = JoinListBoard(Picture())
        self._listed: tuple[Picture, int, tuple[str, ...]] | None = None
        self._judged: object = None
        self._edits: dict[str, Edited] = {}
        """The latest edit by the uuid of the member that it was handed to; a merge ends the cluster that it was meant for."""
        self.pairs = LineTable(SortFilterModel(self._pairs), id="pairs")
        self.why = FactSheet(id="why")
        self.why.can_focus = False
        self.spread = StatusLine(id="spread")
        self.main = self.lists = LineTable(SortFilterModel(self._lists), id="lists")

    def body(self) -> Iterable[Widget]:
        return self.title_line, self.pairs, self.why, self.spread, self.lists

    def targets(self) -> tuple[str, ...]:
        """Return the selected members; while the pairs have the focus, the master that would merge into the other cluster."""
        if self.pairs.has_focus:
            pair = self._pairs.row(self.pairs.cursor_key)
            return (pair.smaller,) if pair is not None else ()
        return super().targets()

    def receive(self, records: Sequence[Record]) -> None:
        for record in records:
            event = record.event
            if (
                isinstance(event, JoinListChanged)
                and event.edition
                and self.session.picture.label_of(event.author) == record.member
            ):
                self._edits[record.uuid] = Edited(record.member, event.addresses, record.at)

    def restart(self, records: Sequence[Record]) -> None:
        self._edits.clear()
        self.receive(records)

    def paint(self) -> None:
        picture = self.session.picture
        self._judge()
        left_out = pairs_left_out(picture)
        more = f"{left_out} more pairs are not judged" if left_out else ""
        self.title_line.show(
            TableCell("join lists", "strong"),
            TableCell(clusters_text(self.session.judge.agreement)),
            TableCell(more, "faint"),
        )
        self.pairs.show()
        self._explain()
        self._show_spread()
        self._show_lists(picture)
        self.lists.show()

    def _show_lists(self, picture: Picture) -> None:
        """Show where each member looks for others. Rows are computed again only after an event."""
        keys = self.session.labels
        if self._listed is not None and self._listed[0] is picture and self._listed[1:] == (picture.at, keys):
            return
        self._listed = picture, picture.at, keys
        self._board = JoinListBoard(picture)
        self._lists.show_rows(keys, self._board.row, measured=ROWS_MEASURED)
        for title in ("member", "master"):
            self._lists.widen(title, map(one_line, keys), LONGEST_NAME)

    def sentence(self) -> Sequence[TableCell]:
        key = self.lists.cursor_key
        return [TableCell(self._board.sentence(key), "faint")] if key is not None else ()

    def on_line_table_moved(self, event: LineTable.Moved) -> None:
        self._explain()

    # Why not merging

    def _judge(self) -> None:
        judge = self.session.judge
        at = judge.now_us // SECOND_US if self.session.live else judge.picture.at
        if (moment := (at, judge.agreement.leading, self.session.epoch)) == self._judged:
            return
        self._judged = moment
        by_key = {pair.key: pair for pair in judge.pairs}
        self._pairs.show_rows(tuple(by_key), by_key.__getitem__, measured=None)
        there = bool(self._pairs.keys)
        for widget in (self.pairs, self.why):
            show_if(widget, there)

    def _explain(self) -> None:
        pair = self._pairs.row(self.pairs.cursor_key)
        if pair is not None:
            self.why.show((*pair_facts(pair), *self._lines(pair)))

    def _lines(self, pair: Pair) -> Iterator[Fact]:
        """Yield the command lines that help real members, for an operator who may not write from here."""
        cluster = self.session.cluster
        if pair.unblock is not None and isinstance(cluster, ReachedByOptions):
            for line in lines_of(pair.unblock.commands, connect_options(cluster)):
                yield Fact("", f"$ {one_line(line)}", "faint")

    def do_unblock(self, _: str) -> None:
        pair = self._pairs.row(self.pairs.cursor_key)
        if pair is None:
            raise Refusal("there is only one cluster, so nothing is blocked")
        if pair.unblock is None or not pair.unblock.commands:
            raise Refusal(f"nothing can be done here: {pair.sentence}")
        self.console.request("unblock", pair.unblock.commands)

    # Editing

    def do_edit_list(self, member: str) -> None:
        label = member or next(iter(self.targets()), "")
        master = sub_cluster(self.session.picture, label)
        if master is None:
            raise Refusal(f"{label or 'the member'} does not run, so it cannot be asked")
        self._open_editor((master.label,))

    def do_edit_all_lists(self, _: str) -> None:
        masters = self.session.judge.agreement.leading
        if not masters:
            raise Refusal("there is no running master to send a list to")
        self._open_editor(masters)

    def _open_editor(self, masters: tuple[str, ...]) -> None:
        picture = self.session.picture
        known = dict.fromkeys(address for label in masters for address in picture.members[label].join_list)
        text = "\n".join(draft_lines(picture, tuple(known)))
        all_masters = self.session.judge.agreement.leading or masters
        self.app.push_screen(JoinListEditor(lambda: self.session.picture, masters, all_masters, text), self._edited)

    def _edited(self, plans: tuple[EditPlan, ...] | None) -> None:
        if plans is None:
            self.console.show_message("cancelled")
        else:
            self.console.request("edit-list", [plan.command for plan in plans])

    def _show_spread(self) -> None:
        picture, now_us = self.session.picture, self.session.now_us()
        parts: dict[str, TableCell] = {}
        for uuid, (label, addresses, at_us) in self._edits.items():
            belief = picture.members.get(label)
            if belief is None or belief.uuid != uuid or not 0 <= now_us - at_us <= SPREAD_SHOWN_US:
                continue
            master = picture.master_of(label)
            spread = spread_of(picture, master.label if master is not None else label, addresses)
            if spread is not None:
                parts[spread.master] = TableCell(spread.text, "good" if spread.has == spread.members else "plain")
        self.spread.show(*([TableCell("edited", "strong"), *parts.values()] if parts else []))
        show_if(self.spread, bool(parts))


def pair_facts(pair: Pair) -> Iterator[Fact]:
    """Yield why a pair does not merge, and what helps."""
    heading = {"merging": "merging", "due": "will merge"}.get(pair.state, "apart")
    yield Fact(heading, f"{one_line(pair.smaller)} → {one_line(pair.greater)}  {pair.sentence}", TONES[pair.state])
    if pair.unblock is None:
        unaided = "not known" if pair.rule == "not-told" else "only time"
        yield Fact("helps", "nothing that can be done here" if pair.state == "blocked" else unaided, "faint")
        return
    yield Fact("helps (u)" if pair.unblock.commands else "helps", pair.unblock.text, "strong")
    for edit in pair.unblock.edits:
        yield Fact("", edit.diff())


JUDGE_SECONDS = 0.05
"""How long typing has to rest before the list is checked: with a thousand entries that takes a while."""

UNCHANGED_SHOWN = 40
"""If more entries than this stay, they are only counted."""


class JoinListEditor(Dialog[tuple[EditPlan, ...] | None]):
    """A dialog that returns the changes to apply, or None. It does not change the cluster itself."""

    DEFAULT_CSS = """
    JoinListEditor { align: center middle; }
    #list-box { width: 130; max-width: 96%; height: 85%; border: thick $warning; background: $surface; padding: 0 1; }
    #list-question { height: 1; text-style: bold; }
    #list-sides { height: 1fr; }
    #list-text { width: 2fr; height: 1fr; border: none; padding: 0; }
    #list-changes { width: 3fr; height: 1fr; scrollbar-size: 1 1; margin: 0 0 0 1; }
    #list-buttons { height: 1; }
    #list-buttons Button { margin: 0 2 0 0; }
    #list-keys { width: 1fr; height: 1; color: $text-muted; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss", "cancel", key_display="esc"),
        Binding("ctrl+s", "apply", "apply", key_display="^s", priority=True),
        Binding("ctrl+t", "others", "one or all", key_display="^t", priority=True),
    ]

    def __init__(
        self, picture: Callable[[], Picture], masters: Sequence[str], all_masters: Sequence[str], text: str
    ) -> None:
        """Edit `text`. `masters` are those of the clusters to edit, `all_masters` are the masters of all clusters."""
        super().__init__()
        self._picture, self._masters, self._all_masters = picture, tuple(masters), tuple(all_masters)
        self._draft = Draft((), ())
        self._plans: tuple[EditPlan, ...] = ()
        self._timer: Timer | None = None
        self.question = Static("", id="list-question", markup=False)
        self.area = TextArea(text, id="list-text", soft_wrap=False, tab_behavior="focus", show_line_numbers=True)
        self.changes = FactSheet(id="list-changes")
        self.apply_button = Button("Apply", id="apply", variant="warning", compact=True)

    def compose(self) -> ComposeResult:
        with Vertical(id="list-box"):
            yield self.question
            with Horizontal(id="list-sides"):
                yield self.area
                yield self.changes
            with Horizontal(id="list-buttons"):
                yield Button("Cancel", id="cancel", compact=True)
                yield self.apply_button
                yield Static("esc cancel  ^s apply  ^t this cluster or all  tab buttons", id="list-keys", markup=False)

    def on_mount(self) -> None:
        self.area.focus()
        self.judge()

    def on_text_area_changed(self) -> None:
        if self._timer is not None:
            self._timer.stop()
        self._timer = self.set_timer(JUDGE_SECONDS, self.judge)

    def action_others(self) -> None:
        """Edit all clusters instead of one; or one, the first, instead of all."""
        others = self._all_masters if len(self._masters) < len(self._all_masters) else self._masters[:1]
        if others:
            self._masters = others
            self.judge()

    @on(Button.Pressed, "#cancel")
    def cancel(self) -> None:
        self.dismiss(None)  # on this dialog, whatever is on the screen by then

    @on(Button.Pressed, "#apply")
    def action_apply(self) -> None:
        self.judge()
        plans = tuple(plan for plan in self._plans if not plan.nothing_new)
        if self._draft.problem is None and plans:
            self.dismiss(plans)

    def judge(self) -> None:
        """Read the text and show what it would change."""
        picture = self._picture()
        self._draft = read_draft(self.area.text.split("\n"), picture)
        leading = [picture.members[label] for label in self._masters if label in picture.members]
        self._plans = tuple(plan_edit(picture, master, self._draft.addresses) for master in leading)
        self.question.update(self._asked())
        self.changes.show(tuple(self._facts()))
        able = self._draft.problem is None and any(not plan.nothing_new for plan in self._plans)
        self.apply_button.disabled = not able

    def _asked(self) -> str:
        names = ", ".join(f"{one_line(label)}'s" for label in self._masters[:4])
        more = f" and {len(self._masters) - 4} more" if len(self._masters) > 4 else ""
        what = "cluster" if len(self._masters) == 1 else "clusters"
        return f"Join list of {names}{more} {what}: {counted(len(self._draft.addresses), 'address', 'addresses')}"

    def _facts(self) -> Iterator[Fact]:
        for remark in self._draft.remarks:
            mark = "✕ " if remark.tone == "bad" else "! "
            yield Fact(f"line {remark.line}", f"{mark}{remark.text}", remark.tone)
        shown: list[tuple[object, ...]] = []
        for plan in self._plans:
            yield Fact("cluster", plan.counts(), "strong")
            signs = tuple((change.sign, change.address) for change in plan.changes)
            if signs in shown:
                yield Fact("", "the same changes", "faint")
                continue
            shown.append(signs)
            kept = sum(change.sign == "=" for change in plan.changes)
            for change in plan.changes:
                if change.sign != "=" or kept <= UNCHANGED_SHOWN:
                    yield Fact("", change.text, SIGN_TONES[change.sign])
            if kept > UNCHANGED_SHOWN:
                yield Fact("", f"= {kept} stay", "faint")
