"""Which key does what in which view, the registry's keys and the operator's own, checked for clashes; and the footer's hints."""

from __future__ import annotations

import difflib
import re
import string
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from textual.binding import Binding
from textual.keys import KEY_NAME_REPLACEMENTS, KEY_TO_UNICODE_NAME, format_key

from quarterdeck.app.actions.action import Action, Allowed, ViewName
from quarterdeck.app.actions.registry import ACTIONS, action_called, available_actions
from quarterdeck.app.actions.views import VIEW_NAMES, VIEWS
from quarterdeck.app.session import ConsoleSession
from quarterdeck.backend.commands.catalogue import MemberCondition, commands_of_word
from quarterdeck.backend.picture.fold.belief import MemberBelief
from quarterdeck.widgets.hint_line import BarView, Hint

ConfiguredKeys = Mapping[str, str]
"""By the id of the action: its keys as Textual names them, separated by commas; empty for none."""

USEFUL = ("detail", "cut", "heal", "kill", "stop", "start", "pause", "fault-undo", "filter", "demos")
"""What most operators want in most views, by id; in the footer it follows what the view itself can do."""

FOOTER_LAST = ("Data", "Cluster")
"""Groups whose hints come last: a narrow terminal shows only the beginning of the footer."""

TAKEN_ELSEWHERE = {
    **dict.fromkeys(("up", "down", "left", "right", "home", "end", "pageup", "pagedown"), "moves the cursor"),
    **dict.fromkeys(("j", "k", "g", "G"), "moves the cursor"),
    "space": "selects the row under the cursor",
    "tab": "moves to the next part of the screen",
    "shift+tab": "moves to the part of the screen before",
    "ctrl+p": "opens the palette",
    "ctrl+q": "leaves the console",
    "ctrl+c": "copies what the mouse has selected",
}
"""Keys that a widget handles before any action, or that the console has to keep."""

SENT_AS = {
    "ctrl+i": "tab",
    "ctrl+m": "enter",
    "ctrl+j": "enter",
    "ctrl+h": "backspace",
    "ctrl+left_square_bracket": "escape",
}
"""Keys that terminals send as another one."""

MODIFIERS = ("ctrl", "alt", "shift", "super")

NAMED_KEYS = frozenset(
    ("up", "down", "left", "right", "home", "end", "pageup", "pagedown", "insert", "delete", "backspace", "enter", "tab",
     "escape", "space", *(f"f{number}" for number in range(1, 25)))
)  # fmt: skip


class BadKeys(ValueError):
    """Keys that cannot be used. `action` is the id of the action that they were configured for; the message has a hint."""

    def __init__(self, action: str, problem: str) -> None:
        super().__init__(problem)
        self.action = action


FIXED_KEYS = (
    ("j k ↑ ↓", "move the cursor, or scroll the events"),
    ("g G", "first and last row; oldest event, newest event and follow"),
    ("← →", "scroll sideways; in time move the playhead, while looking at a member go to another one"),
    ("space", "select the row under the cursor, or take it out of the selection"),
    ("tab", "go to the next part of the screen; at the prompt, complete the word"),
    ("^p", "palette"),
    ("^q", "leave the console"),
)
"""Keys without an action, which cannot be changed, and what they do."""

FIXED_GROUP = "Moving"


class KeyRow(NamedTuple):
    """One line of the live key map."""

    action: str
    """The id of the action; empty for keys without one."""
    keys: str
    """The keys as people write them, separated by blanks."""
    views: str
    group: str
    meaning: str
    changed: bool
    """Whether the operator configured other keys than the registry's."""
    words: str = ""
    """How it is typed at the prompt; several ways are separated by semicolons."""


def keys_of(view: ViewName, *, allowed: Allowed, configured: ConfiguredKeys | None = None) -> dict[str, Action]:
    """Return the action behind each key of a view. An action of the view itself precedes one that every view has."""
    found: dict[str, Action] = {}
    for action in sorted(available_actions(allowed, view), key=lambda candidate: bool(candidate.views)):
        for key in keys_for(action, configured):
            found[key] = action
    return found


