"""The replica map in the console: whose table, what is wrong, what would be lost, and a filter of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from textual.pilot import Pilot

from quarterdeck.app.console import Console
from quarterdeck.app.console_state import ConsoleSettings
from quarterdeck.app.themes import THEMES
from quarterdeck.app.views.partitions import HoldersTable, PartitionsScreen
from quarterdeck.backend.core.events import ProcessKilled
from quarterdeck.backend.core.partitions.events import Holder, TableChanged
from quarterdeck.widgets.replica_map import HUES
from tests.app.fakes.fake_cluster import FakeCluster, formed
from tests.app.fakes.long_run_cluster import LongRunCluster
from tests.app.fakes.screen_text import screen_text, settle
from tests.app.test_themes import contrast
from tests.thoroughness import long_after

FIVE = ("athens", "byzantium", "cyrene", "delphi", "euphesus")


def holding() -> FakeCluster:
    """Every partition with three replicas, but p7 with one and p9 with two."""
    cluster = formed(FIVE)
    rows = {number: [FIVE[(number + index) % 5] for index in range(3)] for number in range(271)}
    rows[7], rows[9] = ["athens", "", ""], ["byzantium", "cyrene", ""]
    for label in FIVE[:2]:
        cluster.change_table(label, 271, rows, "arranged")
    return cluster


Scenario = Callable[[Console, PartitionsScreen, Pilot[None]], Awaitable[None]]


def on_the_map(cluster: FakeCluster, scenario: Scenario, size: tuple[int, int] = (160, 50)) -> None:
    async def play() -> None:
        app = Console(cluster)
        async with app.run_test(size=size) as pilot:
            await settle(pilot)
            await pilot.press("4")
            await settle(pilot)
            screen = app.top
            assert isinstance(screen, PartitionsScreen)
            await scenario(app, screen, pilot)

    asyncio.run(play())


@pytest.mark.parametrize("size", long_after(2, [(80, 24), (160, 50), (300, 80)]))
def test_the_map_the_members_and_the_partition_under_the_cursor(size: tuple[int, int]) -> None:
    async def scenario(app: Console, screen: PartitionsScreen, pilot: Pilot[None]) -> None:
        text = screen_text(app)
        assert "table of athens (master)" in text and "∅ 2 gaps  ! 1 single" in text
        assert "own A B C D E A B A!D B" in text and "p0 v1: owner athens, backup 1 byzantium, backup 2 cyrene" in text
        assert "C cyrene" in text and "A athens" in text

    on_the_map(holding(), scenario, size)


def test_before_there_are_partitions() -> None:
    cluster = formed(FIVE)

    async def scenario(app: Console, screen: PartitionsScreen, pilot: Pilot[None]) -> None:
        assert "no partitions yet; they are arranged at the first use of data" in screen_text(app)
        await pilot.press("n", "z", "u", "down", "space", "tab", "space", "slash", "g", "enter")
        await settle(pilot)
        cluster.change_table("athens", 1, {number: ["athens", "byzantium"] for number in range(271)}, "arranged")
        await settle(pilot)
        await pilot.press("slash", "escape")
        await settle(pilot)
        assert "own AAAA" in screen_text(app) and "b1  BBBB" in screen_text(app)

    on_the_map(cluster, scenario)


def test_what_changes_is_seen() -> None:
    cluster = holding()

    async def scenario(app: Console, screen: PartitionsScreen, pilot: Pilot[None]) -> None:
        cluster.change_table("athens", 272, {0: ["delphi", "byzantium", "cyrene"]}, "migration")
        cluster.begin("athens", "m1", 9, "", "delphi", index=2)
        cluster.happen("dev", ProcessKilled("euphesus"))
        await settle(pilot)
        text = screen_text(app)
        assert "own D B C D E✕A B A!D B" in text and "b2  C D E✕A B C D ∅ A D▶" in text
        assert "▶ 1 moving" in text and "✕ 160 gone" in text and "≠ v271" in text

    on_the_map(cluster, scenario)


def test_whose_table() -> None:
    cluster = holding()
    cluster.change_table("athens", 272, {0: ["delphi", "byzantium", "cyrene"]}, "migration")

    async def scenario(app: Console, screen: PartitionsScreen, pilot: Pilot[None]) -> None:
        await pilot.press("u", "u")
        await settle(pilot)
        text = screen_text(app)
        assert "table of byzantium (not its master's)" in text and "≠ not the table of athens" in text
        assert (
            "own A≠B C D E" in text and "≠ 1 differs" in text and "≠ athens has v1: delphi, byzantium, cyrene" in text
        )
        await pilot.press("u")
        await settle(pilot)
        assert "table of athens (master)" in screen_text(app)
        await pilot.press("colon", *"table-of cyrene", "enter")
        await settle(pilot)
        assert "cyrene has no table" in screen_text(app)

    on_the_map(cluster, scenario)


def test_filters_of_the_map() -> None:
    async def scenario(app: Console, screen: PartitionsScreen, pilot: Pilot[None]) -> None:
        await pilot.press("slash", *"gaps", "enter")
        await settle(pilot)
        assert "/gaps: 2 of 271 in sight" in screen_text(app) and screen.map.partition == 7
        for filter_text, count in (("single", 1), ("p12", 1), ("member cyrene", 163), ("moving", 0)):
            screen.filter_by(filter_text)
            assert len(list(screen.rows())) == count and screen.filter_text == filter_text
        screen.filter_by("nonsense")
        await settle(pilot)
        assert "✕ the map cannot be filtered by 'nonsense'; use gaps, gone" in screen_text(app)
        await pilot.press("slash", "escape")
        await settle(pilot)
        assert screen.filter_text == "" and len(list(screen.rows())) == 271

    on_the_map(holding(), scenario)


def test_what_would_be_lost() -> None:
    async def scenario(app: Console, screen: PartitionsScreen, pilot: Pilot[None]) -> None:
        await pilot.press("space")  # on p0, whose owner is athens
        await settle(pilot)
        text = screen_text(app)
        assert "if now died  athens" in text and "✕ lost  1 partition (p7): no other member holds a replica" in text
        assert screen.targets() == ("athens",)
        await pilot.press("tab", "j", "space")
        await settle(pilot)
        text = screen_text(app)
        assert "if now died  athens, byzantium" in text and "! one copy" in text and "→ taken over" in text
        await pilot.press("escape")
        await settle(pilot)
        assert "if now died" not in screen_text(app)

    on_the_map(holding(), scenario)


def test_from_trouble_to_trouble() -> None:
    async def scenario(app: Console, screen: PartitionsScreen, pilot: Pilot[None]) -> None:
        found = []
        for key in ("n", "n", "n", "N", "N"):
            await pilot.press(key)
            found.append((screen.map.partition, screen.map.index))
        assert found == [(7, 0), (9, 2), (7, 0), (9, 2), (7, 0)]
        await pilot.press("colon", *"show-partition 42", "enter")
        await settle(pilot)
        assert screen.map.partition == 42 and "p42 v1:" in screen_text(app)
        await pilot.press("colon", *"show-partition 999", "enter")
        await settle(pilot)
        assert "use a number below 271" in screen_text(app)

    on_the_map(holding(), scenario)


def test_zooms_by_key_and_by_word() -> None:
    async def scenario(app: Console, screen: PartitionsScreen, pilot: Pilot[None]) -> None:
        await pilot.press("z")
        await settle(pilot)
        assert "own ABCDEAB!DB" in screen_text(app)
        await pilot.press("z")
        await settle(pilot)
        assert "0/1 ▀▀▀▀▀▀▀∅" in screen_text(app)
        await pilot.press("colon", *"zoom wide", "enter")
        await settle(pilot)
        assert screen.map.zoom == "wide"

    on_the_map(holding(), scenario)


def test_actions_are_for_the_holder_under_the_cursor_and_rows_can_be_had() -> None:
    cluster = holding()

    async def scenario(app: Console, screen: PartitionsScreen, pilot: Pilot[None]) -> None:
        await pilot.press("right", "down")
        assert screen.member_under_cursor == "cyrene"
        assert screen.copied_rows() == [
            {
                **{"partition": "1", "version": "1", "owner": "byzantium", "owner state": "held"},
                **{"backup 1": "cyrene", "backup 1 state": "held", "backup 2": "delphi", "backup 2 state": "held"},
            }
        ]
        await pilot.press("i")
        await settle(pilot)
        assert "cyrene  as it sees its cluster" in screen_text(app)
        await pilot.press("escape", "x")
        await settle(pilot)
        assert [str(command) for command in cluster.commands] == ["StopMember(member='cyrene')"]
        await pilot.press("tab")
        await settle(pilot)
        assert screen.copied_rows()[0]["member"] == "cyrene"

    on_the_map(cluster, scenario)


def test_names_that_look_like_markup() -> None:
    cluster = formed(("[b]n1[/]", "[/]x"))
    cluster.change_table("[b]n1[/]", 1, {0: ["[b]n1[/]", "[/]x"]})

    async def scenario(app: Console, screen: PartitionsScreen, pilot: Pilot[None]) -> None:
        assert "owner [b]n1[/], backup 1 [/]x" in screen_text(app)

    on_the_map(cluster, scenario)


def test_a_great_table() -> None:
    cluster = formed(FIVE)
    holders = tuple(Holder(cluster.address(label), f"{label}-life-1") for label in FIVE)
    rows = tuple((number, 1, *((number + index) % 5 for index in range(5))) for number in range(50_021))
    cluster.happen("athens", TableChanged(50_021, "d", 50_021, holders, rows, "athens-life-1", "arranged"))

    async def scenario(app: Console, screen: PartitionsScreen, pilot: Pilot[None]) -> None:
        for _ in range(6):
            screen.paint()
        await settle(pilot)
        assert "✓ every replica is where it belongs" in screen_text(app)
        await pilot.press("G")
        await settle(pilot)
        assert "p50020 v1:" in screen_text(app)

    on_the_map(cluster, scenario)


@pytest.mark.parametrize("theme", THEMES)
async def test_the_letter_of_a_member_is_readable_under_the_cursor(theme: str) -> None:
    app = Console(LongRunCluster(), settings=ConsoleSettings(theme=theme))
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press("4", "tab")
        await settle(pilot)
        holders = app.top.table
        assert isinstance(holders, HoldersTable) and holders.has_focus
        for hue in range(HUES):
            style = holders.cell_style(f"hue{hue}", ("cursor",))
            assert style.color is not None and style.bgcolor is not None and not style.reverse
            assert contrast(style.color.get_truecolor().hex, style.bgcolor.get_truecolor().hex) >= 4.5


def test_without_any_colour_there_are_no_halves(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        app = Console(LongRunCluster(), settings=ConsoleSettings(theme="ansi"))
        async with app.run_test(size=(100, 30)) as pilot:
            await pilot.press("4", "z", "z")
            await settle(pilot)
            assert isinstance(app.top, PartitionsScreen) and app.top.map.zoom == "wide"
            assert "▀" not in screen_text(app)

    monkeypatch.setenv("NO_COLOR", "1")
    asyncio.run(scenario())
