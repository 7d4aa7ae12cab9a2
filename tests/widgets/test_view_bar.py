"""The bar of views is never cut in the middle, and a click opens the view."""

from __future__ import annotations

from typing import ClassVar

import pytest
from textual.app import App, ComposeResult
from textual.binding import BindingType

from quarterdeck.widgets.hint_line import BarView, ViewBar
from tests.app.fakes.screen_text import screen_text

VIEWS = (BarView("1", "1", "beliefs", "beliefs", "list"), BarView("D", "D", "demos", "demos", "demo"))


class Barred(App[None]):
    CSS = "ViewBar { height: 1; }"
    BINDINGS: ClassVar[list[BindingType]] = [("1", "note('1')"), ("D", "note('D')")]

    def __init__(self) -> None:
        super().__init__()
        self.noted: list[str] = []

    def compose(self) -> ComposeResult:
        yield ViewBar(VIEWS, "demos")

    def action_note(self, what: str) -> None:
        self.noted.append(what)


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (30, " 1 beliefs  D demos"),
        (18, " 1 beliefs D demos"),
        (16, " 1 list  D demo"),
        (14, " 1 list D demo"),
        (12, " 1  D demo"),
        (5, " 1 D"),
    ],
)
async def test_names_become_shorter_before_anything_is_cut(width: int, shown: str) -> None:
    app = Barred()
    async with app.run_test(size=(width, 2)) as pilot:
        await pilot.pause()
        assert screen_text(app).splitlines()[0] == shown
        await pilot.click(ViewBar, offset=(1, 0))
        await pilot.click(ViewBar, offset=(len(shown) - 1, 0))
        assert app.noted == ["1", "D"]