def bindings_of(view: ViewName, *, allowed: Allowed, configured: ConfiguredKeys | None = None) -> list[Binding]:
    """Return the bindings of a view's screen. What the cluster does not allow is not bound."""
    keys: dict[str, list[str]] = {}
    actions: dict[str, Action] = {}
    for key, action in keys_of(view, allowed=allowed, configured=configured).items():
        keys.setdefault(action.id, []).append(key)
        actions[action.id] = action
    return [
        Binding(
            ",".join(keys[action.id]),
            f"app.act('{action.id}')",
            action.title,
            show=action.shown,
            key_display=display_of(action, configured),
        )
        for action in sorted(actions.values(), key=_place_in_footer)
    ]


def keys_for(action: Action, configured: ConfiguredKeys | None = None) -> tuple[str, ...]:
    text = (configured or {}).get(action.id, action.keys)
    return tuple(key.strip() for key in text.split(",") if key.strip())


def display_of(action: Action, configured: ConfiguredKeys | None = None) -> str:
    """Return the keys of an action as footer and help show them."""
    if configured is None or action.id not in configured:
        return action.key_display
    return " ".join(map(written, keys_for(action, configured)))


def why_unbound(view: ViewName, key: str, allowed: Allowed, configured: ConfiguredKeys | None = None) -> str:
    """Return why `key` does nothing in a view: this cluster does not allow its action, or other views have it."""
    meant = [action for action in ACTIONS if key in keys_for(action, configured)]
    here = next((action for action in meant if not action.views or view in action.views), None)
    if here is not None:
        return allowed.refusal(here) or f"{here.title} is done to a member, and this view points at none"
    places = [f"{action.title} in {' and '.join(action.views)}" for action in meant]
    where = f", but elsewhere: {', '.join(places)}" if places else "; ? lists the keys"
    return f"{written(key)} does nothing here{where}"


def written(key: str) -> str:
    """Return a key as people write it: ``/`` for ``slash``, ``^s`` for ``ctrl+s``."""
    modifiers, _, base = key.rpartition("+")
    shown = base if base in NAMED_KEYS else format_key(base)
    return shown if not modifiers else f"^{shown}" if modifiers == "ctrl" else f"{modifiers}+{shown}"


def live_key_map(configured: ConfiguredKeys | None = None, actions: Sequence[Action] = ACTIONS) -> list[KeyRow]:
    """Return every action with its present keys, in the order of help, and then the keys without an action."""
    of_actions = [
        KeyRow(
            action.id,
            " ".join(map(written, keys_for(action, configured))),
            " ".join(action.views) or "all",
            action.group,
            action.meaning,
            keys_for(action, configured) != keys_for(action),
            "; ".join(word.usage for word in action.words),
        )
        for action in actions
    ]
    fixed = (KeyRow("", keys, "all", FIXED_GROUP, meaning, changed=False) for keys, meaning in FIXED_KEYS)
    return [*of_actions, *fixed]


def key_named(text: str) -> str:
    """Return what Textual calls the key that people write as `text`: ``K``, ``/``, ``ctrl+k``, ``f5``, ``slash``.

    Raises:
        ValueError: There is no such key; the message has a hint.
    """
    *modifiers, base = _split(text)
    for modifier in modifiers:
        if modifier not in MODIFIERS:
            raise ValueError(f"{text!r} is not a key; what goes before + is one of {', '.join(MODIFIERS)}")
    if len(base) == 1:
        base = _character_name(base)
    elif base not in NAMED_KEYS and not _is_character_name(base):
        close = difflib.get_close_matches(base, sorted(NAMED_KEYS), n=1)
        hint = f"did you mean {close[0]}?" if close else "write a character, ctrl+k, or a name such as f5 or delete"
        raise ValueError(f"{text!r} is not a key; {hint}")
    if "shift" in modifiers and len(base) == 1 and base.isalpha():
        raise ValueError(f"{text!r} never arrives from a terminal; write {base.upper()}")
    key = "+".join((*sorted(set(modifiers)), base))
    if key in SENT_AS:
        raise ValueError(f"{text!r} never arrives: terminals send it as {SENT_AS[key]}; choose another key")
    return key


