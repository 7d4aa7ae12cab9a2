"""Several clusters at once: a tab for each, and views that belong to one of them."""

from __future__ import annotations

from quarterdeck.app.console import Console
from quarterdeck.app.console_interface import ClusterUnavailable, OpenedCluster
from quarterdeck.backend.core.commands import StopMember
from tests.app.fakes.console_driver import type_line
from tests.app.fakes.fake_cluster import FakeCluster, formed
from tests.app.fakes.screen_text import screen_text, settle


class TwoClusterOpener:
    """Leads to a cluster called south, and refuses north."""

    names = ("south", "north")

    def __init__(self) -> None:
        self.south = FakeCluster(("s1", "s2"), name="south [x]")
        self.south.form()

    def open(self, name: str) -> OpenedCluster:
        if name != "south":
            raise ClusterUnavailable(f"{name}: nobody answers")
        return OpenedCluster(self.south)


async def test_another_cluster_opens_in_a_tab_with_views_of_its_own() -> None:
    cluster, cluster_opener = formed(), TwoClusterOpener()
    app = Console(cluster, cluster_opener=cluster_opener)
    async with app.run_test(size=(100, 24)) as pilot:
        await settle(pilot)
        await pilot.press("j", "v")
        await type_line(pilot, "cluster south")
        await settle(pilot)
        text = screen_text(app)
        assert "1 dev" in text and "▸2 south" in text and "s1" in text and "n1" not in text
        await pilot.press("j", "x")
        assert cluster_opener.south.commands == [StopMember("s2")] and cluster.commands == []
        await pilot.press("tilde")
        await settle(pilot)
        assert app.top.view == "migrations" and "▸1 dev" in screen_text(app), "the tab is as it was left"
        await pilot.press("escape", "x")
        assert cluster.commands == [StopMember("n2")], "cursor and all"
        await type_line(pilot, "cluster south")
        await settle(pilot)
        await type_line(pilot, "close")
        await settle(pilot)
        assert "south" not in screen_text(app) and "n1" in screen_text(app)
        await app.workers.wait_for_complete()
        assert cluster_opener.south.closed and not cluster.closed


async def test_nothing_of_a_closed_cluster_goes_on() -> None:
    app = Console(formed(), cluster_opener=TwoClusterOpener())
    async with app.run_test(size=(100, 24)) as pilot:
        await settle(pilot)
        await type_line(pilot, "cluster south")
        await settle(pilot)
        app.goto("audit")
        await settle(pilot)
        views = {app.top}
        app.back()
        await settle(pilot)
        views.add(app.top)
        app.close_tab()
        await settle(pilot)
        await app.workers.wait_for_complete()
        assert [view for view in views if view.is_running] == []


async def test_a_cluster_that_cannot_be_opened_is_told_and_the_first_cannot_be_closed() -> None:
    cluster = formed()
    app = Console(cluster, cluster_opener=TwoClusterOpener())
    async with app.run_test(size=(100, 24)) as pilot:
        await settle(pilot)
        await type_line(pilot, "cluster north")
        assert "north: nobody answers" in screen_text(app)
        await type_line(pilot, "close")
        assert "quit closes it" in screen_text(app)
        await pilot.press("tilde")
        assert app.session.cluster is cluster


async def test_what_was_opened_here_is_closed_in_the_end() -> None:
    cluster, cluster_opener = formed(), TwoClusterOpener()
    app = Console(cluster, cluster_opener=cluster_opener)
    async with app.run_test(size=(100, 24)) as pilot:
        await settle(pilot)
        await type_line(pilot, "cluster south")
    app.close_owned()
    assert cluster_opener.south.closed and not cluster.closed


def test_the_prompt_completes_names_of_clusters() -> None:
    app = Console(formed(), cluster_opener=TwoClusterOpener())
    assert app.complete("cluster so") == "cluster south"


async def test_a_tab_that_is_closed_leads_back_to_where_it_was_opened() -> None:
    app = Console(formed(), cluster_opener=TwoClusterOpener())
    async with app.run_test(size=(100, 24)) as pilot:
        await settle(pilot)
        await type_line(pilot, "cluster south")
        await type_line(pilot, "cluster dev")
        await settle(pilot)
        other = FakeCluster(("o1",), name="other")
        app.open_tab(OpenedCluster(other), "other")
        await settle(pilot)
        assert "▸3 other" in screen_text(app)
        app.close_tab()
        await settle(pilot)
        assert "▸1 dev" in screen_text(app), "not south, the tab before it"
        await app.workers.wait_for_complete()


async def test_a_copy_leads_back_to_what_it_is_a_copy_of_whatever_was_in_sight_when_it_came() -> None:
    app = Console(formed(), cluster_opener=TwoClusterOpener())
    async with app.run_test(size=(100, 24)) as pilot:
        await settle(pilot)
        real = app.session
        await type_line(pilot, "cluster south")
        await settle(pilot)
        copy = FakeCluster(("n1",), name="copy")
        copy.source = "copy"
        app.open_tab(OpenedCluster(copy), "copy", origin=real)
        await settle(pilot)
        await pilot.press("escape")
        await settle(pilot)
        assert app.session is real
