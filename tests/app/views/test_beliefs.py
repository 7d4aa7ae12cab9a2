"""The first view: a disagreement is explained for all, and for the observer under the cursor."""

from __future__ import annotations

import asyncio

from quarterdeck.app.console import Console
from tests.app.fakes.fake_cluster import FakeCluster
from tests.app.fakes.screen_text import screen_text, settle

FIVE = ("n1", "n2", "n3", "n4", "n5")


def test_who_differs_and_how_is_said() -> None:
    async def scenario() -> None:
        cluster = FakeCluster(FIVE)
        cluster.form()
        cluster.split(FIVE[:3], FIVE[3:])
        cluster.install("n3", 8, ["n1", "n3"])
        app = Console(cluster)
        async with app.run_test(size=(160, 40)) as pilot:
            await settle(pilot)
            text = screen_text(app)
            assert (
                "2 lineages: v7 n1,n2,n3 (master n1) held by n1,n2; n3 ahead at v8: without n2 / v6 n4,n5 (master n4)"
                in text
            )
            assert "most hold" not in text, "n1 under the cursor holds what most hold"
            await pilot.press("j", "j")
            await settle(pilot)
            assert "n3 holds v8 where most hold v7: without n2" in screen_text(app)
            await pilot.press("j")
            await settle(pilot)
            assert "n4 holds v6 of another lineage than most (master n4): without n1,n2,n3, with n4,n5" in screen_text(
                app
            )

    asyncio.run(scenario())
