"""The footer has what does something here and now; leaving asks where members would end."""

from __future__ import annotations

from concurrent.futures import Future

from quarterdeck.app.commands.confirmation import ConfirmScreen
from quarterdeck.app.console import Console
from quarterdeck.backend.core.commands import HealLink
from quarterdeck.backend.core.events import ProcessKilled
from quarterdeck.backend.core.link_condition import LinkChanged
from tests.app.fakes.console_driver import console
from tests.app.fakes.fake_cluster import FIVE, FakeCluster, formed
from tests.app.fakes.screen_text import screen_text, settle


def footer(app: Console) -> str:
    return screen_text(app).splitlines()[-1]


async def test_what_cannot_be_done_now_is_not_in_the_footer() -> None:
    cluster = formed()
    app = Console(cluster)
    async with app.run_test(size=(160, 50)) as pilot:
        await settle(pilot)
        assert "K kill" in footer(app) and "s start" not in footer(app) and "h heal" not in footer(app)
        cluster.happen("dev", ProcessKilled("n1"))
        cluster.happen("dev", LinkChanged("n2", "n3", blocked="blackhole"))
        await settle(pilot)
        assert "K kill" not in footer(app) and "s start" in footer(app)
        assert "h heal" in footer(app) and "U undo" in footer(app)
        await pilot.press("j")
        await settle(pilot)
        assert "K kill" in footer(app) and "s start" not in footer(app)
        app.session.playhead.go(1)
        await settle(pilot)
        assert "kill" not in footer(app) and "heal" not in footer(app)


async def test_the_footer_is_whole_at_any_width_and_always_says_how_to_go_on() -> None:
    app = Console(formed())
    async with app.run_test(size=(160, 50)) as pilot:
        await settle(pilot)
        whole = {(hint.key, hint.word) for hint in (*app.top.hints._hints, *app.top.hints._kept)}
        for width in (140, 101, 80, 63, 40):
            await pilot.resize_terminal(width, 24)
            await pilot.pause()
            placed = list(app.top.hints._placed())
            assert {(hint.key, hint.word) for hint in placed} <= whole
            assert footer(app) == " ".join(f"{hint.key} {hint.word}" for hint in placed)
            assert footer(app).endswith(": command ? keys Q quit")


async def test_kill_works_in_the_view_of_migrations_where_a_member_is_under_the_cursor() -> None:
    async with console() as driver:
        await driver.open("migrations")
        label = driver.app.top.targets()[0]
        assert "K kill" in footer(driver.app)
        await driver.press("K")
        assert isinstance(driver.app.screen, ConfirmScreen) and label in screen_text(driver.app)
        await driver.press("n")
        driver.app.session.playhead.go(1)
        driver.app.top.repaint()
        await driver.idle()
        assert "kill" not in footer(driver.app)


async def test_u_undoes_the_latest_fault_in_any_view() -> None:
    cluster = formed()
    app = Console(cluster)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await pilot.press("U")
        assert "no fault is in force" in app.top.message.text
        for one, other in (("n2", "n3"), ("n3", "n2")):
            cluster.happen("dev", LinkChanged(one, other, blocked="blackhole"), after_us=0)
        await settle(pilot)
        for view in ("1", "8", "4"):
            cluster.commands.clear()
            await pilot.press(view, "U")
            await pilot.pause()
            if isinstance(app.screen, ConfirmScreen):
                await pilot.press("y")
                await pilot.pause()
            assert [type(command) for command in cluster.commands] == [HealLink], view


async def test_leaving_a_live_cluster_asks_and_q_goes_one_level_back() -> None:
    cluster = formed(FIVE, source="live")
    app = Console(cluster)
    async with app.run_test(size=(120, 40)) as pilot:
        await settle(pilot)
        await pilot.press("q")
        assert "Q leaves the console" in app.top.message.text and app.is_running
        await pilot.press("8", "slash", *"n1", "enter", "q")
        assert app.top.view == "events" and not app.top.filter_text
        await pilot.press("q")
        assert app.top.view == "overview"
        for leave in (["Q"], ["colon", "q", "enter"], ["ctrl+q"]):
            await pilot.press(*leave)
            await pilot.pause()
            assert isinstance(app.screen, ConfirmScreen) and "dev: 5 members" in screen_text(app)
            await pilot.press("n")
            await pilot.pause()
            assert app.screen is app.top and app.is_running
        await pilot.press("Q", "y")
    assert not app.is_running


async def test_leaving_asks_also_while_members_are_being_started() -> None:
    starting: Future[None] = Future()
    app = Console(FakeCluster(FIVE, source="live"), starting)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("Q")
        await pilot.pause()
        assert isinstance(app.screen, ConfirmScreen) and "dev: members that are being" in screen_text(app)
        await pilot.press("n")
        starting.set_exception(OSError("no port is free"))
        await settle(pilot)
        await pilot.press("Q")
    assert not app.is_running


async def test_nothing_is_asked_where_nobody_ends() -> None:
    app = Console(formed())
    async with app.run_test() as pilot:
        await settle(pilot)
        await pilot.press("Q")
    assert not app.is_running


async def test_help_is_searched_and_has_titles_glyphs_and_the_keys_of_other_views() -> None:
    app = Console(formed())
    async with app.run_test(size=(120, 330)) as pilot:
        await settle(pilot)
        await pilot.press("question_mark")
        await pilot.pause()
        text = screen_text(app)
        glyphs = ("What the glyphs mean", "▸ cursor   ■ selected")
        for told in ("Keys in ", "esc closes", "In network", "Commands after :", *glyphs):
            assert told in text, told
        await pilot.press("slash", *"/fro[zs]e", "slash")
        await pilot.pause()
        found = screen_text(app)
        assert "let frozen ones run on" in found and "without a goodbye" not in found and "In network" not in found
        await pilot.press("escape")
        await pilot.pause()
        assert "without a goodbye" in screen_text(app)
        await pilot.press("escape")
        await pilot.pause()
        assert app.screen is app.top
