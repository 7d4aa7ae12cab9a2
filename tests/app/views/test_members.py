"""The members in the console."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from textual.pilot import Pilot

from quarterdeck.app.console import Console
from quarterdeck.app.views.members import MembersScreen
from quarterdeck.backend.core.events import ProcessKilled
from quarterdeck.backend.core.membership.events import HeartbeatLate
from quarterdeck.backend.core.properties import SECOND_US
from tests.app.fakes.fake_cluster import FakeCluster
from tests.app.fakes.screen_text import screen_text, settle
from tests.thoroughness import long_after

FIVE = ("n1", "n2", "n3", "n4", "n10")

Scenario = Callable[[Console, MembersScreen, Pilot[None]], Awaitable[None]]


def formed() -> FakeCluster:
    cluster = FakeCluster(FIVE)
    cluster.form()
    cluster.change_table("n1", 4, {0: ["n2", "n1"], 1: ["n2", "n3"], 2: ["n3", "n2"]})
    cluster.happen("n1", HeartbeatLate(cluster.address("n4"), "n4-life-1", 31 * SECOND_US, 60 * SECOND_US, False))
    cluster.happen("n2", HeartbeatLate(cluster.address("n3"), "n3-life-1", 50 * SECOND_US, 60 * SECOND_US, False))
    cluster.happen("dev", ProcessKilled("n10"))
    return cluster


def on_the_board(cluster: FakeCluster, scenario: Scenario, size: tuple[int, int] = (160, 50)) -> None:
    async def play() -> None:
        app = Console(cluster)
        async with app.run_test(size=size) as pilot:
            await settle(pilot)
            await pilot.press("2")
            await settle(pilot)
            screen = app.top
            assert isinstance(screen, MembersScreen)
            await scenario(app, screen, pilot)

    asyncio.run(play())


@pytest.mark.parametrize("size", long_after(2, [(80, 24), (160, 50), (300, 80)]))
def test_who_is_who_and_who_is_close_to_being_suspected(size: tuple[int, int]) -> None:
    async def scenario(app: Console, screen: MembersScreen, pilot: Pilot[None]) -> None:
        text = screen_text(app)
        assert "5 members  ● 4 running  ✕ 1 killed  ◔ 2 late, the next suspicion in 9 s" in text
        assert "▲ master" in text and "△ next" in text and "◔ silent 31 s, suspected in 28 s" in text
        assert (
            "n1: ▲ master; every heartbeat of it that is waited for came in time; suspects no member" in text
            or size[0] == 80
        )
        await pilot.press("j", "j", "j")
        await settle(pilot)
        assert "n4: ● member; silent 31 s to n1, suspected in 28 s" in screen_text(app)

    on_the_board(formed(), scenario, size)


@pytest.mark.parametrize(
    ("column", "order"),
    [
        ("heartbeat", ["n3", "n4", "n1", "n2", "n10"]),
        ("owned", ["n3", "n2", "n1", "n4", "n10"]),
        ("member", ["n1", "n2", "n3", "n4", "n10"]),
        ("uuid", ["n1", "n10", "n2", "n3", "n4"]),
    ],
)
def test_columns_are_sorted_by_what_they_mean(column: str, order: list[str]) -> None:
    async def scenario(app: Console, screen: MembersScreen, pilot: Pilot[None]) -> None:
        await pilot.press("colon", *"sort ", *column, "enter")
        await settle(pilot)
        assert list(screen.members.model.keys) == order

    on_the_board(formed(), scenario)


def test_looking_into_a_member_and_back() -> None:
    async def scenario(app: Console, screen: MembersScreen, pilot: Pilot[None]) -> None:
        await pilot.press("j", "enter")
        await settle(pilot)
        text = screen_text(app)
        assert "n2  as it sees its cluster" in text and "waits for    ◔ n3, silent for 50 s" in text
        assert "links        ✓ up, to 3 running members" in text and "lately" in text
        await pilot.press("escape")
        await settle(pilot)
        assert screen.members.cursor_key == "n2"

    on_the_board(formed(), scenario)


def test_a_member_of_which_nothing_was_heard() -> None:
    async def scenario(app: Console, screen: MembersScreen, pilot: Pilot[None]) -> None:
        assert "not up" in screen_text(app)
        for column in (*screen._model.columns,):
            assert screen.members.model.cells("n1", 0, 1)
            screen._model.rank("n9", column.title)

    on_the_board(FakeCluster(("n9", "n1")), scenario)
