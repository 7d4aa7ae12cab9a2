"""The members, one a row: who each is, what it believes and holds, and who is close to being suspected."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from textual.widget import Widget

from quarterdeck.app.console_interface import ConsoleInterface
from quarterdeck.app.screen.columns import BoardModel, ColumnOf, SortFilterModel, known_text
from quarterdeck.app.screen.view_screen import ViewScreen
from quarterdeck.app.session import ConsoleSession
from quarterdeck.backend.boards.member_board import (
    ROLES,
    STATE_SIGNS,
    HeartbeatObservers,
    ListOrder,
    MemberBoardEntry,
    board_facts,
    heartbeat_observers,
    member_row,
    member_sentence,
)
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.text.fact import NOT_REPORTED
from quarterdeck.backend.picture.text.formatting import one_line
from quarterdeck.widgets.line_table import LineTable, TableCell

LONGEST_NAME = 22
LONGEST_STATE = max(map(len, STATE_SIGNS)) + 2
LONGEST_ADDRESS = 48
LONGEST_ZONE = 16
SUSPECTED_SOON = "◔ silent 119 min, suspected in 119 min"


COLUMNS: tuple[ColumnOf[MemberBoardEntry], ...] = (
    ColumnOf("member", lambda row: row.label),
    ColumnOf(
        "role",
        lambda row: row.role,
        lambda row: "strong" if row.role == ROLES["master"] and row.tone == "plain" else row.tone,
        "▲ master",
    ),
    ColumnOf("state", lambda row: row.state, lambda row: row.state_tone, LONGEST_STATE),
    ColumnOf("list", lambda row: row.list_version, widest="v99999"),
    ColumnOf(
        "table", lambda row: row.table_version, lambda row: "warning" if row.table_differs else row.tone, "≠ v999999"
    ),
    ColumnOf(
        "heartbeat",
        lambda row: row.heartbeat.text,
        lambda row: row.heartbeat.tone,
        SUSPECTED_SOON,
        lambda row: row.heartbeat.left_us,
    ),
    ColumnOf("owned", lambda row: known_text(row.owned, zero="")),
    ColumnOf("backups", lambda row: known_text(row.backups, zero="")),
    # The latest started comes first.
    ColumnOf("up", lambda row: row.age, "faint", "119 min", lambda row: row.started_us and -row.started_us),
    ColumnOf("order", lambda row: str(row.order or "")),
    ColumnOf("kind", lambda row: row.kind),
    ColumnOf("zone", lambda row: row.zone),
    ColumnOf("address", lambda row: row.address, "faint", "127.0.0.1:5701"),
    ColumnOf("uuid", lambda row: row.uuid, "faint", "12345678", lambda row: row.uuid or None),
)


class MemberModel(BoardModel[MemberBoardEntry]):
    """Rows are members in the order of the given labels. While no member is late or suspected, rows are kept over an update."""

    def __init__(self) -> None:
        super().__init__(
            COLUMNS, fixed=1, tone=lambda row: row.tone, outlier=lambda row: row.heartbeat.left_us is not None
        )
        self._picture = Picture()
        self._now_us = 0
        self._observers = HeartbeatObservers((), ())
        self._order = ListOrder()
        self._marks: Mapping[str, str] = {}
        self._made: dict[str, tuple[object, MemberBoardEntry]] = {}

    def update(self, picture: Picture, labels: Sequence[str], marks: Mapping[str, str], now_us: int) -> None:
        """Show these members. `marks` has the age of each outdated report, by label."""
        self._picture, self._marks, self._now_us = picture, marks, now_us
        self._observers = heartbeat_observers(picture)
        keys = self.keys if tuple(labels) == self.keys else tuple(labels)
        if keys is not self.keys:
            self.widen("member", map(one_line, keys), LONGEST_NAME)
        self.show_rows(keys, self._member)
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
        row = member_row(self._picture, key, self._observers, self._order, self._now_us, self._marks.get(key, ""))
        self._made[key] = (made_of, row)
        return row

    def _made_of(self, key: str) -> object:
        belief, master, mark = self._picture.members.get(key), self._picture.master_of(key), self._marks.get(key)
        if belief is None:
            return mark
        table = master.table if master is not None else None
        held = (table.version, table.digest) if table is not None else None
        listed = master is not None and belief.address in master.listed
        known = belief.uuid, belief.at, belief.status
        return self._now_us // SECOND_US, known, held, listed, mark, any(self._observers)


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
            self.title_line.show(*(TableCell(fact.text, fact.tone) for fact in board_facts(picture, now_us)))
        self.members.show()

    def sentence(self) -> Sequence[TableCell]:
        key = self.members.cursor_key
        row = self._model.row(key)
        if key is None or row is None:
            return ()
        tone = row.heartbeat.tone if row.heartbeat.left_us is not None else "faint"
        return (TableCell(member_sentence(self.session.picture, key, row), tone),)
