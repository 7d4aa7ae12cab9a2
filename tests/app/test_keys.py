"""Keys become commands, unless the cluster is read-only or somebody is typing."""

from __future__ import annotations

from textual.events import Key
from textual.pilot import Pilot
from textual.widgets import Input

from quarterdeck.app.console import Console
from quarterdeck.backend.core.commands import (
    ArrangePartitions,
    CallMap,
    ChangeState,
    Command,
    CutLink,
    Heal,
    KillMember,
    LoseOnLink,
    Operate,
    Partition,
    PauseMember,
    ResumeMember,
    SearchClusters,
    SetJoinList,
    StartMember,
    StopMember,
)
from quarterdeck.backend.core.events import ProcessPaused
from quarterdeck.backend.core.operations import Get, Put
from tests.app.fakes.console_driver import type_line
from tests.app.fakes.fake_cluster import FIVE, formed
from tests.app.fakes.screen_text import screen_text, settle

KEYS: list[tuple[list[str], list[Command]]] = [
    (["s"], [StartMember("n1")]),
    (["j", "x"], [StopMember("n2")]),
    (["down", "down", "up", "x"], [StopMember("n2")]),
    (["p"], [PauseMember("n1")]),
    (["h"], [Heal()]),
    (["j", "c"], [Partition((("n2",), ("n1", "n3", "n4", "n5")))]),
    (["G", "space", "k", "space", "c"], [Partition((("n4", "n5"), ("n1", "n2", "n3")))]),
    (["space", "j", "space", "l"], [CutLink(("n1",), ("n2",))]),
    (["space", "j", "l"], [CutLink(("n1",), ("n2",))]),
    (["space", "j", "space", "s"], [StartMember("n1"), StartMember("n2")]),
    (["space", "escape", "j", "x"], [StopMember("n2")]),
    (["K", "right", "enter"], [KillMember("n1")]),
    (["K", "enter"], []),
    (["K", "escape"], []),
    (["X", "tab", "enter"], [StopMember(label) for label in FIVE]),
    (["X", "escape"], []),
    (["o"], [Operate("n1")]),
    (["j", "a"], [ArrangePartitions("n2")]),
    (["j", "d", *"m", "space", *"k", "space", *"v", "enter"], [CallMap("n2", Put("m", "k", b"v"))]),
    (["j", "space", "k", "colon", *"get", "space", *"m", "space", *"k", "enter"], [CallMap("n2", Get("m", "k"))]),
    (["j", "i", "d", *"m", "space", *"k", "space", *"v", "enter"], [CallMap("n2", Put("m", "k", b"v"))]),
    (["v", "s", "x", "p", "c", "a", "o", "m", "K", "i", "enter"], []),
    (["v", "v", "escape", "x"], [StopMember("n1")]),
    (["v", "escape", "x"], [StopMember("n1")]),
    (["v", "q", "x"], [StopMember("n1")]),
    (["v", "colon", *"stop", "space", *"n2", "enter"], [StopMember("n2")]),
    (["m", "right", "enter"], [SearchClusters("n1")]),
    (["j", "m"], []),  # it leads no cluster: the console says who does
    (["m", "enter"], []),
    (["S", *"FROZEN", "enter", "right", "enter"], [ChangeState("n1", "FROZEN")]),
    (["S", *"FROZEN", "enter", "enter"], []),
    (["space", "j", "space", "w", *"0", "full_stop", *"5", "enter"], [LoseOnLink(("n1",), ("n2",), 0.5)]),
    (["e", "enter"], [SetJoinList("n1", FIVE)]),
    (["j", "i", "x"], [StopMember("n2")]),
    (["space", "j", "enter", "x"], [StopMember("n2")]),
    (["i", "right", "K", "right", "enter"], [KillMember("n2")]),
    (["i", "escape", "j", "x"], [StopMember("n2")]),
    (["l"], []),
    (["space", "j", "space", "j", "space", "j", "space", "j", "space", "c"], []),
]


async def test_keys_become_commands() -> None:
    """In one console, which is brought back to its beginning each time."""

    cluster = formed()
    app = Console(cluster)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        for keys, asked in KEYS:
            await pilot.press(*keys)
            await pilot.pause()
            assert cluster.commands == asked, keys
            await begin_anew(app, pilot)
            cluster.commands.clear()


async def begin_anew(app: Console, pilot: Pilot[None]) -> None:
    """The first view, with nothing above it, nothing selected and the cursor at the top."""
    while app.screen is not app.top:
        app.screen.dismiss(None)
        await pilot.pause()
    if app.top.prompt.sign:
        app.top.prompt.dismiss()
    while app.top is not app.home:
        app.back()
        await pilot.pause()
    if app.home.table.selection:
        app.home.table.action_select_none()
    app.home.point_at("n1")


async def test_pause_key_resumes_a_frozen_member() -> None:
    cluster = formed()
    cluster.happen("dev", ProcessPaused("n1"))
    async with Console(cluster).run_test() as pilot:
        await settle(pilot)
        await pilot.press("p")
        assert cluster.commands == [ResumeMember("n1")]


async def test_keys_typed_fast_behind_the_colon_are_words_and_no_actions() -> None:
    cluster = formed()
    app = Console(cluster)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        # Unlike a pilot, a fast hand or a paste does not wait for the focus to move.
        for key, letter in (("colon", ":"), *((letter, letter) for letter in "sxhpq")):
            app.post_message(Key(key, letter))
        await settle(pilot)
        assert cluster.commands == [] and app.is_running
        assert app.home.prompt.query_one("#prompt-input", Input).value == "sxhpq"
        await pilot.press("escape")
        for key, letter in (("colon", ":"), ("h", "h"), ("e", "e"), ("a", "a"), ("tab", None), ("enter", None)):
            app.post_message(Key(key, letter))
        await settle(pilot)
        assert cluster.commands == [Heal()]


async def test_a_backspace_in_a_burst_takes_the_letter_before_it() -> None:
    app = Console(formed())
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await pilot.press("colon")
        for key, letter in (("h", "h"), ("x", "x"), ("backspace", None), ("e", "e"), ("left", None), ("y", "y")):
            app.post_message(Key(key, letter))
        await settle(pilot)
        assert app.home.prompt.query_one("#prompt-input", Input).value == "hye"


async def test_keys_typed_fast_behind_the_colon_in_detail_do_nothing_to_the_member() -> None:
    cluster = formed()
    app = Console(cluster)
    async with app.run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        await pilot.press("i")
        await settle(pilot)
        for key, letter in (("colon", ":"), *((letter, letter) for letter in "sxhp")):
            app.post_message(Key(key, letter))
        await settle(pilot)
        assert cluster.commands == [] and app.top.prompt.sign == ":"


async def test_read_only_binds_offers_and_obeys_nothing_that_changes_the_cluster() -> None:
    cluster = formed(writable=False)
    app = Console(cluster)
    async with app.run_test(size=(160, 50)) as pilot:
        await settle(pilot)
        await pilot.press("s", "x", "K", "X", "p", "c", "l", "h")
        await type_line(pilot, "heal")
        assert "read-only" in app.home.message.text
        assert app.screen is app.home and not cluster.commands
        text = screen_text(app)
        assert " RO" in text and "kill" not in text.splitlines()[-1]
        await pilot.press("question_mark")
        await pilot.pause()
        assert "without a goodbye" not in screen_text(app)
