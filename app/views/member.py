"""One member, as it sees its cluster: everything that is known of it."""

from __future__ import annotations

from collections.abc import Iterable

from quarterdeck.app.screen.facts_screen import FactsScreen
from quarterdeck.backend.picture.boards.member_detail import member_detail
from quarterdeck.backend.picture.text.fact import Fact
from quarterdeck.backend.picture.text.formatting import one_line


class MemberScreen(FactsScreen):
    """One member, kept up to date. Actions done here are done to that member."""

    view = "member"
    label = ""
    _legacy = False
    """Whether its list is shown as older versions wrote it."""

    def point_at(self, label: str) -> None:
        self.label = label
        if self.is_mounted:
            self.repaint()

    def targets(self) -> tuple[str, ...]:
        return (self.label,) if self.label else ()

    def about(self) -> tuple[str, str]:
        return one_line(self.label), "as it sees its cluster"

    def facts(self) -> Iterable[Fact]:
        picture, now_us = self.session.picture, self.session.now_us()
        yield from self.connections.facts(self.label)
        yield from member_detail(picture, self.label, now_us, legacy=self._legacy, recent=self.session.recent)

    def do_detail(self, member: str) -> None:
        if member:
            self.console.goto("member", member=member)
        else:
            self.console.back()

    def do_next_member(self, _: str) -> None:
        self._other(1)

    def do_previous_member(self, _: str) -> None:
        self._other(-1)

    def _other(self, members: int) -> None:
        labels = list(self.session.labels)
        if labels:
            place = labels.index(self.label) if self.label in labels else 0
            self.console.goto("member", member=labels[max(0, min(place + members, len(labels) - 1))])

    def do_list_text(self, _: str) -> None:
        self._legacy = not self._legacy
        self.repaint()
