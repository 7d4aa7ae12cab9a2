"""The questions of operators on one screen: is it one cluster, why not, who was removed, what is stuck, what was observed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from textual.widget import Widget

from quarterdeck.app.console_interface import ConsoleInterface
from quarterdeck.app.screen.view_screen import ViewScreen
from quarterdeck.app.session import ConsoleSession
from quarterdeck.backend.clusters.observed_story import (
    OBSERVATIONS_NOTED,
    latest_observations,
    story_facts,
    story_of,
)
from quarterdeck.backend.picture.boards.operator_questions import operator_questions
from quarterdeck.backend.picture.text.fact import Fact, fact_rows
from quarterdeck.widgets.fact_sheet import FactSheet
from quarterdeck.widgets.line_table import TableCell


class QuestionsScreen(ViewScreen):
    """The answers at the moment that is shown."""

    view = "questions"

    def __init__(self, session: ConsoleSession, console: ConsoleInterface) -> None:
        super().__init__(session, console)
        self._facts: tuple[Fact, ...] = ()
        self.sheet = FactSheet(id="detail-sheet")

    def body(self) -> Iterable[Widget]:
        return self.title_line, self.sheet

    @property
    def focused_first(self) -> Widget:
        return self.sheet

    def paint(self) -> None:
        self.title_line.show([TableCell("questions", "strong"), TableCell("what operators ask first", "faint")])
        session = self.session
        now_us = session.now_us()
        story = story_of(session.cluster)
        self._facts = (
            *operator_questions(session.picture, session.recent, now_us),
            *(story_facts(story, now_us) if story is not None else ()),
        )
        self.sheet.show(self._facts)

    def runbooks(self) -> Sequence[str]:
        """Return those of what was observed, too."""
        story = story_of(self.session.cluster)
        seen = latest_observations(story, self.session.now_us()) if story is not None else ()
        return tuple(dict.fromkeys((*super().runbooks(), *(observed.kind for observed in seen[:OBSERVATIONS_NOTED]))))

    def rows(self) -> Iterable[Mapping[str, str]]:
        return fact_rows(self._facts, "question", "answer")

    def copied_rows(self) -> Sequence[Mapping[str, str]]:
        return tuple(self.rows())
