"""The overview: its panes say what is so, open what has all of it, and stand where there is room."""

from __future__ import annotations

from quarterdeck.app.console import Console
from quarterdeck.app.session import ConsoleSession
from quarterdeck.app.views.events.screen import EventsScreen
from quarterdeck.app.views.overview.panes import ListsPane
from quarterdeck.backend.core.events import ProcessKilled
from quarterdeck.backend.core.membership.events import ClaimFinished
from quarterdeck.backend.picture.explain.episodes.episodes import deciding_record
from tests.app.fakes.fake_cluster import FIVE, FakeCluster, formed
from tests.app.fakes.long_run_cluster import LongRunCluster
from tests.app.fakes.scenario_cluster import ScenarioCluster
from tests.app.fakes.screen_text import screen_text, settle, until, until_shown


async def test_filter_follow_and_pause_of_the_tail() -> None:
    cluster = formed()
    app = Console(cluster)
    async with app.run_test(size=(100, 30)) as pilot:
        await settle(pilot)
        cluster.suspect("n3", "n5", "silence [x]")
        await settle(pilot)
        await pilot.press("slash", *"silence", "enter")
        await settle(pilot)
        assert app.home.happened.tail.title_text == "▼ follow  [/silence  1 of 2  esc]"
        assert "installs list" not in screen_text(app) and "silence [x]" in screen_text(app)
        await pilot.press("slash", "escape")
        assert app.home.happened.tail.filter_text == ""
        await pilot.press("f")
        cluster.suspect("n2", "n1")
        await settle(pilot)
        assert "‖ paused +1 new" in screen_text(app) and "suspects n1" not in screen_text(app)
        await pilot.press("f")
        await settle(pilot)
        assert "suspects n1" in screen_text(app)
        app.home.happened.focus_inside()
        await pilot.press("k")
        assert not app.home.happened.tail.following
        await pilot.press("j")
        assert app.home.happened.tail.following


async def test_members_that_appear_later_get_row_and_column() -> None:
    cluster = formed()
    app = Console(cluster)
    async with app.run_test(size=(160, 50)) as pilot:
        await settle(pilot)
        await pilot.press("j", "j")
        cluster.labels = ("n0", *FIVE)
        await settle(pilot)
        assert list(app.home.matrix.model.keys) == [*FIVE, "n0"], "whoever never ran is not the oldest"
        assert app.home.table.cursor_key == "n3"
        assert "not up" in screen_text(app)


async def test_tab_goes_round_and_enter_opens_the_view_at_the_row() -> None:
    cluster = formed()
    app = Console(cluster)
    async with app.run_test(size=(120, 36)) as pilot:
        cluster.suspect("n3", "n5")
        await settle(pilot)
        opened = []
        for _ in range(5):
            await pilot.press("enter")
            opened.append(app.top.view)
            await pilot.press("escape", "tab")
        assert opened == ["beliefs", "suspicions", "partitions", "migrations", "events"]
        await pilot.press("j", "j", "enter")
        await settle(pilot)
        assert app.top.view == "beliefs" and app.top.targets() == ("n3",)


async def test_a_pane_is_enlarged_and_made_small_again() -> None:
    app = Console(formed())
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        await pilot.press("tab", "plus")
        await settle(pilot)
        text = screen_text(app)
        assert "no member suspects another" in text and "member lists" not in text
        await pilot.press("escape")
        await settle(pilot)
        assert "member lists" in screen_text(app) and "  3 suspicions  none" in screen_text(app)


async def test_an_episode_is_opened_where_it_stands_and_told_why() -> None:
    """Of a removal the deciding event is that the master took the member off its list, whatever the episode began with."""

    app = Console(ScenarioCluster("master-crash"))
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        app.home.happened.focus_inside()
        await pilot.press(*"kkk")
        await settle(pilot)
        pointed = app.home.happened.pointed
        assert pointed is not None
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.top, EventsScreen) and not app.top.tail.following)
        assert isinstance(app.top, EventsScreen) and app.top.tail.pointed is not None
        assert app.top.tail.pointed.record is pointed
        await pilot.press("escape")
        killed = next(episode for episode in app.session.episodes.latest(50) if episode.kind == "kill")
        app.home.happened.tail.point_at(lambda entry: entry.record is killed.first)
        await pilot.press("b")
        text = await until_shown(pilot, lambda text: "was killed" in text)
        assert isinstance(deciding_record(killed).event, ClaimFinished)
        assert "finishes" in text or "leads" in text


async def test_a_migration_is_opened_at_that_of_the_member_under_the_cursor() -> None:
    app = Console(LongRunCluster())
    async with app.run_test(size=(120, 36)) as pilot:
        await settle(pilot)
        table = app.home.panes["migrations"].table
        assert table is not None
        table.point_at("cyrene")
        table.focus()
        await pilot.press("enter")
        await until(pilot, lambda: app.top.view == "migrations" and app.top.targets() == ("cyrene",))


async def test_heads_of_columns_tell_addresses_apart() -> None:
    cluster = formed([f"10.78.0.{host}:5701" for host in range(1, 7)])
    app = Console(cluster)
    async with app.run_test(size=(80, 24)) as pilot:
        await settle(pilot)
        head = next(line for line in screen_text(app).splitlines() if "observer" in line)
        assert all(f"0.{host}" in head for host in range(1, 7)), head


async def test_what_happened_stands_in_columns_whatever_the_lengths_of_names() -> None:
    labels = ("a", "athens", "a-member-with-a-name-of-more-letters-than-a-column", "192.168.100.101:65535")
    cluster = FakeCluster(labels)
    for label in labels:
        cluster.start(label)
        cluster.happen("dev", ProcessKilled(label), after_us=3_000_000)

    app = Console(cluster)
    async with app.run_test(size=(160, 50)) as pilot:
        await settle(pilot)
        tail = app.home.happened.tail
        lines = [tail.render_line(place).text.rstrip() for place in range(tail.size.height)]
        told = [line for line in lines if line.strip()]
        assert len(told) >= len(labels), screen_text(app)
        assert {len(line) for line in told} == {len(told[0])} and all(line.endswith("(1 event)") for line in told)
        assert all(line[7] == "." and line[11:13] == "  " and line[13] != " " for line in told), told


def test_who_differs_stands_first_where_not_all_rows_are_in_sight_and_those_who_agree_share_one() -> None:
    labels = tuple(f"n{place}" for place in range(1, 51))
    cluster = formed(labels)
    session = ConsoleSession(cluster)
    for label in ("n31", "n47"):
        cluster.install(label, 60, ["n31", "n47"], lineage="L2")
    session.poll()
    pane = ListsPane(session, "W")
    pane.paint(session.labels, {})
    assert list(pane.model.keys) == ["n31", "n47", "n1"] and pane.rows_wanted == 3
    observers = [pane.model.cells(key, 1, 2)[0].text for key in pane.model.keys]
    assert observers == ["n31", "n47", "n1 +47 agree"]
    assert pane.edge.text.endswith("≠ 2 lineages 48 agree")
    assert [column.title for column in pane.model.columns[4:6]] == ["n1", "n2"], "columns stay where they are"
    cluster.suspect("n2", "n3")
    session.poll()
    pane.paint(session.labels, {})
    assert list(pane.model.keys) == ["n31", "n47", "n1", "n2"], "who suspects another has a row of its own"
    assert pane.model.cells("n1", 1, 2)[0].text == "n1 +46 agree"
    for label in labels:
        cluster.install(label, 61, labels)
    session.poll()
    pane.paint(session.labels, {})
    assert list(pane.model.keys)[:2] == ["n1", "n2"] and "agree" not in pane.edge.text
