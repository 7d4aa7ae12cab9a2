"""The line of hints: painted from left to right, and clicked."""

from __future__ import annotations

from typing import ClassVar

from textual.app import App, ComposeResult
from textual.binding import BindingType

from quarterdeck.widgets.hint_line import Hint, HintLine
from tests.app.fakes.screen_text import screen_text

HINTS = (Hint("x", "stop", "x"), Hint("^k", "kill", "ctrl+k"), Hint("[b]", "[/x]", "b"))


class Hinting(App[None]):
    CSS = "HintLine { height: 1; }"
    BINDINGS: ClassVar[list[BindingType]] = [("x", "note('stop')"), ("ctrl+k", "note('kill')"), ("b", "note('b')")]

    def __init__(self) -> None:
        super().__init__()
        self.noted: list[str] = []
        self.line = HintLine()

    def compose(self) -> ComposeResult:
        yield self.line

    def action_note(self, what: str) -> None:
        self.noted.append(what)


async def test_hints_are_shown_whole_or_not_at_all_and_some_in_any_case() -> None:
    app = Hinting()
    async with app.run_test(size=(20, 2)) as pilot:
        for kept, shown in ((), "x stop ^k kill"), ((Hint("?", "keys", "x"),), "x stop ? keys"):
            app.line.show(HINTS, kept)
            await pilot.pause()
            assert screen_text(app).splitlines()[0] == shown
        assert app.line.text == "x stop ^k kill [b] [/x] ? keys"


async def test_a_click_does_what_the_key_does() -> None:
    app = Hinting()
    async with app.run_test(size=(40, 2)) as pilot:
        app.line.show(HINTS)
        for place in (0, 6, 7, 15, 30):
            await pilot.click(HintLine, offset=(place, 0))
        assert app.noted == ["stop", "stop", "kill", "b"]
