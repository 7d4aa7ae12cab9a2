"""One member, as it sees its cluster: everything that is known of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from textual.widget import Widget

from quarterdeck.app.console_interface import ConsoleInterface
from quarterdeck.app.screen.view_screen import ViewScreen
from quarterdeck.app.session import ConsoleSession
from quarterdeck.backend.picture.boards.member_detail import member_detail
from quarterdeck.backend.picture.text.fact import Fact, fact_rows
from quarterdeck.backend.picture.text.formatting import one_line
from quarterdeck.widgets.fact_sheet import FactSheet
from quarterdeck.widgets.line_table import TableCell


class MemberScreen(ViewScreen):
    """One member, kept up to date. Actions done here are done to that member."""

    view = "member"

    def __init__(self, session: ConsoleSession, console: ConsoleInterface) -> None:
        super().__init__(session, console)
        self._legacy = False
        self._facts: tuple[Fact, ...] = ()
        self.label = ""
        self.sheet = FactSheet(id="detail-sheet")
        self.handlers |= {
            "detail": self._look_or_leave,
            "next-member": lambda _: self._other(1),
            "previous-member": lambda _: self._other(-1),
            "list-text": lambda _: self._other_text(),
        }

    def body(self) -> Iterable[Widget]:
        return self.title_line, self.sheet

    @property
    def focused_first(self) -> Widget:
        return self.sheet

    def point_at(self, label: str) -> None:
        self.label = label
        if self.is_mounted:
            self.repaint()

    def targets(self) -> tuple[str, ...]:
        return (self.label,) if self.label else ()

    def paint(self) -> None:
        self.title_line.show([TableCell(one_line(self.label), "strong"), TableCell("as it sees its cluster", "faint")])
        picture, now_us = self.session.picture, self.session.now_us()
        facts = member_detail(picture, self.label, now_us, legacy=self._legacy, recent=self.session.recent)
        self._facts = (*self.connections.facts(self.label), *facts)
        self.sheet.show(self._facts)

    def rows(self) -> Iterable[Mapping[str, str]]:
        return fact_rows(self._facts, "about", "fact")

    def copied_rows(self) -> Sequence[Mapping[str, str]]:
        return tuple(self.rows())

    def _look_or_leave(self, member: str) -> None:
        if member:
            self.console.goto("member", member=member)
        else:
            self.console.back()

    def _other(self, members: int) -> None:
        labels = list(self.session.labels)
        if labels:
            place = labels.index(self.label) if self.label in labels else 0
            self.console.goto("member", member=labels[max(0, min(place + members, len(labels) - 1))])

    def _other_text(self) -> None:
        self._legacy = not self._legacy
        self.repaint()
