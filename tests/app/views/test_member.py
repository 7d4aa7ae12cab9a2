"""One member in detail, and the migrations, as records come."""

from __future__ import annotations

import pytest
from textual.widgets import Input

from quarterdeck.app.console import Console
from quarterdeck.app.views.member import MemberScreen
from quarterdeck.app.views.migrations import MigrationsScreen
from quarterdeck.backend.core.commands import (
    ResumeMember,
)
from quarterdeck.backend.core.events import ProcessPaused
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.core.partitions.events import MigrationDecided
from tests.app.fakes.console_driver import type_line
from tests.app.fakes.fake_cluster import formed
from tests.app.fakes.screen_text import screen_text, settle


async def test_one_member_in_detail_stays_up_to_date() -> None:
    cluster = formed()
    app = Console(cluster)
    async with app.run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        await pilot.press("j", "i")
        await settle(pilot)
        assert isinstance(app.screen, MemberScreen) and app.screen.label == "n2"
        assert "member, follows n1, list v5 since 0 s" in screen_text(app)
        cluster.suspect("n2", "n5", "silence [x]")
        await settle(pilot)
        assert "? n5 since 0 s: silence [x]" in screen_text(app)
        cluster.happen("dev", ProcessPaused("n3"), after_us=7_000_000)
        await settle(pilot)
        assert "? n5 since 7 s: silence [x]" in screen_text(app)
        await pilot.press("right")
        await settle(pilot)
        assert "paused, follows n1" in screen_text(app)
        await pilot.press("p")
        await settle(pilot)
        assert cluster.commands == [ResumeMember("n3")] and "done: resume n3" in screen_text(app)
        await pilot.press("q")
        assert app.screen is app.home and app.home.table.cursor_key == "n3"
        await type_line(pilot, "look n5")
        assert isinstance(app.screen, MemberScreen) and app.screen.label == "n5"
        await pilot.press("e")
        await pilot.pause()
        assert app.top.prompt.query_one("#prompt-input", Input).value == "join-list n5 n1,n2,n3,n4,n5"


async def test_detail_paints_only_lines_that_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = formed()
    app = Console(cluster)
    async with app.run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        await pilot.press("i")
        await settle(pilot)
        assert isinstance(app.screen, MemberScreen)
        painted: list[int] = []
        render = app.screen.sheet.render_line
        monkeypatch.setattr(app.screen.sheet, "render_line", lambda y: painted.append(y) or render(y))
        cluster.happen("n2", events.ListRejected(1, cluster.address("n1"), "older"), after_us=0)
        await settle(pilot)
        assert painted == [], "nothing said of n1 has changed"
        cluster.happen("n1", events.ClusterStateChanged("FROZEN", "asked"), after_us=0)
        await settle(pilot)
        assert 2 in painted, "the line of the state; what happened lately has a line more, so that the rest moves"
        painted.clear()
        cluster.happen("n2", events.ListRejected(1, cluster.address("n1"), "older"), after_us=1_000_000)
        await settle(pilot)
        assert painted == [0], "only the line with the age of the list"


async def test_migrations_stay_up_to_date_and_no_key_acts_on_a_member_out_of_sight() -> None:
    cluster = formed()
    app = Console(cluster)
    async with app.run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        await type_line(pilot, "migrations")
        await settle(pilot)
        assert isinstance(app.screen, MigrationsScreen) and "no partitions yet" in screen_text(app)
        assert "stop" not in screen_text(app).splitlines()[-1]
        cluster.begin("n1", "m0", 7, "n2", "n5")
        await settle(pilot)
        assert "▶ copying    p7     MOVE" in screen_text(app)
        assert "p7 MOVE: n5 becomes owner in place of n2; copying, data from n2" in screen_text(app)
        cluster.happen("n1", MigrationDecided("m0", 7, False, 3, "n5 [x] left"))
        await settle(pilot)
        assert "▸ ✕ failed     p7" in screen_text(app), "the cursor stays on its migration"
        assert "last failed, 0 s ago: p7, n5 [x] left" in screen_text(app)
