"""The footer: of the keys that are bound, those that do something here and now, the most useful ones first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from quarterdeck.app.actions.action import Action
from quarterdeck.app.session import ConsoleSession
from quarterdeck.backend.core.commands.catalogue import MemberCondition, commands_of_word
from quarterdeck.backend.picture.fold.belief import MemberBelief

KEPT = ("prompt", "help", "back")
"""Hints that are shown at the right end, whatever has to go for them: how to type, to be helped, and to go back."""

STOPPED = ("paused", "killed")
"""What a fault has made of a member."""

KEPT_AT_HOME = ("prompt", "help", "quit")
"""On the first view there is nothing to go back to."""


def works(action: Action, session: ConsoleSession, targets: Sequence[str]) -> bool:
    """Whether the action can do something to `session` at the moment, with the cursor or the selection on `targets`."""
    if action.needs_write and not session.live:
        return False
    if action.aims and not targets:
        return False
    if action.id == "heal":
        return bool(session.picture.links)
    if action.id == "fault-undo":
        return bool(session.picture.links) or any(one.status in STOPPED for one in session.picture.members.values())
    conditions = {one.needs for word in action.words for one in commands_of_word(word.word) if one.needs}
    beliefs = session.picture.members
    return (
        not action.aims
        or not conditions
        or any(_meets(one, beliefs, target) for one in conditions for target in targets)
    )


def _meets(condition: MemberCondition, beliefs: Mapping[str, MemberBelief], label: str) -> bool:
    """Whether a member is in the state that a command needs; one that was never heard of may be in any."""
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
