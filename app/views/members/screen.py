"""The members, one a row: who each is, what it believes and holds, and who is close to being suspected."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from textual.widget import Widget

from quarterdeck.app.console_interface import ConsoleInterface
from quarterdeck.app.session import ConsoleSession
from quarterdeck.app.views.members.model import MemberModel
from quarterdeck.app.views.sort_filter_model import SortFilterModel
from quarterdeck.app.views.view_screen import ViewScreen
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.picture.boards.member_board import board_facts, member_sentence
from quarterdeck.widgets.line_table import LineTable, TableCell
from quarterdeck.widgets.status_line import StatusLine

ROWS_FOR_DETAIL = 38
"""The table is too wide for anything beside it: from so many rows on the detail stands below."""

COUNTED_AT_ONCE = 200
"""More members are counted at most once a second: in a storm each of them may suspect half of the others."""


class MembersScreen(ViewScreen):
    """The sentence below the table spells out the member under the cursor."""

    view = "members"
    detailed = True

    def __init__(self, session: ConsoleSession, console: ConsoleInterface) -> None:
        super().__init__(session, console)
        self._model = MemberModel()
        self._counted_second = -1
        self.title_line = StatusLine(id="members-title")
        self.members = LineTable(SortFilterModel(self._model), id="members")

    def body(self) -> Iterable[Widget]:
        yield self.title_line
        yield self.members

    @property
    def table(self) -> LineTable:
        return self.members

    def targets(self) -> tuple[str, ...]:
        return self.members.selection or ((self.members.cursor_key,) if self.members.cursor_key is not None else ())

    def paint(self) -> None:
        picture, now_us = self.session.picture, self.session.now_us()
        self._model.update(picture, self.session.labels, self.connections.marks(), now_us)
        second = now_us // SECOND_US
        if len(picture.members) <= COUNTED_AT_ONCE or second != self._counted_second:
            self._counted_second = second
            self.title_line.show([TableCell(fact.text, fact.tone) for fact in board_facts(picture, now_us)])
        self.members.show()
        self.set_class(self.app.size.height >= ROWS_FOR_DETAIL, "-detailed")

    def sentence(self) -> Sequence[TableCell]:
        key = self.members.cursor_key
        row = self._model.row(key)
        if key is None or row is None:
            return ()
        heartbeat = row.member.heartbeat
        tone = heartbeat.tone if heartbeat.left_us is not None else "faint"
        return (TableCell(member_sentence(self.session.picture, key, row.member), tone),)
