"""The order of what the command palette finds."""

from __future__ import annotations

import pytest
from textual.fuzzy import Matcher

from quarterdeck.app.actions.registry import ACTIONS
from quarterdeck.app.commands.palette import score_of, title_of


def found(query: str) -> list[str]:
    matcher = Matcher(query)
    scores = {title_of(action): score_of(action, query, matcher.match(title_of(action))) for action in ACTIONS}
    return sorted((title for title, score in scores.items() if score > 0), key=lambda title: -scores[title])


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("kill", "kill"),
        ("cut", "cut"),
        ("demo", "demos"),
        ("help", "keys"),
        ("merge", "join lists"),
        ("AUDIT", "audit"),
    ],
)
def test_names_come_before_meanings_and_meanings_before_scattered_letters(query: str, first: str) -> None:
    assert found(query)[0] == first


def test_letters_in_order_find_a_title_and_every_action_has_one() -> None:
    assert "join lists" in found("jlst")
    assert all(title_of(action).strip() for action in ACTIONS)
