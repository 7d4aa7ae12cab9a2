"""The questions of operators on one screen: is it one cluster, why not, who was removed, what is stuck, what was observed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from quarterdeck.app.screen.facts_screen import FactsScreen
from quarterdeck.backend.clusters.observed_story import (
    OBSERVATIONS_NOTED,
    latest_observations,
    story_facts,
    story_of,
)
from quarterdeck.backend.picture.boards.operator_questions import operator_questions
from quarterdeck.backend.picture.text.fact import Fact


class QuestionsScreen(FactsScreen):
    """The answers at the moment that is shown."""

    view = "questions"
    columns = ("question", "answer")

    def about(self) -> tuple[str, str]:
        return "questions", "what operators ask first"

    def facts(self) -> Iterable[Fact]:
        session = self.session
        now_us = session.now_us()
        yield from operator_questions(session.picture, session.recent, now_us)
        if (story := story_of(session.cluster)) is not None:
            yield from story_facts(story, now_us)

    def runbooks(self) -> Sequence[str]:
        """Return those of what was observed, too."""
        story = story_of(self.session.cluster)
        seen = latest_observations(story, self.session.now_us()) if story is not None else ()
        return tuple(dict.fromkeys((*super().runbooks(), *(observed.kind for observed in seen[:OBSERVATIONS_NOTED]))))
