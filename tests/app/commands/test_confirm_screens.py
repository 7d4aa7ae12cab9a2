"""The question before the worst: nothing happens until the cluster's name is typed."""

from __future__ import annotations

import asyncio

import pytest
from textual.app import App
from textual.screen import ModalScreen
from textual.widgets import Button

from quarterdeck.app.commands.confirmation import ConfirmScreen
from tests.app.fakes.screen_text import screen_text


@pytest.mark.parametrize(
    ("keys", "answer"),
    [
        (["enter"], None),
        ([*"orders", "enter"], True),
        ([*"Orders", "enter"], None),
        ([*"order", "enter"], None),
        ([*"orders", "escape"], False),
        (["escape"], False),
        (["tab", "enter"], False),
        ([*"orders", "tab", "enter"], False),
        ([*"orders", "tab", "tab", "enter"], True),
        ([*"order", "tab", "tab", "enter"], None),
        ([*"q", "enter"], None),
    ],
)
def test_only_the_name_lets_it_happen(keys: list[str], answer: bool | None) -> None:
    answers: list[bool | None] = []

    async def scenario() -> None:
        app: App[None] = App()
        async with app.run_test(size=(80, 24)) as pilot:
            app.push_screen(ConfirmScreen("Stop all?", "Nothing remains.", "Stop", typed="orders"), answers.append)
            await pilot.pause()
            await pilot.press(*keys)
            await pilot.pause()

    asyncio.run(scenario())
    assert answers == ([] if answer is None else [answer])


async def test_what_it_says_is_never_markup() -> None:
    app: App[None] = App()
    async with app.run_test(size=(80, 24)) as pilot:
        lines = ["do '[b]'", "b", "c", "d"]
        screen = ConfirmScreen("Stop [b]a[/]?", "[/x] ends", "Stop", lines, typed="[red]prod\x1b[2J")
        app.push_screen(screen)
        await pilot.pause()
        text = screen_text(app)
        assert "Stop [b]a[/]?" in text
        assert "[red]prod�[2J" in text
        assert "$ do '[b]'" in text
        assert "… and 1 more" in text
        assert screen.query_one("#confirm", Button).disabled


@pytest.mark.parametrize("answer", [True, False])
async def test_two_answers_at_once_answer_once_and_take_only_the_dialog_away(answer: bool) -> None:
    """A second key that was pressed before the dialog went, and a click on Cancel before Escape."""
    answers: list[bool | None] = []
    app: App[None] = App()
    async with app.run_test(size=(80, 24)) as pilot:
        below: ModalScreen[None] = ModalScreen()
        app.push_screen(below)
        screen = ConfirmScreen("Stop a?", "It ends.", "Stop")
        app.push_screen(screen, answers.append)
        await pilot.pause()
        if answer:
            screen.dismiss(True)
        else:
            screen.query_one("#cancel", Button).press()
        screen.dismiss(answer)
        await pilot.pause()
        assert app.screen is below
    assert answers == [answer]
