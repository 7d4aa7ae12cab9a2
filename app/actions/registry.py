"""The one registry of what can be done: keys, footer, help, ``:`` prompt, completion and palette read it."""

from __future__ import annotations

from functools import cache

from quarterdeck.app.actions.action import Action, Allowed, CommandWord, ViewName
from quarterdeck.app.actions.commands import CLUSTER_ACTIONS, DATA_ACTIONS, LINK_ACTIONS, MEMBER_ACTIONS, TYPED_ACTIONS
from quarterdeck.app.actions.console import CONSOLE_ACTIONS, TIME_ACTIONS
from quarterdeck.app.actions.views import VIEW_OF, VIEWS

ACTIONS: tuple[Action, ...] = (
    *MEMBER_ACTIONS,
    *LINK_ACTIONS,
    *CLUSTER_ACTIONS,
    *DATA_ACTIONS,
    *TYPED_ACTIONS,
    *TIME_ACTIONS,
    # Those of the first view come last: its footer begins with what it shares with others.
    *(action for view in (*VIEWS[1:], VIEWS[0]) for action in view.actions),
    *(view.opening for view in VIEWS if view.opening is not None),
    *CONSOLE_ACTIONS,
)
"""In the order of help."""


@cache
def action_called(action_id: str) -> Action:
    for action in ACTIONS:
        if action.id == action_id:
            return action
    raise KeyError(action_id)


def available_actions(allowed: Allowed, view: ViewName | None = None) -> tuple[Action, ...]:
    """Return the actions that a cluster allows; with `view`, only those that this view knows."""
    return tuple(action for action in ACTIONS if allowed.has(action) and (view is None or _known_in(action, view)))


def _known_in(action: Action, view: ViewName) -> bool:
    return view in action.views if action.views else not action.aims or VIEW_OF[view].points_at_members


def command_words(allowed: Allowed) -> dict[str, tuple[Action, CommandWord]]:
    """Return the words of the prompt that a cluster allows, each with the action that it belongs to."""
    return {
        word.word: (action, word)
        for action in available_actions(allowed)
        for word in action.words
        if allowed.knows(word)
    }
