"""What the console says stays true: in footer, messages and questions, and on the smallest screen."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from msgspec import structs
from textual.pilot import Pilot

from quarterdeck.app.console import Console
from quarterdeck.app.console_interface import Pointed
from quarterdeck.app.screen import view_screen
from quarterdeck.app.shown_clock import ShownClock
from quarterdeck.backend.clusters.cluster import Source
from quarterdeck.backend.core.commands import SearchClusters
from quarterdeck.backend.core.membership import events
from tests.app.fakes.fake_cluster import FakeCluster, formed
from tests.app.fakes.screen_text import screen_text, settle

CITIES = ("athens", "byzantium", "cyrene", "delphi", "euphesus")
VIEW_KEYS = ("1", "2", "3", "4", "5", "6", "7", "8", "9", "0", "D")


def in_console(
    scenario: Callable[[Pilot[None], Console, FakeCluster], Awaitable[None]],
    *,
    size: tuple[int, int] = (100, 30),
    writable: bool = True,
) -> None:
    async def run() -> None:
        cluster = formed(CITIES, writable=writable)
        app = Console(cluster)
        async with app.run_test(size=size) as pilot:
            await settle(pilot)
            await scenario(pilot, app, cluster)

    asyncio.run(run())


def test_the_smallest_screen_keeps_the_first_line_and_the_footer() -> None:
    async def scenario(pilot: Pilot[None], app: Console, cluster: FakeCluster) -> None:
        for key in VIEW_KEYS:
            await pilot.press(key)
            await settle(pilot)
            lines = screen_text(app).splitlines()
            assert lines[0].startswith(" healthy · 5 members agree") and lines[-1].endswith(
                ("keys q back", "keys Q quit")
            ), (key, lines)

    in_console(scenario, size=(40, 10))


def test_no_search_is_asked_of_who_is_no_master() -> None:
    async def scenario(pilot: Pilot[None], app: Console, cluster: FakeCluster) -> None:
        await pilot.press("2", "j", "m")
        await settle(pilot)
        assert "byzantium is no master; athens leads its cluster" in screen_text(app)
        assert app.screen is app.top and "search" not in app.top.hints.text
        await pilot.press("k", "m", "y")
        await settle(pilot)
        assert cluster.commands == [SearchClusters("athens")]

    in_console(scenario)


def test_a_message_is_gone_when_it_is_no_news_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(pilot: Pilot[None], app: Console, cluster: FakeCluster) -> None:
        app.show_message("done: resume byzantium")
        await settle(pilot)
        assert "done: resume byzantium" in screen_text(app)
        monkeypatch.setattr(view_screen, "MESSAGE_SECONDS", -1.0)
        await settle(pilot)
        assert "done: resume byzantium" not in screen_text(app)

    in_console(scenario)


def test_an_error_does_not_come_back_with_its_view_after_something_else_was_said() -> None:
    async def scenario(pilot: Pilot[None], app: Console, cluster: FakeCluster) -> None:
        app.show_message("one group is no partition", error=True)
        await pilot.press("2")
        app.show_message("done: kill byzantium")
        await pilot.press("1")
        await settle(pilot)
        assert app.top.view == "overview" and "one group is no partition" not in screen_text(app)

    in_console(scenario)


def test_keys_that_do_nothing_are_offered_nowhere() -> None:
    async def scenario(pilot: Pilot[None], app: Console, cluster: FakeCluster) -> None:
        await pilot.press("4")
        await settle(pilot)
        assert "when asked for" in screen_text(app) and "(a)" not in screen_text(app)

    in_console(scenario, writable=False)


def test_the_key_of_a_view_that_is_open_changes_nothing() -> None:
    async def scenario(pilot: Pilot[None], app: Console, cluster: FakeCluster) -> None:
        await pilot.press("3", "3")
        assert app.top.view == "suspicions"
        await pilot.press("escape")
        assert app.top.view == "overview"

    in_console(scenario)


def test_an_audit_that_did_not_run_has_found_nothing_out() -> None:
    async def scenario(pilot: Pilot[None], app: Console, cluster: FakeCluster) -> None:
        app.goto("audit")
        await settle(pilot)
        assert "not audited yet" in screen_text(app) and "no findings" not in screen_text(app)

    in_console(scenario)


def test_because_knows_what_happened_while_the_events_were_out_of_sight() -> None:
    async def scenario(pilot: Pilot[None], app: Console, cluster: FakeCluster) -> None:
        await pilot.press("8")
        await settle(pilot)
        await pilot.press("1")
        await settle(pilot)
        cluster.install("delphi", 6, ["delphi", "euphesus"], lineage="L2")
        app._tick()
        app.goto("events", event=Pointed(None, because=True, member="delphi"))
        await settle(pilot)
        assert "installs list v6 of 2: delphi, euphesus" in app.top.below.text

    in_console(scenario)


def test_names_have_their_room_again_when_no_member_is_in_a_state_of_its_own() -> None:
    async def scenario(pilot: Pilot[None], app: Console, cluster: FakeCluster) -> None:
        before = screen_text(app)
        assert "byzantium cyrene delphi euphesus" in before
        cluster.happen("euphesus", events.MemberMerging(cluster.address("athens"), ""))
        await settle(pilot)
        cluster.start("euphesus", life=2)
        cluster.install("euphesus", 5, CITIES, life=2)
        app._tick()
        await settle(pilot)
        assert "byzantium cyrene delphi euphesus" in screen_text(app)

    in_console(scenario, size=(120, 36))


def test_a_detail_of_nothing_takes_no_room_and_the_source_of_a_list_is_whole() -> None:
    async def scenario(pilot: Pilot[None], app: Console, cluster: FakeCluster) -> None:
        await pilot.press("5")
        await settle(pilot)
        await settle(pilot)
        assert not app.top.row_detail.display
        await pilot.press("7")
        await settle(pilot)
        await settle(pilot)
        assert app.top.row_detail.display
        assert "as configured" in screen_text(app)

    in_console(scenario, size=(160, 50))


def test_while_a_command_is_typed_the_footer_has_the_keys_of_typing() -> None:
    async def scenario(pilot: Pilot[None], app: Console, cluster: FakeCluster) -> None:
        await pilot.press("9", "colon")
        await settle(pilot)
        assert app.top.hints.text == "enter accept tab complete ↑ typed before esc close"
        await pilot.press("escape", "slash")
        await settle(pilot)
        assert app.top.hints.text == "enter accept esc close"
        await pilot.press("escape")
        await settle(pilot)
        assert app.top.hints.text.endswith("q back")

    in_console(scenario)


def test_a_key_without_an_action_here_says_why() -> None:
    async def scenario(pilot: Pilot[None], app: Console, cluster: FakeCluster) -> None:
        await pilot.press("K")
        assert app.top.message.text == "kill is refused: this cluster is read-only"
        await pilot.press("2", "b")
        assert app.top.message.text == (
            "b does nothing here, but elsewhere: build in network, because in events and overview, answer b in demos"
        )
        await pilot.press("7", "h")
        assert app.top.message.text == "heal is refused: this cluster is read-only"
        await pilot.press("ctrl+c")
        assert app.top.message.text == "Q leaves the console"

    in_console(scenario, writable=False)


def test_an_action_on_members_says_that_a_view_points_at_none() -> None:
    async def scenario(pilot: Pilot[None], app: Console, cluster: FakeCluster) -> None:
        await pilot.press("8", "K")
        assert app.top.message.text == "kill is done to a member, and this view points at none"
        await pilot.press("5", "j")  # the cursor's own keys are no mistake
        assert not app.top.message.text

    in_console(scenario)


def test_a_copy_is_not_offered_of_a_cluster_that_cannot_be_copied() -> None:
    async def scenario(pilot: Pilot[None], app: Console, cluster: FakeCluster) -> None:
        assert "F a copy to try" not in screen_text(app)
        await pilot.press("F")
        assert "fork cannot be done by this cluster" in app.top.message.text

    in_console(scenario, size=(120, 40))


def test_the_view_of_events_shows_the_present_after_because_was_asked_elsewhere() -> None:
    async def scenario(pilot: Pilot[None], app: Console, cluster: FakeCluster) -> None:
        await pilot.press("b")
        await settle(pilot)
        assert "installs list" in screen_text(app) and "‖ paused" in screen_text(app)
        await pilot.press("1", "8")
        await settle(pilot)
        assert "▼ follow" in screen_text(app) and "because" not in app.top.below.text

    in_console(scenario)


def test_a_filter_that_nothing_matches_says_so() -> None:
    async def scenario(pilot: Pilot[None], app: Console, cluster: FakeCluster) -> None:
        for view in ("2", "8"):
            await pilot.press(view, "slash", "z", "z", "z", "enter")
            await settle(pilot)
            assert "nothing here matches the filter: esc shows all again" in screen_text(app), view

    in_console(scenario)


def test_the_prompt_leaves_the_panes_where_they_are() -> None:
    async def scenario(pilot: Pilot[None], app: Console, cluster: FakeCluster) -> None:
        before = app.top.query_one("#body").region
        await pilot.press("colon", "h")
        await settle(pilot)
        assert app.top.candidates.display and app.top.query_one("#body").region == before
        assert screen_text(app).splitlines()[-3].startswith(" :h")

    in_console(scenario)


def test_one_key_changes_the_clock_of_every_view_and_utc_is_named() -> None:
    async def scenario(pilot: Pilot[None], app: Console, cluster: FakeCluster) -> None:
        await pilot.press("t")
        assert app.top.message.text == "times are UTC"
        await settle(pilot)
        titles = {"1": "─ UTC  ▼ follow", "8": "episodes  UTC  ▼ follow", "9": "following, at 00:00:0", "i": " UTC: "}
        for key, words in titles.items():
            await pilot.press(*("1", key) if key == "i" else key)
            await settle(pilot)
            assert words in screen_text(app), (key, screen_text(app))
        await pilot.press("t")
        await settle(pilot)
        assert "UTC" not in screen_text(app)

    in_console(scenario, size=(120, 40))


@pytest.mark.parametrize(("source", "utc_us", "zone"), [
    ("remote", 1_795_000_000_000_000, "UTC"), ("hazelcast", 1_795_000_000_000_000, "UTC"), ("recorded", 2_000_000, ""),
    ("recorded", 1_795_000_000_000_000, "UTC"), ("live", 1_795_000_000_000_000, ""), ("simulated", 2_000_000, ""),
])  # fmt: skip
def test_the_clock_suits_the_cluster_until_another_one_is_chosen(source: Source, utc_us: int, zone: str) -> None:
    clock, record = ShownClock(source), formed(CITIES).drain()[0]
    record = structs.replace(record, at=2_000_000, utc=utc_us)
    clock.learn(record)
    assert clock.zone == zone and clock.of_record(record) == clock.of_moment(record.at)
    clock.chosen = "run"
    assert clock.spoken(2_000_000) == "2.000 s"
