"""The sheet of facts by itself: wrapping, scrolling, and painting only what changed."""

from __future__ import annotations

import asyncio

import pytest
from textual.app import App, ComposeResult

from quarterdeck.backend.picture.text.fact import Fact
from quarterdeck.widgets.fact_sheet import FactSheet
from tests.app.fakes.screen_text import screen_text

CSS = "\n".join(
    f".fact-sheet--{name} {{ text-style: none; }}"
    for name in ("heading", "plain", "good", "strong", "warning", "bad", "faint")
)


class Stage(App[None]):
    CSS = CSS

    def __init__(self) -> None:
        super().__init__()
        self.sheet = FactSheet()

    def compose(self) -> ComposeResult:
        yield self.sheet


def test_a_long_heading_stands_above_its_paragraph_and_is_never_cut() -> None:
    async def scenario() -> None:
        stage = Stage()
        async with stage.run_test(size=(30, 12)) as pilot:
            stage.sheet.show([Fact("is it one cluster", "no"), Fact("", "see there"), Fact("twelve cells", "yes")])
            await pilot.pause()
            assert screen_text(stage).splitlines()[:4] == [
                " is it one cluster",
                "              no",
                "              see there",
                " twelve cells yes",
            ]

    asyncio.run(scenario())


def test_paragraphs_wrap_under_their_own_and_lists_stand_as_they_are() -> None:
    async def scenario() -> None:
        stage = Stage()
        async with stage.run_test(size=(30, 12)) as pilot:
            stage.sheet.show(
                [
                    Fact("suspects", "多播 and [b]others[/] for long"),
                    Fact("", "  [x] verbatim, however long it may be", verbatim=True),
                ]
            )
            await pilot.pause()
            assert screen_text(stage).splitlines()[:4] == [
                " suspects     多播 and",
                "              [b]others[/] for",
                "              long",
                "   [x] verbatim, however long…",
            ]
            await pilot.resize_terminal(60, 12)
            await pilot.pause()
            assert screen_text(stage).splitlines()[0] == " suspects     多播 and [b]others[/] for long"

    asyncio.run(scenario())


def test_more_than_fits_scrolls_and_only_changes_are_painted(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        stage = Stage()
        async with stage.run_test(size=(40, 10)) as pilot:
            facts = [Fact("", f"line {place}", verbatim=True) for place in range(30)]
            stage.sheet.show(facts)
            await pilot.pause()
            stage.sheet.focus()
            await pilot.press("G")
            await pilot.wait_for_scheduled_animations()
            assert "line 29" in screen_text(stage) and "line 0" not in screen_text(stage)
            await pilot.press("g")
            await pilot.wait_for_scheduled_animations()
            assert "line 0" in screen_text(stage)
            painted: list[int] = []
            render = stage.sheet.render_line
            monkeypatch.setattr(stage.sheet, "render_line", lambda y: painted.append(y) or render(y))
            stage.sheet.show(list(facts))
            await pilot.pause()
            assert painted == []
            facts[3] = facts[20] = Fact("", "another line", verbatim=True)
            stage.sheet.show(facts)
            await pilot.pause()
            assert painted == [3], "line 20 is out of sight"
            assert "another line" in screen_text(stage)

    asyncio.run(scenario())


def test_while_it_overflows_other_numbers_of_lines_leave_the_screen_as_it_is_laid_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Laying out the screen paints all of it: a detail that did so at every step of the cursor kept keys waiting."""

    async def scenario() -> None:
        stage = Stage()
        async with stage.run_test(size=(40, 10)) as pilot:
            facts = [Fact("", f"line {place}", verbatim=True) for place in range(30)]
            stage.sheet.show(facts)
            await pilot.pause()
            laid_out: list[int] = []
            reflow = stage.screen._compositor.reflow
            monkeypatch.setattr(
                stage.screen._compositor, "reflow", lambda *arguments: laid_out.append(1) or reflow(*arguments)
            )
            stage.sheet.show([*facts, Fact("", "line 30", verbatim=True)])
            await pilot.pause()
            stage.sheet.scroll_end(animate=False)
            await pilot.pause()
            assert "line 30" in screen_text(stage)
            stage.sheet.show(facts[:20])
            await pilot.pause()
            assert "line 19" in screen_text(stage), "it ends with its last line still"
            assert not laid_out
            stage.sheet.show(facts[:5])
            await pilot.pause()
            assert laid_out, "the scroll bar goes"
            assert "line 0" in screen_text(stage)

    asyncio.run(scenario())
