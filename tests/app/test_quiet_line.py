"""One quiet line says what to try: first to cut two members off, then to heal, then more while the cluster is calm."""

from __future__ import annotations

from quarterdeck.app.console import Console
from quarterdeck.app.views.overview.screen import FIRST_STEPS, HEALING
from quarterdeck.backend.core.link_condition import LinkChanged
from quarterdeck.backend.core.properties import SECOND_US
from tests.app.fakes.fake_cluster import formed
from tests.app.fakes.screen_text import screen_text, settle

TRY = "D a three-minute lesson · 6 n predicts a fault · ? all keys"


async def test_the_line_is_there_at_first_and_when_nothing_happens_and_not_while_something_does() -> None:
    cluster = formed()
    app = Console(cluster)
    async with app.run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        assert FIRST_STEPS in screen_text(app)
        cluster.happen("n1", LinkChanged("n1", "n2", blocked="blackhole"))
        await settle(pilot)
        assert HEALING in screen_text(app)
        cluster.happen("n1", LinkChanged("n1", "n2"))
        await settle(pilot)
        assert TRY in screen_text(app)
        cluster._at += 70 * SECOND_US
        cluster.suspect("n3", "n5")
        await settle(pilot)
        assert TRY not in screen_text(app)
        cluster._at += 6 * SECOND_US
        await settle(pilot)
        assert TRY in screen_text(app)
        await pilot.press("2")
        await settle(pilot)
        assert TRY not in screen_text(app), "it stands on the first view alone"


async def test_it_names_only_what_works_here_and_small_screens_have_no_room_for_it() -> None:
    app = Console(formed(writable=False))
    async with app.run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        assert "three-minute lesson" in screen_text(app) and FIRST_STEPS not in screen_text(app)
    app = Console(formed())
    async with app.run_test(size=(60, 15)) as pilot:
        await settle(pilot)
        assert FIRST_STEPS not in screen_text(app)
