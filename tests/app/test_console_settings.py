"""The console as its operator wants it: themes, keys, aliases, remembered views, copying, exporting, command lines."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from quarterdeck.app.commands.confirmation import ConfirmScreen
from quarterdeck.app.console import Console
from quarterdeck.app.console_state import ConsoleSettings
from quarterdeck.app.export import osc_52
from quarterdeck.app.themes import THEMES
from quarterdeck.backend.clusters.cluster import ConnectionStatus
from quarterdeck.backend.core.commands import KillMember, Partition, StopMember
from tests.app.fakes.fake_cluster import FakeCluster
from tests.app.fakes.screen_text import screen_text, settle, until

FIVE = ("n1", "n2", "n3", "n4", "n5")
SIZE = (109, 30)
NAMES = {
    " ": "space",
    ",": "comma",
    "|": "vertical_line",
    "-": "minus",
    "/": "slash",
    ".": "full_stop",
    "!": "exclamation_mark",
}


class FarCluster(FakeCluster):
    """The same, somewhere else."""

    environment = "PROD"

    def connection_status(self) -> Mapping[str, ConnectionStatus]:
        return {
            label: ConnectionStatus(f"http://{label}:5701", "connected" if label != "n1" else "stale", 0)
            for label in self.labels
        }


def run(
    scenario: Callable[[Console, Pilot[None], FakeCluster], Coroutine[Any, Any, None]],
    *,
    cluster: FakeCluster | None = None,
    **how: Any,
) -> None:
    async def all_of_it() -> None:
        one = cluster or FakeCluster(FIVE)
        one.form()
        console = Console(one, **how)
        async with console.run_test(size=SIZE) as pilot:
            await settle(pilot)
            await scenario(console, pilot, one)

    asyncio.run(all_of_it())


async def type_line(pilot: Pilot[None], line: str) -> None:
    await pilot.press("colon", *(NAMES.get(letter, letter) for letter in line), "enter")
    await pilot.pause()


@pytest.mark.parametrize("no_color", [False, True])
@pytest.mark.parametrize("theme", THEMES)
def test_every_theme_paints_with_or_without_colours(
    theme: str, no_color: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if no_color:
        monkeypatch.setenv("NO_COLOR", "1")

    async def scenario(console: Console, pilot: Pilot[None], cluster: FakeCluster) -> None:
        assert console.theme == ("ansi" if no_color else theme)
        styles = [
            segment.style
            for strip in console.screen._compositor.render_strips()
            for segment in strip
            if segment.style is not None and segment.text.strip()
        ]
        shown = {(style.color, style.bgcolor) for style in styles}
        assert all(text is None or text.is_default or text != ground for text, ground in shown), shown
        if no_color:
            assert all(color is None or color.is_default for pair in shown for color in pair)

    run(scenario, settings=ConsoleSettings(theme=theme))


def test_themes_change_while_it_runs() -> None:
    async def scenario(console: Console, pilot: Pilot[None], cluster: FakeCluster) -> None:
        for theme in THEMES:
            await type_line(pilot, f"theme {theme}")
            assert console.theme == theme
            assert console.native_ansi_color == (theme == "ansi")
        await type_line(pilot, "theme drak")
        assert "there is no theme 'drak'; themes are dark" in screen_text(console)
        assert console.theme == "ansi"

    run(scenario)


def test_wanted_keys_work_and_the_old_ones_do_not() -> None:
    async def scenario(console: Console, pilot: Pilot[None], cluster: FakeCluster) -> None:
        await pilot.press("x")
        assert cluster.commands == []
        await pilot.press("f9")
        assert cluster.commands == [StopMember("n1")]
        assert "f9 stop" in screen_text(console)
        await pilot.press("question_mark")
        await pilot.pause()
        assert "f9" in screen_text(console)

    run(scenario, settings=ConsoleSettings(keys={"stop": "f9"}))


def test_an_alias_stands_for_the_beginning_of_a_line() -> None:
    async def scenario(console: Console, pilot: Pilot[None], cluster: FakeCluster) -> None:
        assert console.complete("hal") == "halves"
        await type_line(pilot, "halves")
        await type_line(pilot, "end n3")
        assert cluster.commands == [Partition((("n1", "n2"), ("n3", "n4", "n5"))), StopMember("n3")]

    run(scenario, settings=ConsoleSettings(aliases={"halves": "partition n1,n2|n3,n4,n5", "end": "stop"}))


def test_a_view_opens_as_it_was_left(tmp_path: Path) -> None:
    file = tmp_path / "console.json"

    async def first(console: Console, pilot: Pilot[None], cluster: FakeCluster) -> None:
        await type_line(pilot, "sort observer desc")
        await type_line(pilot, "hide list")
        console.home.sort_filter.change_settings(filter="n")  # type: ignore[union-attr]
        await pilot.press("R", "R")

    async def second(console: Console, pilot: Pilot[None], cluster: FakeCluster) -> None:
        sort_filter = console.home.sort_filter
        assert sort_filter is not None
        assert sort_filter.table_settings.sort == "" and not sort_filter.table_settings.reverse
        assert sort_filter.table_settings.hidden == ("list",)
        assert sort_filter.table_settings.filter == ""
        assert console.home.table.cursor_key == "n1"
        await type_line(pilot, "sort observer desc")
        assert "observer↓" in screen_text(console)
        await pilot.press("colon", "up")
        assert console.top.prompt.query_one("#prompt-input").value == "sort observer desc"  # type: ignore[attr-defined]
        await pilot.press("escape")
        sort_filter.change_settings(filter="n2")
        await type_line(pilot, "save")

    async def third(console: Console, pilot: Pilot[None], cluster: FakeCluster) -> None:
        assert list(console.home.sort_filter.keys) == ["n2"]  # type: ignore[union-attr]
        assert console.home.sort_filter.table_settings.sort == "observer"  # type: ignore[union-attr]
        await type_line(pilot, "reset")
        assert len(console.home.sort_filter.keys) == 5  # type: ignore[union-attr]

    async def fourth(console: Console, pilot: Pilot[None], cluster: FakeCluster) -> None:
        assert console.home.sort_filter.table_settings.sort == ""  # type: ignore[union-attr]

    for scenario in (first, second, third, fourth):
        run(scenario, state_file=file)


def test_a_corrupt_state_is_told(tmp_path: Path) -> None:
    file = tmp_path / "console.json"
    file.write_text("{")

    async def scenario(console: Console, pilot: Pilot[None], cluster: FakeCluster) -> None:
        assert "is set aside as" in screen_text(console)

    run(scenario, state_file=file)


def test_rows_are_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TMUX", raising=False)

    async def scenario(console: Console, pilot: Pilot[None], cluster: FakeCluster) -> None:
        written: list[str] = []
        assert console._driver is not None
        monkeypatch.setattr(console._driver, "write", written.append)
        await pilot.press("j", "y")
        assert console.clipboard.startswith("n2\tn1\tv5")
        assert osc_52(console.clipboard) in written
        assert f"1 row: copied {len(console.clipboard.encode())} bytes" in console.top.message.text
        await pilot.press("space", "k", "space", "Y")
        assert [row["observer"] for row in json.loads(console.clipboard)] == ["n1", "n2"]
        await pilot.pause()
        assert "2 rows: copied" in console.top.message.text

    run(scenario)


def test_views_and_screens_are_exported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    async def scenario(console: Console, pilot: Pilot[None], cluster: FakeCluster) -> None:
        await pilot.press("E", *"rows.csv".replace(".", "_"), "enter")
        assert "no suffix is not a format" in console.top.message.text
        await pilot.press("E", *(NAMES.get(letter, letter) for letter in "rows.csv"), "enter")
        await pilot.pause()
        assert "5 rows written to rows.csv" in console.top.message.text
        assert len((tmp_path / "rows.csv").read_text().splitlines()) == 6
        await type_line(pilot, "export rows.csv")
        assert "exists already; put ! after its name" in console.top.message.text
        await type_line(pilot, "hide list")
        await type_line(pilot, "export rows.csv !")
        assert "list" not in (tmp_path / "rows.csv").read_text()
        await type_line(pilot, "screenshot screen.txt")
        await until(pilot, (tmp_path / "screen.txt").exists)
        shown = (tmp_path / "screen.txt").read_text()
        assert "observer" in shown and "screenshot" not in shown
        await pilot.press("ctrl+s")
        await until(pilot, lambda: len(list(tmp_path.glob("*.svg"))) == 1)

    run(scenario)


def test_the_command_line_of_what_was_done_is_shown() -> None:
    async def scenario(console: Console, pilot: Pilot[None], cluster: FakeCluster) -> None:
        await pilot.press("j", "h", "dollar_sign")
        await pilot.pause()
        text = screen_text(console)
        assert "$ quarterdeck cluster fault --connect http://n2:5701 heal" in text
        assert "$ quarterdeck cluster status --connect http://n2:5701" in text
        await pilot.press("y")
        assert console.clipboard.count("\n") == 2
        await pilot.press("escape")
        assert console.screen is console.home

    run(scenario, cluster=FarCluster(FIVE))


def test_on_a_remote_cluster_the_worst_takes_its_name() -> None:
    async def scenario(console: Console, pilot: Pilot[None], cluster: FakeCluster) -> None:
        await pilot.press("x")
        await pilot.pause()
        assert isinstance(console.screen, ConfirmScreen)
        assert "$ quarterdeck cluster do --connect http://n2:5701 stop n1" in screen_text(console)
        await pilot.press("escape")
        await pilot.press("X")
        await pilot.pause()
        assert isinstance(console.screen, ConfirmScreen) and console.screen.typed == "dev"
        assert "… and 2 more" in screen_text(console)
        await pilot.press("enter")
        assert cluster.commands == []
        await pilot.press(*"dev", "enter")
        await pilot.pause()
        assert cluster.commands == [StopMember(label) for label in FIVE]

    run(scenario, cluster=FarCluster(FIVE))


def test_on_a_cluster_of_this_machine_the_same_is_asked_without_typing() -> None:
    async def scenario(console: Console, pilot: Pilot[None], cluster: FakeCluster) -> None:
        await pilot.press("space", "j", "space", "j", "space", "K")
        await pilot.pause()
        assert isinstance(console.screen, ConfirmScreen)
        assert console.top.selected_rows == 3
        assert "3 selected, esc clears" in console.top.header.text
        await pilot.press("right", "enter")
        await pilot.pause()
        assert cluster.commands == [KillMember(label) for label in FIVE[:3]]
        assert console.top.selected_rows == 0, "an action uses its selection up"
        await pilot.press("space", "escape")
        assert console.top.selected_rows == 0

    run(scenario)
