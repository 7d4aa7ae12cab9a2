"""Beliefs: a disagreement is explained for all, and for the observer under the cursor."""

from __future__ import annotations

from quarterdeck.app.console import Console
from quarterdeck.backend.core.membership import events
from tests.app.fakes.fake_cluster import FIVE, formed
from tests.app.fakes.screen_text import screen_text, settle


async def test_who_differs_and_how_is_said() -> None:
    cluster = formed(FIVE)
    cluster.split(FIVE[:3], FIVE[3:])
    cluster.install("n3", 8, ["n1", "n3"])
    app = Console(cluster)
    async with app.run_test(size=(160, 40)) as pilot:
        await settle(pilot)
        text = screen_text(app)
        assert (
            "2 lineages, one for each mastership: "
            "v7 n1,n2,n3 (master n1) held by n1,n2; n3 ahead at v8: without n2 / v6 n4,n5 (master n4)" in text
        )
        assert "most hold" not in text, "n1 under the cursor holds what most hold"
        await pilot.press("j", "j")
        await settle(pilot)
        assert "n3 holds v8 where n1, n2 hold v7: without n2" in screen_text(app)
        await pilot.press("j")
        await settle(pilot)
        said = "n4 holds v6 with master n4 where n1, n2 hold v7 with master n1: without n1,n2,n3, with n4,n5"
        assert said in screen_text(app)


async def test_versions_of_tables_get_a_column_when_there_are_tables() -> None:
    cluster = formed()
    app = Console(cluster)
    async with app.run_test(size=(160, 50)) as pilot:
        await pilot.press("W")
        await settle(pilot)
        assert " table " not in screen_text(app)
        cluster.change_table("n1", 1_000, {0: ["n1", "n2"]})
        cluster.change_table("n2", 999, {0: ["n2", "n1"]})
        await settle(pilot)
        text = screen_text(app)
        assert " table " in text and "v5   ≠ t999" in text and "≠ none" in text
        for label in FIVE:
            cluster.change_table(label, 1_001, {0: ["n1", "n2"]})
        await settle(pilot)
        assert "≠" not in screen_text(app)


async def test_masters_that_do_not_merge_are_quoted_while_there_are_several() -> None:
    cluster = formed()
    app = Console(cluster)
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.press("W")
        cluster.happen("n1", events.NotMerging("it knows nobody"))
        await settle(pilot)
        assert "∦" not in screen_text(app)
        cluster.split(["n1", "n2", "n3"], ["n4", "n5"])
        cluster.happen("n4", events.NotMerging(f"nobody answers at {cluster.address('n1')}"))
        await settle(pilot)
        text = screen_text(app)
        assert "∦  n1 is not merging: it knows nobody" in text
        assert "∦  n4 is not merging: nobody answers at n1" in text
        for label in FIVE:
            cluster.install(label, 9, FIVE, lineage="L3")
        await settle(pilot)
        assert "∦" not in screen_text(app)
