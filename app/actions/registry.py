"""The one registry of what can be done: keys, footer, help, ``:`` prompt, completion and palette read it."""

from __future__ import annotations

from functools import cache

from quarterdeck.app.actions import (
    commands,
    console,
    demos,
    events,
    single_views,
    time,
    views,
)
from quarterdeck.app.actions.action import MEMBER_VIEWS, Action, CommandWord, ViewName
from quarterdeck.app.actions.allowed import Allowed

ACTIONS: tuple[Action, ...] = (
    *commands.MEMBER_ACTIONS,
    *commands.LINK_ACTIONS,
    *single_views.SUSPICION_ACTIONS,
    *single_views.FAULT_ACTIONS,
    *commands.CLUSTER_ACTIONS,
    *commands.DATA_ACTIONS,
    *single_views.JOIN_LIST_ACTIONS,
    *single_views.PARTITION_ACTIONS,
    *time.ACTIONS,
    *events.ACTIONS,
    *single_views.AUDIT_ACTIONS,
    *demos.ACTIONS,
    *views.ACTIONS,
    *single_views.QUESTION_ACTIONS,
    *console.ACTIONS,
)
"""In the order of help."""


@cache
def action_called(action_id: str) -> Action:
    """The action of this id. Raises KeyError."""
    for action in ACTIONS:
        if action.id == action_id:
            return action
    raise KeyError(action_id)


def available_actions(allowed: Allowed, view: ViewName | None = None) -> tuple[Action, ...]:
    """The actions that there are on a cluster; with `view`, only those that it knows."""
    return tuple(action for action in ACTIONS if allowed.has(action) and (view is None or _known_in(action, view)))


def _known_in(action: Action, view: ViewName) -> bool:
    return view in action.views if action.views else not action.aims or view in MEMBER_VIEWS


def command_words(allowed: Allowed) -> dict[str, tuple[Action, CommandWord]]:
    """The words of the prompt that there are on a cluster, with the action that each belongs to."""
    return {
        one.word: (action, one) for action in available_actions(allowed) for one in action.words if allowed.knows(one)
    }
