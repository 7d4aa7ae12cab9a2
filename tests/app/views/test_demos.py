"""The demos in the console: the list, and a lesson on a simulated cluster, by keys alone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot

from quarterdeck.app.commands.confirmation import ConfirmScreen
from quarterdeck.app.console import Console
from quarterdeck.app.views.demos import DemosScreen
from quarterdeck.backend.clusters.simulated.simulated_cluster import SimulatedCluster
from quarterdeck.backend.training.demo_cluster import SimulatedDemo
from quarterdeck.backend.training.results import SCORES_FILE, ScoreBook
from tests.app.fakes.console_driver import type_line
from tests.app.fakes.fake_cluster import formed
from tests.app.fakes.screen_text import screen_text, until, until_shown
from tests.thoroughness import long_after

LABELS = ("n1", "n2")


def in_console(
    scenario: Callable[[Pilot[None], Console], Awaitable[None]],
    *,
    size: tuple[int, int] = (120, 40),
    state_file: Path | None = None,
    writable: bool = True,
) -> None:
    async def run() -> None:
        cluster = formed(LABELS, writable=writable)
        app = Console(cluster, state_file=state_file)
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            await scenario(pilot, app)
        app.close_owned()

    asyncio.run(run())


def lesson_screen(app: Console) -> DemosScreen:
    assert isinstance(app.top, DemosScreen)
    assert app.top.demo_cluster is not None
    return app.top


async def begin(pilot: Pilot[None], app: Console, demo: str = "first-cluster") -> DemosScreen:
    """A simulated demo, as far as its first question or action, in hurried time."""
    await type_line(pilot, f"demo {demo} 3")
    await until(pilot, lambda: isinstance(app.cluster, SimulatedDemo))
    assert isinstance(app.cluster, SimulatedCluster)
    app.cluster.set_speed(200)
    screen = lesson_screen(app)
    assert screen.demo_cluster is not None
    tutor = screen.demo_cluster.lesson.tutor
    await until(pilot, lambda: tutor.phase not in ("starting", "expecting"))
    return screen


def test_the_list_shows_every_demo_and_what_it_is_for() -> None:
    async def scenario(pilot: Pilot[None], app: Console) -> None:
        await pilot.press("D")
        # The last is the goal of the first one, below the list.
        told = ("Membership", "first-cluster", "mastership-claim", "unrecoverable-split", "pause-like-death")
        told += ("Choose the state for a maintenance",)
        await until_shown(
            pilot,
            lambda text: (
                all(word in text for word in told)
                and not any("…" in line for line in text.splitlines() if "first-cluster" in line)
            ),
        )
        await pilot.press("escape")
        await pilot.pause()
        assert app.top.view == "overview"

    in_console(scenario)


@pytest.mark.parametrize("size", long_after(1, [(80, 24), (160, 50)]))
def test_a_demo_from_beginning_to_end(size: tuple[int, int], tmp_path: Path) -> None:
    state_file = tmp_path / "console.json"

    async def scenario(pilot: Pilot[None], app: Console) -> None:
        screen = await begin(pilot, app)
        assert screen.demo_cluster is not None
        tutor = screen.demo_cluster.lesson.tutor
        assert "step 2 of" in screen_text(app) or "step 3 of" in screen_text(app)
        assert "athens" in screen_text(app)
        for _ in range(60):
            if tutor.phase == "over":
                break
            match tutor.phase:
                case "asking":
                    await pilot.press("b")
                case "to-do" | "reading" | "missed":
                    await pilot.press("enter")
            await pilot.pause()
            await until(pilot, lambda: tutor.phase not in ("doing", "waiting", "expecting"))
        assert tutor.phase == "over"
        await until(pilot, lambda: "summary" in screen_text(app))
        await until(pilot, lambda: "restart" in screen.hints.text and "go on" not in screen.hints.text)
        assert tutor.summary.passed, tutor.summary
        assert (tutor.summary.right, tutor.summary.judged) == (1, 3)
        await pilot.press("escape")  # nothing is asked: it is over
        await until(pilot, lambda: not isinstance(app.cluster, SimulatedDemo))

    in_console(scenario, size=size, state_file=state_file)
    assert ScoreBook(tmp_path / SCORES_FILE).of("first-cluster").text() == "1 of 3"


def test_the_deed_is_shown_in_every_way_before_it_is_done() -> None:
    async def scenario(pilot: Pilot[None], app: Console) -> None:
        screen = await begin(pilot, app, "master-dies")
        assert screen.demo_cluster is not None
        tutor = screen.demo_cluster.lesson.tutor
        await pilot.press("enter")
        await until(pilot, lambda: tutor.phase == "asking")
        await until(pilot, lambda: "Which version will the list" in screen_text(app))
        await pilot.press("f")  # there is no such choice
        assert tutor.phase == "asking"
        await pilot.press("c")
        await until(pilot, lambda: tutor.phase == "to-do")
        text = screen_text(app)
        assert "u simulated" not in text.splitlines()[-1]
        assert "kill athens" in text and ":kill athens" in text
        assert "$ quarterdeck cluster kill" in text
        await pilot.press("enter")
        await until(pilot, lambda: tutor.phase == "reading")
        await until(pilot, lambda: "✓ right" in screen_text(app))

    in_console(scenario)


def test_answers_in_words_and_none_at_all() -> None:
    async def scenario(pilot: Pilot[None], app: Console) -> None:
        screen = await begin(pilot, app, "lost-partition")
        assert screen.demo_cluster is not None
        tutor = screen.demo_cluster.lesson.tutor
        for _ in range(9):
            if tutor.phase == "asking":
                break
            await pilot.press("enter")
            await until(pilot, lambda: tutor.phase not in ("doing", "waiting", "expecting"))
        app.action_act("demo-answer")
        await until(pilot, lambda: "the answer is empty; write one, or - to leave it out" in screen_text(app))
        await until(pilot, lambda: app.focused is not None and app.focused.id == "prompt-input")
        await pilot.press("1", "enter")
        await until(pilot, lambda: len(tutor.transcript) > 1 and tutor.transcript[-2].text == "1")
        assert tutor.transcript[-2].text == "1"
        await pilot.press("enter")  # opens the prompt with the beginning of an answer
        await pilot.press("minus", "enter")
        await until(pilot, lambda: tutor.phase == "to-do")
        assert [entry.text for entry in tutor.transcript if entry.kind == "answered"] == ["1", "left out"]

    in_console(scenario)


def test_free_play_and_the_way_back() -> None:
    async def scenario(pilot: Pilot[None], app: Console) -> None:
        screen = await begin(pilot, app)
        assert screen.demo_cluster is not None
        tutor = screen.demo_cluster.lesson.tutor
        await pilot.press("P")
        await until(pilot, lambda: tutor.free and "free play" in screen_text(app))
        phase = tutor.phase
        await pilot.press("enter")
        assert tutor.phase == phase
        await pilot.press("1")
        await pilot.pause()
        assert app.top.view == "overview"
        await pilot.press("D")
        await pilot.pause()
        await pilot.press("P")
        await pilot.pause()
        assert not tutor.free

    in_console(scenario)


def test_leaving_and_beginning_anew_ask_while_it_is_under_way() -> None:
    async def scenario(pilot: Pilot[None], app: Console) -> None:
        first = (await begin(pilot, app)).session.cluster
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, ConfirmScreen))
        await pilot.press("escape")
        await pilot.pause()
        assert app.cluster is first
        await pilot.press("r")
        await until(pilot, lambda: isinstance(app.screen, ConfirmScreen))
        await pilot.press("right", "enter")
        await until(pilot, lambda: app.cluster is not first and isinstance(app.cluster, SimulatedDemo))
        assert isinstance(app.cluster, SimulatedDemo) and app.cluster.seed == 3
        assert app.top.view == "demos"
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, ConfirmScreen) or not isinstance(app.cluster, SimulatedDemo))
        if isinstance(app.screen, ConfirmScreen):
            await pilot.press("right", "enter")
        await until(pilot, lambda: not isinstance(app.cluster, SimulatedDemo))

    in_console(scenario)


def test_mistakes_are_told() -> None:
    async def scenario(pilot: Pilot[None], app: Console) -> None:
        for line, problem in (
            ("demo splitt", "did you mean split"),
            ("demo split x", "not a seed"),
            ("answer 3", "nothing is asked here"),
            ("restart-demo", "no demo runs here"),
        ):
            await type_line(pilot, line)
            await pilot.pause()
            assert problem in screen_text(app)

    in_console(scenario)


def test_who_may_only_look_may_still_learn() -> None:
    """The cluster of a demo is the console's own, whatever may be done to the one that it was opened on."""

    async def scenario(pilot: Pilot[None], app: Console) -> None:
        screen = await begin(pilot, app)
        assert screen.session.cluster.writable

    in_console(scenario, writable=False)


def test_neither_stray_letters_nor_enter_on_nothing_lose_the_question() -> None:
    async def scenario(pilot: Pilot[None], app: Console) -> None:
        screen = await begin(pilot, app, "master-dies")
        assert screen.demo_cluster is not None
        tutor = screen.demo_cluster.lesson.tutor
        await pilot.press("enter")
        await until(pilot, lambda: tutor.phase == "asking")
        asked = tutor.question
        for key in ("K", "x", "h", "4", "9", "W"):
            await pilot.press(key)
            await pilot.pause()
            assert app.screen is screen and tutor.question is asked, key
        assert "answer the question first: press a to" in screen.message.text
        await pilot.press("enter")  # opens the prompt with the beginning of an answer
        await until(pilot, lambda: app.focused is not None and app.focused.id == "prompt-input")
        await pilot.press("enter")
        await until(pilot, lambda: "the answer is empty" in screen_text(app))
        await until(pilot, lambda: app.focused is not None and app.focused.id == "prompt-input")
        assert tutor.question is asked
        await pilot.press("escape")
        await until(pilot, lambda: not screen.prompt.sign)
        await pilot.press("c")
        await until(pilot, lambda: tutor.phase == "to-do")

    in_console(scenario)
