"""Keys: the registry's own have no clash, and those that people want are checked before anything starts."""

from __future__ import annotations

import string

import pytest
from textual.keys import _character_to_key

from quarterdeck.app.actions.action import EVERYTHING, READ_ONLY, Action
from quarterdeck.app.actions.registry import ACTIONS
from quarterdeck.app.actions.views import VIEW_NAMES
from quarterdeck.app.key_map import (
    NAMED_KEYS,
    TAKEN_ELSEWHERE,
    BadKeys,
    bindings_of,
    check_keys,
    display_of,
    key_named,
    keys_for,
    keys_of,
    live_key_map,
    written,
)
from quarterdeck.app.views.member import MemberScreen
from quarterdeck.widgets.fact_sheet import FactSheet
from quarterdeck.widgets.line_table import LineTable


@pytest.mark.parametrize("character", string.punctuation + string.ascii_letters + string.digits)
def test_a_character_is_called_as_textual_calls_it(character: str) -> None:
    assert key_named(character) == _character_to_key(character)
    assert key_named(key_named(character)) == key_named(character)
    assert written(key_named(character)) == character


@pytest.mark.parametrize(
    ("text", "key", "shown"),
    [
        ("ctrl+k", "ctrl+k", "^k"),
        ("f5", "f5", "f5"),
        ("ctrl++", "ctrl+plus", "^+"),
        ("shift+f3", "shift+f3", "shift+f3"),
        ("delete", "delete", "delete"),
        (" space ", "space", "space"),
        ("shift+ctrl+left", "ctrl+shift+left", "ctrl+shift+left"),
    ],
)
def test_keys_with_names_and_modifiers(text: str, key: str, shown: str) -> None:
    assert (key_named(text), written(key)) == (key, shown)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("shift+k", "write K"),
        ("ctrl+i", "terminals send it as tab"),
        ("contrl+k", "one of ctrl, alt"),
        ("delte", "did you mean delete?"),
        ("", "write a character"),
        ("ctrl+", "write a character"),
        ("\x01", "not a key that can be written"),
    ],
)
def test_what_is_no_key_is_said(text: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        key_named(text)


def test_the_registry_has_no_clash() -> None:
    check_keys({})
    assert len({action.id for action in ACTIONS}) == len(ACTIONS)
    for view in VIEW_NAMES:
        for own in (True, False):
            keys = [
                key
                for action in ACTIONS
                if bool(action.views) == own and (not own or view in action.views)
                for key in keys_for(action)
            ]
            assert len(keys) == len(set(keys)), f"{view}: {sorted(key for key in keys if keys.count(key) > 1)}"
    for action in ACTIONS:
        for key in keys_for(action):
            assert key_named(key) == key, f"{action.id}: {key}"


def test_every_key_that_tables_take_is_known_to_be_taken() -> None:
    for widget in (LineTable, FactSheet):
        for binding in widget.BINDINGS:
            keys = binding.key if hasattr(binding, "key") else binding[0]
            for key in keys.split(","):
                assert key in TAKEN_ELSEWHERE or key in {"escape", "enter"}, key
    assert MemberScreen.view in VIEW_NAMES
    assert set(TAKEN_ELSEWHERE) & NAMED_KEYS


@pytest.mark.parametrize(
    ("wanted", "action", "told"),
    [
        ({"kil": "z"}, "kil", "there is no such action; did you mean kill"),
        ({"zzzzz": "z"}, "zzzzz", "`quarterdeck keys` lists them"),
        ({"kill": "x"}, "kill", "x is the key of 'stop' already; choose another key, or give 'stop' one too"),
        ({"kill": "j"}, "kill", "j moves the cursor"),
        ({"kill": "ctrl+q"}, "kill", "leaves the console"),
        ({"kill": "ctrl+p"}, "kill", "opens the palette"),
        ({"kill": "ctrl+k,space"}, "kill", "space selects"),
        ({"kill": "f2", "stop": "f2"}, "kill", "f2 is the key of 'stop' already"),
        ({"stop": "f2", "kill": "s"}, "kill", "s is the key of 'start' already"),
    ],
)
def test_what_cannot_be_had_is_said(wanted: dict[str, str], action: str, told: str) -> None:
    with pytest.raises(BadKeys, match=told) as caught:
        check_keys(wanted)
    assert caught.value.action == action


def test_keys_may_change_places_and_go_away() -> None:
    check_keys({"kill": "x", "stop": "K"})
    check_keys({"stop": "", "kill": "x"})
    check_keys({"kill": "K,ctrl+k"})


A_VIEWS_OWN = Action("zoom", "zoom", "Zoom.", "s", "s", "Time", views=("time",))


def test_a_views_own_key_clashes_only_when_somebody_wanted_it() -> None:
    actions = (*ACTIONS, A_VIEWS_OWN)
    check_keys({}, actions)
    with pytest.raises(BadKeys, match="f9 is the key of 'kill' already in the view time"):
        check_keys({"zoom": "f9", "kill": "f9"}, actions)
    with pytest.raises(BadKeys, match="x is the key of 'stop' already in the view time"):
        check_keys({"zoom": "x"}, actions)


def test_every_action_has_a_word_and_every_key_a_row() -> None:
    rows = live_key_map()
    assert all(row.words for row in rows if row.action) and {row.action for row in rows} >= {
        action.id for action in ACTIONS
    }
    words = [word.word for action in ACTIONS for word in action.words]
    assert len(words) == len(set(words))
    told = {key for row in rows for key in row.keys.split()}
    assert {written(key) for action in ACTIONS for key in keys_for(action)} <= told
    assert {"space", "tab", "j", "k", "g", "G", "^p", "^q"} <= told


def test_wanted_keys_are_bound_and_shown() -> None:
    wanted = {"kill": "ctrl+k,f9", "stop": ""}
    keys = keys_of("beliefs", allowed=EVERYTHING, configured=wanted)
    assert keys["ctrl+k"].id == keys["f9"].id == "kill"
    assert "K" not in keys
    assert "x" not in keys
    binding = next(
        binding for binding in bindings_of("beliefs", allowed=EVERYTHING, configured=wanted) if "kill" in binding.action
    )
    assert (binding.key, binding.key_display) == ("ctrl+k,f9", "^k f9")
    row = next(row for row in live_key_map(wanted) if row.action == "kill")
    assert (row.keys, row.views, row.changed) == ("^k f9", "all", True)
    assert not next(row for row in live_key_map(wanted) if row.action == "start").changed


def test_what_may_not_be_done_is_not_bound_whatever_is_wanted() -> None:
    keys = keys_of("beliefs", allowed=READ_ONLY, configured={"kill": "ctrl+k"})
    assert not any(action.needs_write for action in keys.values())
    assert display_of(ACTIONS[0]) == ACTIONS[0].key_display
