"""The footer: of the keys that are bound, those that can do something now, the most useful first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from quarterdeck.app.actions.action import Action
from quarterdeck.app.session import ConsoleSession
from quarterdeck.backend.core.commands.catalogue import MemberCondition, commands_of_word
from quarterdeck.backend.picture.fold.belief import MemberBelief

KEPT = ("prompt", "help", "back")
"""Hints that are always shown at the right end: how to type, to get help, and to go back."""

STOPPED = ("paused", "killed")
"""The states into which a fault may put a member."""

KEPT_AT_HOME = ("prompt", "help", "quit")
"""The same on the first view, where there is nothing to go back to."""


def works(action: Action, session: ConsoleSession, targets: Sequence[str]) -> bool:
    """Return whether the action can do something to `session` now, with the cursor or the selection on `targets`."""
    if action.needs_write and not session.live:
        return False
    if action.aims and not targets:
        return False
    if action.id == "heal":
        return bool(session.picture.links)
    if action.id == "fault-undo":
        return bool(session.picture.links) or any(
            condition.status in STOPPED for condition in session.picture.members.values()
        )
    conditions = {
        condition.needs for word in action.words for condition in commands_of_word(word.word) if condition.needs
    }
    beliefs = session.picture.members
    return (
        not action.aims
        or not conditions
        or any(_meets(condition, beliefs, target) for condition in conditions for target in targets)
    )


def _meets(condition: MemberCondition, beliefs: Mapping[str, MemberBelief], label: str) -> bool:
    """Return whether a member is in the state that a command needs. One without news may be in any."""
    belief = beliefs.get(label)
    if belief is None or not condition:
        return True
    paused = belief.status == "paused"
    match condition:
        case "down":
            return not belief.running
        case "up":
            return belief.running
        case "paused":
            return paused
        case "master":
            return belief.running and belief.is_master
        case "not paused":
            return belief.running and not paused
