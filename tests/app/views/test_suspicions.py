"""The view of suspicions: the matrix, the reasons, and what the master would decide."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from textual.pilot import Pilot

from quarterdeck.app.console import Console
from quarterdeck.app.views.suspicions import SuspicionsScreen
from quarterdeck.backend.core.membership.events import DisconnectionReported, DisconnectionResolved
from tests.app.fakes.fake_cluster import FakeCluster, formed
from tests.app.fakes.screen_text import screen_text

FIVE = ("athens", "byzantium", "cyrene", "delos", "ephesus")


def played(cluster: FakeCluster, steps: Callable[[Console, Pilot[None]], Awaitable[None]], height: int = 40) -> None:
    async def scenario() -> None:
        console = Console(cluster)
        async with console.run_test(size=(110, height)) as pilot:
            await pilot.press("3")
            await shown(console, pilot)
            await steps(console, pilot)

    asyncio.run(scenario())


async def shown(console: Console, pilot: Pilot[None]) -> str:
    """What is on the screen once everything that happened has been taken in."""
    console._tick()
    await pilot.pause()
    return screen_text(console)


def suspicious(cluster: FakeCluster) -> None:
    cluster.suspect("byzantium", "cyrene")
    cluster.suspect("cyrene", "byzantium", "no connection (10.0.0.2:5701 refused)")
    cluster.happen("athens", DisconnectionReported(cluster.address("byzantium"), (cluster.address("cyrene"),)))


def test_at_rest_nobody_suspects_anybody() -> None:
    async def steps(console: Console, pilot: Pilot[None]) -> None:
        text = screen_text(console)
        assert "no member suspects another" in text and "there is nothing to decide" in text
        assert isinstance(console.top, SuspicionsScreen) and console.top.targets() == ("athens",)

    played(formed(FIVE), steps)


def test_reasons_reports_and_the_decision_are_spelt_out() -> None:
    cluster = formed(FIVE)

    async def steps(console: Console, pilot: Pilot[None]) -> None:
        suspicious(cluster)
        await pilot.press("j")
        text = await shown(console, pilot)
        assert "2 members suspect 2 members: 2 suspicions, 1 pair of them mutual" in text
        assert "byzantium suspects ⇄ cyrene for 0 s (no heartbeat for 4 s)" in text
        assert "byzantium cannot reach cyrene" in text
        assert "keeps athens, byzantium, delos, ephesus; removes cyrene" in text
        assert "byzantium could go instead" in text
        await pilot.press("j")
        assert "no connection (byzantium refused)" in await shown(console, pilot)
        cluster.happen(
            "athens",
            DisconnectionResolved(
                tuple(map(cluster.address, ("athens", "byzantium", "delos", "ephesus"))),
                (cluster.address("cyrene"),), True, "because",
            ),
        )  # fmt: skip
        text = await shown(console, pilot)
        assert "there is nothing to decide" in text and "removed cyrene" in text

    played(cluster, steps)


def test_the_decision_is_reckoned_again_only_when_reports_change() -> None:
    cluster = formed(FIVE)

    async def steps(console: Console, pilot: Pilot[None]) -> None:
        suspicious(cluster)
        await shown(console, pilot)
        view = console.top
        assert isinstance(view, SuspicionsScreen)
        before = view._decision
        assert before is not None
        cluster.suspect("delos", "ephesus")
        await shown(console, pilot)
        assert view._decision is before
        cluster.happen("athens", DisconnectionReported(cluster.address("delos"), (cluster.address("ephesus"),)))
        await shown(console, pilot)
        assert view._decision is not before

    played(cluster, steps)


def test_only_those_with_suspicions_can_be_shown() -> None:
    cluster = formed(FIVE)

    async def steps(console: Console, pilot: Pilot[None]) -> None:
        suspicious(cluster)
        await shown(console, pilot)
        table = console.top.table
        assert table is not None and tuple(table.model.keys) == FIVE
        await pilot.press("z")
        assert tuple(table.model.keys) == ("byzantium", "cyrene")
        console.answered(":", "everybody on")
        await pilot.pause()
        assert tuple(table.model.keys) == FIVE
        console.answered(":", "everybody maybe")
        await pilot.pause()
        assert "there is no setting 'maybe'" in screen_text(console)

    played(cluster, steps)


def test_without_a_master_nobody_decides() -> None:
    async def steps(console: Console, pilot: Pilot[None]) -> None:
        assert "so nothing is decided" in screen_text(console)

    played(FakeCluster(FIVE), steps)


def test_it_works_in_a_small_terminal_and_with_many_members() -> None:
    cluster = formed(tuple(f"m{place}" for place in range(40)))
    cluster.suspect("m7", "m9")

    async def steps(console: Console, pilot: Pilot[None]) -> None:
        await pilot.resize_terminal(80, 24)
        text = await shown(console, pilot)
        assert "1 suspicion  (only" in text
        assert "m7 suspects m9" in text

    played(cluster, steps, height=24)
