"""Views that are one sheet of facts: all about one member as it sees its cluster, and the questions of operators."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

from textual.widget import Widget

from quarterdeck.app.console_interface import ConsoleInterface
from quarterdeck.app.screen.view_screen import ViewScreen
from quarterdeck.app.session import ConsoleSession
from quarterdeck.backend.boards.member_detail import member_detail
from quarterdeck.backend.boards.operator_questions import operator_questions
from quarterdeck.backend.clusters.observed_story import OBSERVATIONS_NOTED, latest_observations, story_facts
from quarterdeck.backend.picture.text.fact import Fact, fact_rows
from quarterdeck.backend.picture.text.formatting import one_line
from quarterdeck.widgets.fact_sheet import FactSheet
from quarterdeck.widgets.line_table import TableCell


class FactsScreen(ViewScreen):
    """A title and facts, kept up to date."""

    columns: ClassVar[tuple[str, str]] = ("about", "fact")
    """The titles of headings and texts in an export."""

    def __init__(self, session: ConsoleSession, console: ConsoleInterface) -> None:
        super().__init__(session, console)
        self._facts: tuple[Fact, ...] = ()
        self.sheet = FactSheet(id="detail-sheet")

    def about(self) -> tuple[str, str]:
        """Return the subject, and what the sheet says of it."""
        raise NotImplementedError

    def facts(self) -> Iterable[Fact]:
        """Yield the facts as they are now."""
        raise NotImplementedError

    def body(self) -> Iterable[Widget]:
        return self.title_line, self.sheet

    @property
    def focused_first(self) -> Widget:
        return self.sheet

    def paint(self) -> None:
        subject, what = self.about()
        self.title_line.show(TableCell(subject, "strong"), TableCell(what, "faint"))
        self._facts = tuple(self.facts())
        self.sheet.show(self._facts)

    def rows(self) -> Iterable[Mapping[str, str]]:
        return fact_rows(self._facts, *self.columns)

    def copied_rows(self) -> Sequence[Mapping[str, str]]:
        return tuple(self.rows())


class MemberScreen(FactsScreen):
    """One member, kept up to date. Actions done here are done to that member."""

    view = "member"
    label = ""

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
        yield from member_detail(
            picture, self.label, now_us, recent=self.session.recent, time_of=self.session.clock.spoken
        )

    def do_detail(self, member: str) -> None:
        if member:
            self.console.goto("member", member=member)
        else:
            self.console.back()

    def do_next_member(self, back: str) -> None:
        """Look at the next member, or `back` at the previous one."""
        labels = list(self.session.labels)
        if labels:
            place = labels.index(self.label) + (-1 if back else 1) if self.label in labels else 0
            self.console.goto("member", member=labels[max(0, min(place, len(labels) - 1))])


class QuestionsScreen(FactsScreen):
    """The answers at the moment that is shown."""

    view = "questions"
    columns = ("question", "answer")

    def about(self) -> tuple[str, str]:
        return "questions", "what operators ask first"

    def facts(self) -> Iterable[Fact]:
        session = self.session
        now_us = session.now_us()
        yield from operator_questions(session.judge, session.recent)
        if (story := session.story) is not None:
            yield from story_facts(story, now_us)

    def runbooks(self) -> Sequence[str]:
        """Return those of what was observed, too."""
        story = self.session.story
        seen = latest_observations(story, self.session.now_us()) if story is not None else ()
        return tuple(dict.fromkeys((*super().runbooks(), *(observed.kind for observed in seen[:OBSERVATIONS_NOTED]))))
