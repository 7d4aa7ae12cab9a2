"""Data in the console: the table by member, by map and by partition, and the heat of the replica map."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Future

from textual.pilot import Pilot

from quarterdeck.app.commands.requests import Requests
from quarterdeck.app.console import Console
from quarterdeck.app.session import ConsoleSession
from quarterdeck.app.views.partitions import PartitionsScreen
from quarterdeck.backend.clusters.traffic import Traffic, load_of
from quarterdeck.backend.core.commands import SetJoinList
from quarterdeck.backend.core.data.events import BackupLag, DataMeasured, MapMeasured
from quarterdeck.backend.core.membership.events import JoinListChanged
from quarterdeck.backend.core.operations import Answer, Operation
from quarterdeck.backend.core.properties import SECOND_US
from tests.app.fakes.fake_cluster import FakeCluster, formed
from tests.app.fakes.screen_text import screen_text, settle

NAMES = ("athens", "byzantium")


def storing() -> FakeCluster:
    """Athens owns even partitions, of which p4 is the busiest; byzantium lags as a backup."""
    cluster = formed(NAMES)
    rows = {number: [NAMES[number % 2], NAMES[1 - number % 2]] for number in range(20)}
    for label in NAMES:
        cluster.change_table(label, 20, rows, "arranged")
    orders = MapMeasured("orders", 120, 4_000, 90, 30)
    busy = ((4, 100, 3_600, 80, 10), (6, 20, 400, 10, 20, 3, 500_000))
    lagging = (BackupLag(cluster.address("byzantium"), 1, 3, 500_000),)
    cluster.happen("athens", DataMeasured(2 * SECOND_US, 120, 4_000, 7, 70, 0, (orders,), busy, lagging))
    return cluster


class AnsweringCluster(FakeCluster):
    """Answers whatever is asked."""

    def call(self, member: str, operation: Operation, *, watched: bool = False) -> Future[Answer]:
        answered: Future[Answer] = Future()
        answered.set_result(Answer())
        return answered


def answering() -> FakeCluster:
    cluster = AnsweringCluster(NAMES)
    cluster.form()
    return cluster


Scenario = Callable[[Console, Pilot[None]], Awaitable[None]]


def on(cluster: FakeCluster, scenario: Scenario) -> None:
    async def play() -> None:
        app = Console(cluster)
        async with app.run_test(size=(160, 40)) as pilot:
            await settle(pilot)
            await scenario(app, pilot)

    asyncio.run(play())


def test_one_table_by_member_by_map_and_by_partition() -> None:
    async def scenario(app: Console, pilot: Pilot[None]) -> None:
        await pilot.press("V")
        await settle(pilot)
        text = screen_text(app)
        assert "data by member" in text and "120 keys, 4 kB; 45 reads/s, 15 writes/s; 1 backup behind" in text
        assert "3 writes" in next(line for line in text.splitlines() if "byzantium" in line and "–" in line)
        await pilot.press("z")
        await settle(pilot)
        assert "data by map" in screen_text(app) and "orders" in screen_text(app)
        await pilot.press("z")
        await settle(pilot)
        text = screen_text(app)
        assert "data by partition" in text and "p4" in text and "3.6 kB" in text
        assert "3 writes" in next(line for line in text.splitlines() if "p6" in line)

    on(storing(), scenario)


def test_the_map_shows_heat_in_digits_and_the_letters_again() -> None:
    async def scenario(app: Console, pilot: Pilot[None]) -> None:
        await pilot.press("4")
        await settle(pilot)
        assert "own A B A B A B A B" in screen_text(app)
        await pilot.press("H")
        await settle(pilot)
        text = screen_text(app)
        assert "own 0 0 0 0 9 0 4 0" in text and "9 busiest: p4 with 45 operations/s" in text
        screen = app.top
        assert isinstance(screen, PartitionsScreen)
        screen.map.point_at(4)
        await settle(pilot)
        assert "100 keys, 3.6 kB, 40 reads/s, 5 writes/s" in screen_text(app)
        await pilot.press("H")
        await settle(pilot)
        assert "own A B A B A B A B" in screen_text(app)

    on(storing(), scenario)


def test_a_load_begins_shows_in_the_first_line_and_ends() -> None:
    async def scenario(app: Console, pilot: Pilot[None]) -> None:
        app.action_act("load", "50 keys=10")
        await settle(pilot)
        assert "load via athens, byzantium for 24h: 50 operations a second" in screen_text(app)
        app.top.repaint()  # which a cluster whose clock goes on does each second
        await settle(pilot)
        assert "load 50/s" in screen_text(app)
        app.action_act("load", "50 keys=many")
        await settle(pilot)
        assert "keys: Input should be a valid integer" in screen_text(app) and app.session.traffic is not None
        app.action_act("load", "off")
        await settle(pilot)
        app.top.repaint()
        await settle(pilot)
        assert app.session.traffic is not None and app.session.traffic.over
        assert "the load is over" in screen_text(app) and "load 50/s" not in screen_text(app)
        app.action_act("load", "off")
        await settle(pilot)
        assert "no load was begun here, or it is over" in screen_text(app)

    on(answering(), scenario)


def test_undo_takes_back_the_latest_edit_and_lets_a_load_go_on() -> None:
    cluster = answering()
    athens = cluster.address("athens")
    before = (athens, cluster.address("byzantium"))

    async def scenario(app: Console, pilot: Pilot[None]) -> None:
        app.action_act("load", "50 keys=10")
        cluster.happen("athens", JoinListChanged(before, 0, athens))
        cluster.happen("athens", JoinListChanged((athens,), 1, athens), after_us=SECOND_US)
        await settle(pilot)
        await pilot.press("U")
        assert cluster.commands[-1] == SetJoinList("athens", before)
        cluster.happen("athens", JoinListChanged(before, 2, athens), after_us=SECOND_US)
        await settle(pilot)
        await pilot.press("U")
        await settle(pilot)
        assert "no fault is in force" in screen_text(app)
        assert app.session.traffic is not None and not app.session.traffic.over

    on(cluster, scenario)


def test_a_load_that_ends_by_itself_says_so_once() -> None:
    cluster = AnsweringCluster(NAMES)
    cluster.form()
    session = ConsoleSession(cluster)
    requests = Requests(session, lambda *_: None)
    session.poll()
    session.traffic = Traffic(cluster, load_of("50 for=2s", NAMES), cluster.now_us())
    cluster._at = 3 * SECOND_US
    told = []
    for _ in range(3):
        session.poll()
        told += [outcome.text for outcome in requests.call_outcomes(())]
    assert told == ["the load is over: 100 operations done"]
