"""The console as operators use it: refusals and failures, calls and their answers, bursts, and keys at random."""

from __future__ import annotations

import random
import threading
from pathlib import Path

import pytest
from textual.events import Key

from quarterdeck.app.console import Console
from quarterdeck.backend.core.commands import (
    KillMember,
)
from quarterdeck.backend.core.data.events import CallFinished
from quarterdeck.backend.core.events import ProcessKilled
from quarterdeck.backend.core.link_condition import LinkChanged
from quarterdeck.backend.core.membership import events
from tests.app.fakes.console_driver import type_line
from tests.app.fakes.fake_cluster import FIVE, formed
from tests.app.fakes.screen_text import screen_text, settle, until
from tests.thoroughness import long_after


async def test_refusals_and_failures_are_one_error_line() -> None:
    cluster = formed()
    app = Console(cluster)
    async with app.run_test() as pilot:
        await settle(pilot)
        cluster.refuse("n1 runs [b]already[/b]\nindeed")
        await pilot.press("s")
        await pilot.pause()
        assert "start n1 is refused: n1 runs [b]already[/b]" in app.home.message.text
        assert "\n" not in app.home.message.text
        cluster.refusal = RuntimeError("cable gone")
        await pilot.press("s")
        await pilot.pause()
        assert "start n1 failed: RuntimeError: cable gone" in app.home.message.text


async def test_a_slow_cluster_keeps_nobody_waiting_and_answers_from_its_own_thread() -> None:
    cluster = formed()
    cluster.unanswered = []
    app = Console(cluster)
    async with app.run_test() as pilot:
        await settle(pilot)
        await pilot.press("x")
        assert app.home.message.text == "stop n1 …"
        await pilot.press("j")
        assert app.home.table.cursor_key == "n2"
        answering = threading.Thread(target=cluster.unanswered[0].set_result, args=(None,))
        answering.start()
        answering.join()
        await pilot.pause()
        assert app.home.message.text == "done: stop n1"
        await pilot.press("x")
        cluster.unanswered[1].cancel()
        await pilot.pause()
        assert "failed" in app.home.message.text


async def test_the_answer_of_a_call_is_told_when_it_comes_and_only_of_calls_made_here() -> None:
    cluster = formed()
    app = Console(cluster)

    def answer(member: str, key: str, value: str, problem: str = "") -> None:
        cluster.happen(member, CallFinished(1, "get", "m", key, 3, value, bool(value), 1_500, problem, False))

    async with app.run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        await type_line(pilot, "get m k n2")
        await settle(pilot)
        assert app.home.message.text == "get m k n2 …"
        answer("n3", "k", "of another member")
        answer("n2", "other", "of another key")
        await settle(pilot)
        assert app.home.message.text == "get m k n2 …"
        answer("n2", "k", "[b]v[/b]\x1b")
        await settle(pilot)
        assert app.home.message.text == "n2: get m k: '[b]v[/b]\\x1b' (p3, 1.5 ms)"
        answer("n2", "k", "somebody else's")
        await settle(pilot)  # this one comes before the question
        await type_line(pilot, "get m k n2")
        answer("n2", "k", "", f"{cluster.address('n4')} left")
        await settle(pilot)
        assert app.home.message.text == "✕ error  n2: get m k failed: n4 left; it may have been done"
        cluster.refuse("n2 is paused; resume it first")
        await type_line(pilot, "get m k n2")
        await pilot.pause()
        assert "get m k n2 is refused: n2 is paused" in app.home.message.text
        answer("n2", "k", "of nobody here")
        await settle(pilot)
        assert "is refused" in app.home.message.text


async def test_confirmation_spells_out_the_blast_radius_and_leans_to_cancel() -> None:
    app = Console(formed())
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await pilot.press("K")
        await settle(pilot)
        assert app.focused is not None and app.focused.id == "cancel"
        text = screen_text(app)
        assert "Kill n1?" in text and "1 of 5 running members would end" in text and "master of n2, n3, n4, n5" in text


async def test_screenshot_is_an_svg_file(tmp_path: Path) -> None:
    app = Console(formed())
    async with app.run_test() as pilot:
        await settle(pilot)
        app.answered(":", f"screenshot {tmp_path / 'one.svg'}")
        await until(pilot, (tmp_path / "one.svg").exists)
        assert (tmp_path / "one.svg").read_text(encoding="utf-8").startswith("<svg")
        app.answered(":", f"screenshot {tmp_path / 'nowhere' / 'one.svg'}")
        await until(pilot, lambda: "there is no folder" in app.home.message.text)


async def test_the_clock_may_tick_while_the_console_closes() -> None:
    app = Console(formed())
    async with app.run_test() as pilot:
        await settle(pilot)
    assert not app.screen_stack
    app._tick()


async def test_hostile_labels_and_reasons_are_only_text() -> None:
    labels = ("[/]x", "[fe80::1]:5701", "[@click=app.quit]q[/]", "多播\x1b[2J")
    cluster = formed(labels, name="[b]dev[/")
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


async def test_a_burst_larger_than_a_tick_is_lost_nowhere() -> None:
    cluster = formed()
    for place in range(9_000):
        cluster.suspect("n1", "n2", f"reason {place}")
    app = Console(cluster)
    async with app.run_test() as pilot:
        await until(pilot, lambda: app.session.tape.end_us == cluster.now_us())
        assert app.picture.members["n1"].suspicions[cluster.address("n2")].reason == "reason 8999"


KEYS = (
    *"jksxpclhfgGKXqiemowStvad", "question_mark", "space", "up", "down", "left", "right", "tab", "escape", "enter", "slash",
    "colon", "pagedown", "pageup", "home", "end", "ctrl+p", "n", "1", "backspace",
)  # fmt: skip


@pytest.mark.parametrize("seed", long_after(1, [1, 2]))
async def test_any_keys_while_records_stream_break_nothing(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # a screenshot may be among what the palette does
    draw = random.Random(seed)
    cluster = formed()
    app = Console(cluster)
    app.do_quit = lambda _: None
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
            await pilot.pause(0)
            if step % 16 == 8:
                await pilot.resize_terminal(draw.randint(20, 160), draw.randint(5, 50))
        await settle(pilot)
        assert app.is_running and screen_text(app)