def check_keys(configured: ConfiguredKeys, actions: Sequence[Action] = ACTIONS) -> None:
    """Raise `BadKeys` for the first configured key that cannot be used: unknown action, taken key, or two actions in a view.

    Only changes by the operator are checked: in the registry a view's own action may precede one that every view has.
    """
    by_id = {action.id: action for action in actions}
    for action_id, text in configured.items():
        if action_id not in by_id:
            close = difflib.get_close_matches(action_id, by_id, n=1)
            hint = f"did you mean {close[0]}?" if close else "`quarterdeck keys` lists them"
            raise BadKeys(action_id, f"there is no such action; {hint}")
        own = keys_for(by_id[action_id])
        for key in filter(None, text.split(",")):
            if key in TAKEN_ELSEWHERE and key not in own:
                raise BadKeys(action_id, f"{written(key)} {TAKEN_ELSEWHERE[key]}; choose another key")
    for view in VIEW_NAMES:
        _check_view(view, configured, [action for action in actions if not action.views or view in action.views])


def _check_view(view: ViewName, configured: ConfiguredKeys, actions: Iterable[Action]) -> None:
    holders: dict[str, Action] = {}
    for action in actions:
        for key in keys_for(action, configured):
            other = holders.setdefault(key, action)
            changed = next((candidate for candidate in (action, other) if _is_new(candidate, key, configured)), None)
            if other is not action and changed is not None:
                rival = other if changed is action else action
                where = f" in the view {view}" if action.views or other.views else ""
                raise BadKeys(
                    changed.id,
                    f"{written(key)} is the key of {rival.id!r} already{where}; choose another key, or give {rival.id!r} one too",
                )


def _is_new(action: Action, key: str, configured: ConfiguredKeys) -> bool:
    return action.id in configured and key not in keys_for(action)


def _place_in_footer(action: Action) -> tuple[int, int]:
    if action.views:
        return 0, 0
    if action.id in USEFUL:
        return 1, USEFUL.index(action.id)
    return (3 if action.group in FOOTER_LAST else 2), 0


def _split(text: str) -> list[str]:
    if text == "+" or text.endswith("++"):
        return [*filter(None, text[:-1].split("+")), "+"]
    parts = text.strip().split("+")
    if not all(parts):
        raise ValueError(f"{text!r} is not a key; write a character, ctrl+k, or a name such as f5 or delete")
    return parts


def _character_name(character: str) -> str:
    """Return Textual's name: letters and digits as they are, others by their Unicode name."""
    if character.isalnum():
        return character
    if character == " ":
        return "space"
    name = unicodedata.name(character, "").lower().replace("-", "_").replace(" ", "_")
    if not name:
        raise ValueError(f"{character!r} is not a key that can be written")
    return KEY_NAME_REPLACEMENTS.get(name, name)


def _is_character_name(name: str) -> bool:
    known = {KEY_NAME_REPLACEMENTS.get(known_name, known_name) for known_name in KEY_TO_UNICODE_NAME}
    return name in known | {_character_name(sign) for sign in string.punctuation}


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
        if session.picture.links:
            return True
        return any(belief.status in STOPPED or belief.join_list_edition for belief in session.picture.members.values())
    if not action.aims or not (conditions := _conditions_of(action.id)):
        return True
    beliefs = [session.picture.members.get(target) for target in targets]
    # A member without news may be in any state.
    return any(belief is None or MEETS[condition](belief) for condition in conditions for belief in beliefs)


@cache
def _conditions_of(action_id: str) -> frozenset[MemberCondition]:
    words = action_called(action_id).words
    return frozenset(command.needs for word in words for command in commands_of_word(word.word) if command.needs)


MEETS: Mapping[MemberCondition, Callable[[MemberBelief], bool]] = {
    "down": lambda belief: not belief.running,
    "up": lambda belief: belief.running,
    "paused": lambda belief: belief.status == "paused",
    "master": lambda belief: belief.running and belief.is_master,
    "not paused": lambda belief: belief.running and belief.status != "paused",
}
"""Whether a member is in the state that a command needs."""


ACT = re.compile(r"app\.act\('([a-z-]+)'\)")
"""The binding of an action, as `bindings_of` writes it."""

BAR = tuple(
    BarView(action.key_display, keys_for(action)[0], view.name, action.title, view.short)
    for view in VIEWS
    if view.short and (action := view.opening) is not None
)

TYPING = (
    Hint("enter", "accept", "enter"), Hint("tab", "complete", "tab"), Hint("↑", "typed before", "up"),
    Hint("esc", "close", "escape"),
)  # fmt: skip
"""The footer while a command is typed; of a filter it is the first and the last."""
