"""What the console does before its first picture: little, and nothing twice."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from rich.console import RenderableType
from textual.css.stylesheet import Stylesheet
from textual.dom import DOMNode
from textual.screen import Screen

from quarterdeck.app.console import Console
from quarterdeck.app.views.overview.panes import PaneArrangement
from quarterdeck.app.views.overview.screen import OverviewScreen
from quarterdeck.backend.core.events import Record
from tests.app.fakes.fake_cluster import FakeCluster
from tests.app.fakes.screen_text import settle, until
from tests.thoroughness import long_after

pytestmark = pytest.mark.usefixtures("drawn_at_every_step")

FIVE = ("athens", "byzantium", "cyrene", "delphi", "euphesus")


@pytest.mark.parametrize("size", long_after(3, [(40, 10), (80, 24), (120, 36), (160, 50), (300, 80)]))
def test_the_panes_are_arranged_once(size: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """What is arranged again is laid out and painted again."""
    found: list[PaneArrangement | None] = []
    arrange = OverviewScreen._arrange

    def watched(view: OverviewScreen) -> None:
        arrange(view)
        found.append(view._arranged)

    monkeypatch.setattr(OverviewScreen, "_arrange", watched)

    async def run() -> None:
        console = Console(FakeCluster(FIVE))
        async with console.run_test(size=size) as pilot:
            await settle(pilot)
            assert console.home.overview.size.height  # the room is known by now

    asyncio.run(run())
    assert len(set(found)) == 1
    assert len(found) > 1


def test_styles_are_looked_up_for_what_is_painted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table has a style for every tone and uses few of them; all of each widget were half of the time to the first picture."""
    looked_up = 0
    apply = Stylesheet.apply

    def counted(*arguments: object, **options: object) -> None:
        nonlocal looked_up
        looked_up += 1
        apply(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Stylesheet, "apply", counted)

    async def run() -> None:
        async with Console(FakeCluster(FIVE)).run_test(size=(160, 50)):
            pass

    asyncio.run(run())
    assert looked_up < 110, (
        "180 when everything is styled again as the screen learns its size, 160 with a screen below it"
    )


async def test_a_view_is_styled_anew_when_it_comes_back_only_if_the_theme_has_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """To look up all styles of a view took longer than to paint it."""
    styled: list[DOMNode] = []
    apply = Stylesheet.apply

    def noted(sheet: Stylesheet, node: DOMNode, **options: Any) -> None:
        styled.append(node)
        apply(sheet, node, **options)

    console = Console(FakeCluster(FIVE))
    async with console.run_test(size=(160, 50)) as pilot:
        for theme, again in (("", False), ("light", True), ("", False)):
            await pilot.press("2")
            await settle(pilot)
            if theme:
                console.do_theme(theme)
                await settle(pilot)
            styled.clear()
            with monkeypatch.context() as watched:
                watched.setattr(Stylesheet, "apply", noted)
                await pilot.press("escape")
                await settle(pilot)
            assert (console.home.header in styled) is again, theme


def test_members_start_after_the_first_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their modules are read when the cluster is looked at first; nobody waits for that before there is anything to see."""
    done: list[str] = []
    display = Console._display

    def displayed(console: Console, screen: Screen[object], renderable: RenderableType | None) -> None:
        if screen is console.home:
            done.append("painted")
        display(console, screen, renderable)

    class Watched(FakeCluster):
        def drain(self) -> list[Record]:
            done.append("looked at")
            return super().drain()

    monkeypatch.setattr(Console, "_display", displayed)

    async def run() -> None:
        async with Console(Watched(FIVE)).run_test(size=(160, 50)) as pilot:
            await until(pilot, lambda: "looked at" in done)

    asyncio.run(run())
    assert done[0] == "painted"
