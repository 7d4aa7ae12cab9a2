"""The members, one a row: who each is, what it believes and holds, and who is close to being suspected."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from textual.widget import Widget

from quarterdeck.app.console_interface import ConsoleInterface
from quarterdeck.app.screen.columns import BoardModel, ColumnOf, known_text
from quarterdeck.app.screen.sort_filter_model import SortFilterModel
from quarterdeck.app.screen.view_screen import ViewScreen
from quarterdeck.app.session import ConsoleSession
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.picture.boards.member_board import (
    STATE_GLYPHS,
    HeartbeatObservers,
    ListOrder,
    MemberBoardEntry,
    board_facts,
    heartbeat_observers,
    member_row,
    member_sentence,
)
from quarterdeck.backend.picture.fold.belief import MemberBelief
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.text.fact import NOT_REPORTED
from quarterdeck.backend.picture.text.formatting import one_line
from quarterdeck.widgets.line_table import LineTable, TableCell

LONGEST_NAME = 22
LONGEST_STATE = max(map(len, STATE_GLYPHS)) + 2
LONGEST_ADDRESS = 48
LONGEST_ZONE = 16
SUSPECTED_SOON = "◔ silent 119 min, suspected in 119 min"


class MemberBoardRow(NamedTuple):
    """A member. `mark` says how old its news are, when it is not heard any more."""

    member: MemberBoardEntry
    belief: MemberBelief | None
    place: int
    """In the order of first appearance."""
    mark: str

    @property
    def tone(self) -> str:
        return "faint" if self.mark else self.member.tone

    @property
    def leads(self) -> bool:
        return self.belief is not None and self.belief.running and self.belief.is_master

    @property
    def state(self) -> TableCell:
        return TableCell(self.mark, "warning") if self.mark else TableCell(self.member.state, self.member.state_tone)

    @property
    def list_rank(self) -> int | None:
        return self.belief.version if self.belief is not None else None

    @property
    def table(self) -> TableCell:
        return TableCell(self.member.table_version, "warning" if self.member.table_differs else self.tone)

    @property
    def table_rank(self) -> int | None:
        table = self.belief.table if self.belief is not None else None
        return table.version if table is not None else None

    @property
    def heartbeat(self) -> TableCell:
        return TableCell(self.member.heartbeat.text, "faint" if self.mark else self.member.heartbeat.tone)

    @property
    def left_us(self) -> int | None:
        """How long until the member is suspected; None while no observer is close to that."""
        return self.member.heartbeat.left_us

    @property
    def up_rank(self) -> int | None:
        """The latest started comes first."""
        return -self.belief.started_us if self.belief is not None else None


COLUMNS: tuple[ColumnOf[MemberBoardRow], ...] = (
    ColumnOf("member", lambda row: row.member.label, rank=lambda row: row.place),
    ColumnOf("role", lambda row: row.member.role, lambda row: "strong" if row.leads else row.tone, "▲ master"),
    ColumnOf("state", lambda row: row.state.text, lambda row: row.state.tone, LONGEST_STATE),
    ColumnOf("list", lambda row: row.member.list_version, widest="v99999", rank=lambda row: row.list_rank),
    ColumnOf("table", lambda row: row.table.text, lambda row: row.table.tone, "≠ v999999", lambda row: row.table_rank),
    ColumnOf(
        "heartbeat",
        lambda row: row.heartbeat.text,
        lambda row: row.heartbeat.tone,
        SUSPECTED_SOON,
        lambda row: row.left_us,
    ),
    ColumnOf("owned", lambda row: known_text(row.member.owned, zero="")),
    ColumnOf("backups", lambda row: known_text(row.member.backups, zero="")),
    ColumnOf("up", lambda row: row.member.age, "faint", "119 min", lambda row: row.up_rank),
    ColumnOf("order", lambda row: str(row.member.order or "")),
    ColumnOf("kind", lambda row: row.member.kind),
    ColumnOf("zone", lambda row: row.member.zone),
    ColumnOf("address", lambda row: row.member.address, "faint", "127.0.0.1:5701"),
    ColumnOf("uuid", lambda row: row.member.uuid, "faint", "12345678", lambda row: row.member.uuid or None),
)


class MemberModel(BoardModel[MemberBoardRow]):
    """Rows are members in the order of the given labels. While no member is late or suspected, rows are kept over an update."""

    def __init__(self) -> None:
        super().__init__(COLUMNS, fixed=1, tone=lambda row: row.tone, outlier=lambda row: row.left_us is not None)
        self._picture = Picture()
        self._now_us = 0
        self._observers = HeartbeatObservers((), ())
        self._order = ListOrder()
        self._places: dict[str, int] = {}
        self._made: dict[str, tuple[object, MemberBoardEntry]] = {}
        """Rows as they were made last, each with all that it was made of."""

    def update(self, picture: Picture, labels: Sequence[str], marks: Mapping[str, str], now_us: int) -> None:
        """Show these members. `marks` has the age of each outdated report, by label."""
        self._picture, self._now_us = picture, now_us
        self._observers = heartbeat_observers(picture)
        keys = self.keys if tuple(labels) == self.keys else tuple(labels)
        if keys is not self.keys:
            self._places = {label: place for place, label in enumerate(keys)}
            self.widen("member", map(one_line, keys), LONGEST_NAME)
        self.show_rows(
            keys,
            lambda key: MemberBoardRow(
                self._member(key), picture.members.get(key), self._places[key], marks.get(key, "")
            ),
        )
        self.widen("state", marks.values())
        if picture.without("backups") is not None:
            for title in ("owned", "backups"):
                self.widen(title, [NOT_REPORTED])
        self.widen("address", (belief.address for belief in picture.members.values()), LONGEST_ADDRESS)
        masters = (belief for belief in picture.members.values() if belief.is_master)
        self.widen("zone", {member.zone for belief in masters for member in belief.members}, LONGEST_ZONE)

    def _member(self, key: str) -> MemberBoardEntry:
        made_of, known = self._made_of(key), self._made.get(key)
        if known is not None and known[0] == made_of and not any(self._observers):
            return known[1]
        row = member_row(self._picture, key, self._observers, self._order, self._now_us)
        self._made[key] = (made_of, row)
        return row

    def _made_of(self, key: str) -> object:
        belief, master = self._picture.members.get(key), self._picture.master_of(key)
        if belief is None:
            return None
        table = master.table if master is not None else None
        held = (table.version, table.digest) if table is not None else None
        listed = master is not None and belief.address in master.listed
        return self._now_us // SECOND_US, belief.uuid, belief.at, belief.status, held, listed, any(self._observers)


COUNTED_AT_ONCE = 200
"""More members are counted at most once a second: in a storm each of them may suspect half of the others."""


class MembersScreen(ViewScreen):
    """The members. The sentence below the table describes the one under the cursor."""

    view = "members"
    detail_below = True

    def __init__(self, session: ConsoleSession, console: ConsoleInterface) -> None:
        super().__init__(session, console)
        self._model = MemberModel()
        self._counted_second = -1
        self.main = self.members = LineTable(SortFilterModel(self._model), id="members")

    def body(self) -> Iterable[Widget]:
        return self.title_line, self.members

    def paint(self) -> None:
        picture, now_us = self.session.picture, self.session.now_us()
        self._model.update(picture, self.session.labels, self.connections.marks(), now_us)
        second = now_us // SECOND_US
        if len(picture.members) <= COUNTED_AT_ONCE or second != self._counted_second:
            self._counted_second = second
            self.title_line.show([TableCell(fact.text, fact.tone) for fact in board_facts(picture, now_us)])
        self.members.show()

    def sentence(self) -> Sequence[TableCell]:
        key = self.members.cursor_key
        row = self._model.row(key)
        if key is None or row is None:
            return ()
        heartbeat = row.member.heartbeat
        tone = heartbeat.tone if heartbeat.left_us is not None else "faint"
        return (TableCell(member_sentence(self.session.picture, key, row.member), tone),)
