"""Members elsewhere that go and come back, over real HTTP: what was known of them stays, dated, in every view."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from quarterdeck.app.actions.views import VIEW_NAMES
from quarterdeck.app.console import Console
from quarterdeck.backend.clusters.remote.member_stream import StreamTimings
from quarterdeck.backend.clusters.remote.remote_cluster import RemoteCluster
from tests.app.fakes.screen_text import screen_text, settle, until_shown
from tests.clusters.remote.fake_members import FakeMember, form, serving

PACE = StreamTimings(dial=5, quiet=0.2, sign_of_life=5, first_retry=0.02, longest_retry=0.1)


@pytest.mark.long
def test_all_of_a_remote_cluster_vanishes_and_returns() -> None:
    cities = [FakeMember(label) for label in ("athens", "byzantium", "cyrene")]
    form(*cities)

    async def scenario(cluster: RemoteCluster) -> None:
        app = Console(cluster)
        async with app.run_test(size=(160, 50)) as pilot:
            await until_shown(pilot, lambda text: text.count("● member") == 6)
            rows = [line for line in screen_text(app).splitlines() if "● member" in line]
            assert len(rows) == 3 and not any("stale" in row for row in rows)
            await pilot.press("2")
            await settle(pilot)
            await pilot.press("escape")
            before = {
                view: len(list(app._tabs.view(app._tabs.current, view).rows())) for view in ("overview", "members")
            }
            assert before["members"] == 3

            for city in cities:
                city.vanish()
            ended = "down · no member runs: 3 members ended"  # their host says that no process listens there
            text = await until_shown(pilot, lambda text: text.count("stale") >= 3 and ended in text and "0/3" in text)
            assert text.count("● member") == 6 and text.count("▲ master") == 3, "nothing is emptied"
            for view in VIEW_NAMES:
                app.goto(view, member="cyrene" if view == "member" else "")
                await settle(pilot)
                text = screen_text(app)
                assert ended in text, view
                if view in ("overview", "members", "suspicions", "network", "join-lists"):
                    assert all(city.label in text for city in cities), view
                if view in before:
                    assert len(list(app.top.rows())) == before[view]
                if view == "member":
                    assert "last heard" in text and "its last known belief:" in text
                while app.top.view != "overview":
                    app.back()

            for city in cities:
                city.serve()
            text = await until_shown(pilot, lambda text: "stale" not in text and "not reached" not in text)
            assert text.count("● member") == 6
            cities[0].install(4, cities[:2])
            text = await until_shown(pilot, lambda text: "v4" in text)
            assert "✕ removed" in text

    with serving(*cities):
        cluster = RemoteCluster([cities[0].url], timings=PACE, randomness=Random(1))
        try:
            asyncio.run(scenario(cluster))
        finally:
            cluster.close()


def test_one_member_comes_back_as_another_life() -> None:
    cities = [FakeMember(label) for label in ("athens", "byzantium")]
    form(*cities)

    async def scenario(cluster: RemoteCluster) -> None:
        app = Console(cluster)
        async with app.run_test(size=(120, 30)) as pilot:
            await until_shown(pilot, lambda text: text.count("v2") >= 2)
            await pilot.press("2")
            await settle(pilot)
            app.top.point_at("byzantium")
            byzantium = cities[1]
            byzantium.vanish()
            await until_shown(pilot, lambda text: "stale" in text)
            byzantium.uuid, byzantium.run = "byzantium-life-2", "another-run"
            byzantium.records.clear()
            byzantium.begin()
            byzantium.install(1, [byzantium])
            byzantium.serve()
            text = await until_shown(pilot, lambda text: "stale" not in text and "masters athens, byzantium" in text)
            assert "▸ byzantium" in text, "the cursor stays where it was"

    with serving(*cities):
        cluster = RemoteCluster([city.url for city in cities], timings=PACE, randomness=Random(1))
        try:
            asyncio.run(scenario(cluster))
        finally:
            cluster.close()
