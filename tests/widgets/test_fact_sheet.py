"""The sheet of facts by itself: wrapping, scrolling, and painting only what changed."""

from __future__ import annotations

import pytest
from textual.app import App, ComposeResult
from textual.geometry import Region

from quarterdeck.backend.picture.text.fact import Fact
from quarterdeck.widgets.fact_sheet import FactSheet
from tests.app.fakes.screen_text import screen_text, until, until_shown

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


async def test_a_long_heading_stands_above_its_paragraph_and_is_never_cut() -> None:
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


async def test_paragraphs_wrap_under_their_own_and_lists_stand_as_they_are() -> None:
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


async def test_more_than_fits_scrolls() -> None:
    stage = Stage()
    async with stage.run_test(size=(40, 10)) as pilot:
        stage.animation_level = "none"
        stage.sheet.show([Fact("", f"line {place}", verbatim=True) for place in range(30)])
        stage.sheet.focus()
        await until(pilot, lambda: stage.sheet.has_focus and stage.sheet.show_vertical_scrollbar)
        await pilot.press("G")
        shown = await until_shown(pilot, lambda text: "line 29" in text)
        assert "line 0" not in shown
        await pilot.press("g")
        shown = await until_shown(pilot, lambda text: "line 0" in text)
        assert "line 29" not in shown


async def test_only_lines_in_sight_that_changed_are_asked_for_and_painted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is awaited between a change and its paint, so that no timer of the screen has a part in it."""

    stage = Stage()
    async with stage.run_test(size=(40, 10)) as pilot:
        facts = [Fact("", f"line {place}", verbatim=True) for place in range(30)]
        stage.sheet.show(facts)
        await until(pilot, lambda: stage.sheet.show_vertical_scrollbar)
        await until_shown(pilot, lambda text: "line 9" in text)
        asked: list[Region] = []
        painted: list[int] = []
        refresh, render = stage.sheet.refresh, stage.sheet.render_line
        monkeypatch.setattr(stage.sheet, "refresh", lambda *rows: asked.extend(rows or [None]) or refresh(*rows))
        monkeypatch.setattr(stage.sheet, "render_line", lambda y: painted.append(y) or render(y))
        stage.sheet.show(list(facts))
        assert "line 3" in screen_text(stage)
        assert (asked, painted) == ([], [])
        facts[3] = facts[20] = Fact("", "another line", verbatim=True)
        stage.sheet.show(facts)
        assert [row.split()[:2] for row in screen_text(stage).splitlines()[2:5]] == [
            ["line", "2"],
            ["another", "line"],
            ["line", "4"],
        ]
        assert painted == [3], "line 20 is out of sight"
        width = stage.sheet.scrollable_content_region.width
        assert asked == [Region(0, 3, width, 1)]
        stage.sheet.scroll_to(y=15, animate=False, immediate=True)
        assert "line 24" in screen_text(stage)
        asked.clear()
        painted.clear()
        facts[3] = facts[21] = Fact("", "a third line", verbatim=True)
        stage.sheet.show(facts)
        assert "a third line" in screen_text(stage)
        assert (asked, painted) == ([Region(0, 6, width, 1)], [6]), "line 3 is out of sight"


async def test_while_it_overflows_other_numbers_of_lines_leave_the_screen_as_it_is_laid_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Laying out the screen paints all of it: a detail that did so at every step of the cursor kept keys waiting."""

    stage = Stage()
    async with stage.run_test(size=(40, 10)) as pilot:
        facts = [Fact("", f"line {place}", verbatim=True) for place in range(30)]
        laid_out: list[int] = []
        reflow = stage.screen._compositor.reflow
        monkeypatch.setattr(
            stage.screen._compositor, "reflow", lambda *arguments: laid_out.append(1) or reflow(*arguments)
        )
        stage.sheet.show(facts)
        await until(pilot, lambda: stage.sheet.show_vertical_scrollbar)
        while laid_out:  # the scroll bar that came has the screen laid out once more
            laid_out.clear()
            await pilot.pause()
        stage.sheet.show([*facts, Fact("", "line 30", verbatim=True)])
        await pilot.pause()
        stage.sheet.scroll_end(animate=False)
        await until_shown(pilot, lambda text: "line 30" in text)
        stage.sheet.show(facts[:20])
        await until_shown(pilot, lambda text: "line 19" in text)  # it ends with its last line still
        assert not laid_out
        stage.sheet.show(facts[:5])
        await until(pilot, lambda: laid_out)  # the scroll bar goes
        assert "line 0" in screen_text(stage)
