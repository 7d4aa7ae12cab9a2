"""The console as operators use it: keys in, commands and screens out."""

from __future__ import annotations

import asyncio
import random
import threading
from pathlib import Path

import pytest
from textual.events import Key
from textual.pilot import Pilot
from textual.widgets import Input

from quarterdeck.app.commands.confirm_screens import ConfirmScreen
from quarterdeck.app.console import Console
from quarterdeck.app.help_screen import HelpScreen
from quarterdeck.app.views.member.screen import MemberScreen
from quarterdeck.app.views.migrations.screen import MigrationsScreen
from quarterdeck.backend.core import events
from quarterdeck.backend.core.commands import (
    ArrangePartitions,
    CallMap,
    ChangeState,
    Command,
    CutLink,
    DuplicateOnLink,
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
from quarterdeck.backend.core.data.calls.operations import Get, Put
from quarterdeck.backend.core.data.events import CallFinished
from quarterdeck.backend.core.events import LinkChanged, ProcessKilled, ProcessPaused
from quarterdeck.backend.core.partitions.events import MigrationDecided
from tests.app.fakes.fake_cluster import FakeCluster
from tests.app.fakes.screen_text import screen_text, settle
from tests.thoroughness import long_after

FIVE = ("n1", "n2", "n3", "n4", "n5")


def formed(**how: object) -> FakeCluster:
    cluster = FakeCluster(FIVE, **how)  # type: ignore[arg-type]
    cluster.form()
    return cluster


def run_async(scenario: object) -> None:
    asyncio.run(scenario)  # type: ignore[arg-type]


async def type_line(pilot: Pilot[None], line: str) -> None:
    names = {" ": "space", ",": "comma", "|": "vertical_line", "-": "minus", "/": "slash", ".": "full_stop"}
    await pilot.press("colon", *(names.get(letter, letter) for letter in line), "enter")
    await pilot.pause()


@pytest.mark.parametrize(
    ("keys", "asked"),
    [
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
        (["v", "v", "x"], [StopMember("n1")]),
        (["v", "escape", "x"], [StopMember("n1")]),
        (["v", "q", "x"], [StopMember("n1")]),
        (["v", "colon", *"stop", "space", *"n2", "enter"], [StopMember("n2")]),
        (["j", "m", "right", "enter"], [SearchClusters("n2")]),
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
    ],
)
def test_keys_become_commands(keys: list[str], asked: list[Command]) -> None:
    async def scenario() -> None:
        cluster = formed()
        async with Console(cluster).run_test(size=(80, 24)) as pilot:
            await settle(pilot)
            await pilot.press(*keys)
            await pilot.pause()
            assert cluster.commands == asked

    run_async(scenario())


def test_pause_key_resumes_a_frozen_member() -> None:
    async def scenario() -> None:
        cluster = formed()
        cluster.happen("dev", ProcessPaused("n1"))
        async with Console(cluster).run_test() as pilot:
            await settle(pilot)
            await pilot.press("p")
            assert cluster.commands == [ResumeMember("n1")]

    run_async(scenario())


def test_typed_commands_and_their_errors() -> None:
    async def scenario() -> None:
        cluster = formed()
        app = Console(cluster)
        async with app.run_test(size=(80, 24)) as pilot:
            await settle(pilot)
            await type_line(pilot, "partition n1,n2|n3,n4")
            await type_line(pilot, "cut n1 n2 one-way")
            assert cluster.commands == [
                Partition((("n1", "n2"), ("n3", "n4"))),
                CutLink(("n1",), ("n2",), one_way=True),
            ]
            await type_line(pilot, "duplicate n1 n2 1")
            assert cluster.commands.pop() == DuplicateOnLink(("n1",), ("n2",), 1.0)
            await type_line(pilot, "stop n9")
            assert "there is no member 'n9'" in app.beliefs.message.text
            assert len(cluster.commands) == 2
            await type_line(pilot, "kill n2")
            assert isinstance(app.screen, ConfirmScreen)
            await pilot.press("escape")
            await type_line(pilot, "help")
            assert isinstance(app.screen, HelpScreen)
            await pilot.press("q")
            assert app.screen is app.beliefs
            await type_line(pilot, "quit")
            assert not app.is_running or app._exit

    run_async(scenario())


def test_prompt_completes_and_remembers() -> None:
    async def scenario() -> None:
        cluster = formed()
        app = Console(cluster)
        async with app.run_test(size=(80, 24)) as pilot:
            await settle(pilot)
            await pilot.press("colon", *"star")
            await settle(pilot)
            await pilot.press("tab", "space")
            await settle(pilot)
            await pilot.press("tab", "enter")
            await pilot.pause()
            assert cluster.commands == [StartMember("n1")]
            await pilot.press("colon", "up", "enter")
            await pilot.pause()
            assert cluster.commands == [StartMember("n1")] * 2
            await pilot.press("colon", "x", "escape", "x")
            assert cluster.commands[2:] == [StopMember("n1")]

    run_async(scenario())


def test_keys_typed_fast_behind_the_colon_are_words_and_no_actions() -> None:
    async def scenario() -> None:
        cluster = formed()
        app = Console(cluster)
        async with app.run_test(size=(80, 24)) as pilot:
            await settle(pilot)
            # Unlike a pilot, a fast hand or a paste does not wait for the focus to move.
            for key, letter in (("colon", ":"), *((letter, letter) for letter in "sxhpq")):
                app.post_message(Key(key, letter))
            await settle(pilot)
            assert cluster.commands == [] and app.is_running
            assert app.beliefs.prompt.query_one("#prompt-input", Input).value == "sxhpq"
            await pilot.press("escape")
            for key, letter in (("colon", ":"), ("h", "h"), ("e", "e"), ("a", "a"), ("tab", None), ("enter", None)):
                app.post_message(Key(key, letter))
            await settle(pilot)
            assert cluster.commands == [Heal()]

    run_async(scenario())


def test_refusals_and_failures_are_one_error_line() -> None:
    async def scenario() -> None:
        cluster = formed()
        app = Console(cluster)
        async with app.run_test() as pilot:
            await settle(pilot)
            cluster.refuse("n1 runs [b]already[/b]\nindeed")
            await pilot.press("s")
            await pilot.pause()
            assert "start n1 is refused: n1 runs [b]already[/b]" in app.beliefs.message.text
            assert "\n" not in app.beliefs.message.text
            cluster.refusal = RuntimeError("cable gone")
            await pilot.press("s")
            await pilot.pause()
            assert "start n1 failed: RuntimeError: cable gone" in app.beliefs.message.text

    run_async(scenario())


def test_a_slow_cluster_keeps_nobody_waiting_and_answers_from_its_own_thread() -> None:
    async def scenario() -> None:
        cluster = formed()
        cluster.unanswered = []
        app = Console(cluster)
        async with app.run_test() as pilot:
            await settle(pilot)
            await pilot.press("x")
            assert app.beliefs.message.text == "stop n1 …"
            await pilot.press("j")
            assert app.beliefs.table.cursor_key == "n2"
            answering = threading.Thread(target=cluster.unanswered[0].set_result, args=(None,))
            answering.start()
            answering.join()
            await pilot.pause()
            assert app.beliefs.message.text == "done: stop n1"
            await pilot.press("x")
            cluster.unanswered[1].cancel()
            await pilot.pause()
            assert "failed" in app.beliefs.message.text

    run_async(scenario())


def test_read_only_binds_offers_and_obeys_nothing_that_changes_the_cluster() -> None:
    async def scenario() -> None:
        cluster = formed(writable=False)
        app = Console(cluster)
        async with app.run_test(size=(160, 50)) as pilot:
            await settle(pilot)
            await pilot.press("s", "x", "K", "X", "p", "c", "l", "h")
            await type_line(pilot, "heal")
            assert "read-only" in app.beliefs.message.text
            assert app.screen is app.beliefs and not cluster.commands
            text = screen_text(app)
            assert " RO" in text and "kill" not in text.splitlines()[-1]
            await pilot.press("question_mark")
            await pilot.pause()
            assert "without a goodbye" not in screen_text(app)

    run_async(scenario())


def test_confirmation_spells_out_the_blast_radius_and_leans_to_cancel() -> None:
    async def scenario() -> None:
        app = Console(formed())
        async with app.run_test(size=(80, 24)) as pilot:
            await settle(pilot)
            await pilot.press("K")
            await settle(pilot)
            assert app.focused is not None and app.focused.id == "cancel"
            text = screen_text(app)
            assert (
                "Kill n1?" in text and "1 of 5 running members would end" in text and "master of n2, n3, n4, n5" in text
            )

    run_async(scenario())


def test_the_answer_of_a_call_is_told_when_it_comes_and_only_of_calls_made_here() -> None:
    async def scenario() -> None:
        cluster = formed()
        app = Console(cluster)

        def answer(member: str, key: str, value: str, problem: str = "") -> None:
            cluster.happen(member, CallFinished(1, "get", "m", key, 3, value, bool(value), 1_500, problem, False))

        async with app.run_test(size=(100, 30)) as pilot:
            await settle(pilot)
            await type_line(pilot, "get m k n2")
            await settle(pilot)
            assert app.beliefs.message.text == "get m k n2 …"
            answer("n3", "k", "of another member")
            answer("n2", "other", "of another key")
            await settle(pilot)
            assert app.beliefs.message.text == "get m k n2 …"
            answer("n2", "k", "[b]v[/b]\x1b")
            await settle(pilot)
            assert app.beliefs.message.text == "n2: get m k: '[b]v[/b]\\x1b' (p3, 1.5 ms)"
            answer("n2", "k", "somebody else's")
            await type_line(pilot, "get m k n2")
            answer("n2", "k", "", f"{cluster.address('n4')} left")
            await settle(pilot)
            assert app.beliefs.message.text == "✕ error  n2: get m k failed: n4 left; it may have been done"
            cluster.refuse("n2 is paused; resume it first")
            await type_line(pilot, "get m k n2")
            await pilot.pause()
            assert "get m k n2 is refused: n2 is paused" in app.beliefs.message.text
            answer("n2", "k", "of nobody here")
            await settle(pilot)
            assert "is refused" in app.beliefs.message.text

    run_async(scenario())


def test_migrations_stay_up_to_date_and_no_key_acts_on_a_member_out_of_sight() -> None:
    async def scenario() -> None:
        cluster = formed()
        app = Console(cluster)
        async with app.run_test(size=(100, 30)) as pilot:
            await settle(pilot)
            await type_line(pilot, "migrations")
            await settle(pilot)
            assert isinstance(app.screen, MigrationsScreen) and "no partitions yet" in screen_text(app)
            assert "stop" not in screen_text(app).splitlines()[-1]
            cluster.begin("n1", "m0", 7, "n2", "n5")
            await settle(pilot)
            assert "▶ copying    p7     MOVE" in screen_text(app)
            assert "p7 MOVE: n5 to 0, n2 goes; copying, data from n2" in screen_text(app)
            cluster.happen("n1", MigrationDecided("m0", 7, False, 3, "n5 [x] left"))
            await settle(pilot)
            assert "▸ ✕ failed     p7" in screen_text(app), "the cursor stays on its migration"
            assert "last failed, 0 s ago: p7, n5 [x] left" in screen_text(app)

    run_async(scenario())


def test_versions_of_tables_get_a_column_when_there_are_tables() -> None:
    async def scenario() -> None:
        cluster = formed()
        app = Console(cluster)
        async with app.run_test(size=(160, 50)) as pilot:
            await settle(pilot)
            assert " table " not in screen_text(app)
            cluster.change_table("n1", 1_000, {0: ["n1", "n2"]})
            cluster.change_table("n2", 999, {0: ["n2", "n1"]})
            await settle(pilot)
            text = screen_text(app)
            assert " table " in text and "v5      ≠ t999" in text and "≠ none" in text
            for label in FIVE:
                cluster.change_table(label, 1_001, {0: ["n1", "n2"]})
            await settle(pilot)
            assert "≠" not in screen_text(app)

    run_async(scenario())


def test_one_member_in_detail_stays_up_to_date() -> None:
    async def scenario() -> None:
        cluster = formed()
        app = Console(cluster)
        async with app.run_test(size=(100, 30)) as pilot:
            await settle(pilot)
            await pilot.press("j", "i")
            await settle(pilot)
            assert isinstance(app.screen, MemberScreen) and app.screen.label == "n2"
            assert "member, follows n1, list v5 since 0 s" in screen_text(app)
            cluster.suspect("n2", "n5", "silence [x]")
            await settle(pilot)
            assert "? n5 since 0 s: silence [x]" in screen_text(app)
            cluster.happen("dev", ProcessPaused("n3"), after_us=7_000_000)
            await settle(pilot)
            assert "? n5 since 7 s: silence [x]" in screen_text(app)
            await pilot.press("t")
            assert "Members [5] {" in screen_text(app)
            await pilot.press("right")
            await settle(pilot)
            assert "paused, follows n1" in screen_text(app)
            await pilot.press("p")
            await settle(pilot)
            assert cluster.commands == [ResumeMember("n3")] and "done: resume n3" in screen_text(app)
            await pilot.press("q")
            assert app.screen is app.beliefs and app.beliefs.table.cursor_key == "n3"
            await type_line(pilot, "look n5")
            assert isinstance(app.screen, MemberScreen) and app.screen.label == "n5"
            await pilot.press("e")
            await pilot.pause()
            assert app.top.prompt.query_one("#prompt-input", Input).value == "join-list n5 n1,n2,n3,n4,n5"

    run_async(scenario())


def test_detail_paints_only_lines_that_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        cluster = formed()
        app = Console(cluster)
        async with app.run_test(size=(100, 30)) as pilot:
            await settle(pilot)
            await pilot.press("i")
            await settle(pilot)
            assert isinstance(app.screen, MemberScreen)
            painted: list[int] = []
            render = app.screen.sheet.render_line
            monkeypatch.setattr(app.screen.sheet, "render_line", lambda y: painted.append(y) or render(y))
            cluster.happen("n2", events.ListRejected(1, cluster.address("n1"), "older"), after_us=0)
            await settle(pilot)
            assert painted == [], "nothing said of n1 has changed"
            cluster.happen("n1", events.ClusterStateChanged("FROZEN", "asked"), after_us=0)
            await settle(pilot)
            assert 2 in painted, "the line of the state; what happened lately has a line more, so that the rest moves"
            painted.clear()
            cluster.happen("n2", events.ListRejected(1, cluster.address("n1"), "older"), after_us=1_000_000)
            await settle(pilot)
            assert painted == [0], "only the line with the age of the list"

    run_async(scenario())


def test_the_prompt_may_be_asked_before_it_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        cluster = formed()
        app = Console(cluster)
        push_screen = app.push_screen

        def push_and_type(screen: object) -> None:
            push_screen(screen)  # type: ignore[call-overload]
            app.beliefs.prompt.ask(":", "stop ")
            app.beliefs.prompt.type_in("n")

        monkeypatch.setattr(app, "push_screen", push_and_type)
        async with app.run_test(size=(80, 24)) as pilot:
            await settle(pilot)
            await pilot.press("2", "enter")
            await pilot.pause()
            assert cluster.commands == [StopMember("n2")]

    run_async(scenario())


def test_keys_typed_fast_behind_the_colon_in_detail_do_nothing_to_the_member() -> None:
    async def scenario() -> None:
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

    run_async(scenario())


def test_masters_that_do_not_merge_are_quoted_while_there_are_several() -> None:
    async def scenario() -> None:
        cluster = formed()
        app = Console(cluster)
        async with app.run_test(size=(100, 30)) as pilot:
            cluster.happen("n1", events.NotMerging("it knows nobody"))
            await settle(pilot)
            assert "∦" not in screen_text(app)
            cluster.split(["n1", "n2", "n3"], ["n4", "n5"])
            cluster.happen("n4", events.NotMerging(f"nobody answers at {cluster.address('n1')}"))
            await settle(pilot)
            text = screen_text(app)
            assert "∦  n1 is not merging: it knows nobody" in text
            assert "∦  n4 is not merging: nobody answers at n1" in text
            for label in FIVE:
                cluster.install(label, 9, FIVE, lineage="L3")
            await settle(pilot)
            assert "∦" not in screen_text(app)

    run_async(scenario())


def test_filter_follow_and_pause_of_the_tail() -> None:
    async def scenario() -> None:
        cluster = formed()
        app = Console(cluster)
        async with app.run_test(size=(100, 30)) as pilot:
            await settle(pilot)
            cluster.suspect("n3", "n5", "silence [x]")
            await settle(pilot)
            await pilot.press("slash", *"silence", "enter")
            await settle(pilot)
            assert app.beliefs.tail.title_text == "events  ▼ follow  /silence  1 of 11"
            assert "installs list" not in screen_text(app) and "silence [x]" in screen_text(app)
            await pilot.press("slash", "escape")
            assert app.beliefs.tail.filter_text == ""
            await pilot.press("f")
            cluster.suspect("n3", "n4")
            await settle(pilot)
            assert "‖ paused +1 new" in screen_text(app) and "suspects n4" not in screen_text(app)
            await pilot.press("f")
            await settle(pilot)
            assert "suspects n4" in screen_text(app)
            await pilot.press("tab", "k")
            assert not app.beliefs.tail.following
            await pilot.press("j")
            assert app.beliefs.tail.following

    run_async(scenario())


def test_screenshot_is_an_svg_file(tmp_path: Path) -> None:
    async def scenario() -> None:
        app = Console(formed())
        async with app.run_test() as pilot:
            await settle(pilot)
            app._execute_line(f"screenshot {tmp_path / 'one.svg'}")
            assert (tmp_path / "one.svg").read_text(encoding="utf-8").startswith("<svg")
            app._execute_line(f"screenshot {tmp_path / 'nowhere' / 'one.svg'}")
            assert "there is no folder" in app.beliefs.message.text

    run_async(scenario())


def test_the_clock_may_tick_while_the_console_closes() -> None:
    async def scenario() -> None:
        app = Console(formed())
        async with app.run_test() as pilot:
            await settle(pilot)
        assert not app.screen_stack
        app._tick()

    run_async(scenario())


def test_palette_runs_actions() -> None:
    async def scenario() -> None:
        cluster = formed()
        app = Console(cluster)
        async with app.run_test(size=(100, 40)) as pilot:
            await settle(pilot)
            await pilot.press("ctrl+p")
            await settle(pilot)
            await pilot.press(*"heal")
            await pilot.pause(0.5)
            await pilot.press("enter")
            await settle(pilot)
            assert cluster.commands == [Heal()]

    run_async(scenario())


def test_hostile_labels_and_reasons_are_only_text() -> None:
    async def scenario() -> None:
        labels = ("[/]x", "[fe80::1]:5701", "[@click=app.quit]q[/]", "多播\x1b[2J")
        cluster = FakeCluster(labels, name="[b]dev[/")
        cluster.form()
        cluster.suspect("[/]x", "[fe80::1]:5701", "[/] [red]")
        app = Console(cluster)
        async with app.run_test(size=(160, 50)) as pilot:
            await settle(pilot)
            await pilot.press("K")
            await pilot.pause()
            assert "Kill [/]x?" in screen_text(app)
            await pilot.press("right", "enter")
            await settle(pilot)
            assert cluster.commands == [KillMember("[/]x")]
            text = screen_text(app)
            assert "[fe80::1]:5701" in text and "[b]dev[/" in text and "\x1b" not in text
            assert "suspects [fe80::1]:5701: [/] [red]" in text

    run_async(scenario())


def test_a_burst_larger_than_a_tick_is_lost_nowhere() -> None:
    async def scenario() -> None:
        cluster = formed()
        for place in range(9_000):
            cluster.suspect("n1", "n2", f"reason {place}")
        app = Console(cluster)
        async with app.run_test() as pilot:
            for _ in range(100):
                await pilot.pause(0.1)
                if app.session.tape.end_us == cluster.now_us():
                    break
            assert app.picture.members["n1"].suspicions[cluster.address("n2")].reason == "reason 8999"

    run_async(scenario())


def test_members_that_appear_later_get_row_and_column() -> None:
    async def scenario() -> None:
        cluster = formed()
        app = Console(cluster)
        async with app.run_test(size=(160, 50)) as pilot:
            await settle(pilot)
            await pilot.press("j", "j")
            cluster.labels = ("n0", *FIVE)
            await settle(pilot)
            assert app.beliefs.table.cursor_key == "n3"
            assert "not up" in screen_text(app)

    run_async(scenario())


KEYS = (
    *"jksxpclhfgGKXqiemowStvad", "question_mark", "space", "up", "down", "left", "right", "tab", "escape", "enter", "slash",
    "colon", "pagedown", "pageup", "home", "end", "ctrl+p", "n", "1", "backspace",
)  # fmt: skip


@pytest.mark.parametrize("seed", long_after(1, [1, 2]))
def test_any_keys_while_records_stream_break_nothing(seed: int) -> None:
    async def scenario() -> None:
        draw = random.Random(seed)
        cluster = formed()
        app = Console(cluster)
        app._handlers["quit"] = app._handlers["screenshot"] = lambda _: None
        async with app.run_test(size=(80, 24)) as pilot:
            for step in range(50):
                observer, other = draw.sample(FIVE, 2)
                cluster.suspect(observer, other)
                cluster.install(draw.choice(FIVE), 10 + step, draw.sample(FIVE, 3))
                cluster.happen("dev", LinkChanged(observer, other, blocked=draw.choice(["", "reset"])))  # type: ignore[arg-type]
                if step % 10 == 9:
                    cluster.happen("dev", ProcessKilled(observer))
                    cluster.happen(other, events.MemberStopped("asked to"))
                for key in draw.choices(KEYS, k=5):
                    app.post_message(Key(key, key if len(key) == 1 else None))
                await pilot.pause(0.01)
                if step % 16 == 8:
                    await pilot.resize_terminal(draw.randint(20, 160), draw.randint(5, 50))
            await settle(pilot)
            assert app.is_running and screen_text(app)

    run_async(scenario())
