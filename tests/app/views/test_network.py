"""The view of the network: links, faults and their undoing, and faults that are planned, predicted and made."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Future

from textual.pilot import Pilot

from quarterdeck.app.console import Console
from quarterdeck.app.views.network.model import LinkModel
from quarterdeck.app.views.network.screen import NetworkScreen
from quarterdeck.backend.commands.links import LinkConditions
from quarterdeck.backend.core.commands import (
    Command,
    CutLink,
    DelayLink,
    Heal,
    HealLink,
    Partition,
    ResumeMember,
)
from quarterdeck.backend.core.events import ProcessPaused
from quarterdeck.backend.picture.fold.picture import Picture
from tests.app.fakes.fake_cluster import FakeCluster
from tests.app.fakes.screen_text import screen_text, settle

FIVE = ("athens", "byzantium", "cyrene", "delos", "ephesus")


class WiredCluster(FakeCluster):
    """Does commands to links at once, as a cluster would."""

    def __init__(self, labels: tuple[str, ...] = FIVE, *, writable: bool = True) -> None:
        super().__init__(labels, writable=writable)
        self.conditions = LinkConditions()

    def execute(self, command: Command) -> Future[None]:
        if isinstance(command, Partition | CutLink | DelayLink | Heal | HealLink):
            for change in self.conditions.apply(command):
                self.happen("", change, after_us=0)
        return super().execute(command)


Steps = Callable[[Console, NetworkScreen, Pilot[None]], Awaitable[None]]


def played(cluster: FakeCluster, steps: Steps, size: tuple[int, int] = (140, 45)) -> None:
    async def scenario() -> None:
        console = Console(cluster)
        async with console.run_test(size=size) as pilot:
            await shown(console, pilot)
            await pilot.press("6")
            await shown(console, pilot)
            view = console.top
            assert isinstance(view, NetworkScreen)
            await steps(console, view, pilot)

    asyncio.run(scenario())


async def shown(console: Console, pilot: Pilot[None]) -> str:
    """What is on the screen once everything that happened has been taken in."""
    await settle(pilot)
    view = console.top
    if isinstance(view, NetworkScreen) and view._predictor is not None:
        await asyncio.to_thread(view._predictor.join)
        await settle(pilot)
    return screen_text(console)


def wired(labels: tuple[str, ...] = FIVE, *, writable: bool = True) -> WiredCluster:
    cluster = WiredCluster(labels, writable=writable)
    cluster.form()
    return cluster


def test_links_have_glyph_and_word_and_are_drawn() -> None:
    cluster = wired()
    cluster.execute(CutLink(("athens",), ("delos",), one_way=True))
    cluster.execute(DelayLink(("byzantium",), ("cyrene",), 250_000))

    async def steps(console: Console, view: NetworkScreen, pilot: Pilot[None]) -> None:
        text = screen_text(console)
        assert "↛ one-way" in text and "~ slow" in text and "● up" in text
        assert "one-way links: ✕" not in text and "↛ one-way 1, ~ slow 2, ● up 17" in text
        assert "A athens ▲" in text and "2 faults in force" in text
        assert "athens: cut to delos" in text
        await pilot.press("j")
        assert "byzantium: slow by 250 ms both ways with cyrene" in await shown(console, pilot)

    played(cluster, steps)


def test_the_matrix_has_words_where_all_of_them_have_room_and_glyphs_elsewhere() -> None:
    cluster = wired()
    cluster.execute(CutLink(("athens",), ("delos",), one_way=True))
    picture, model = Picture(), LinkModel()
    for record in cluster.drain():
        picture.apply(record)
    seen = {}
    for width in (40, 60, 100):
        model.update(picture, cluster.labels, ("one-way",), {}, width)
        assert sum(column.width for column in model.columns) <= width
        fixed = model.fixed_columns
        seen[width] = {cell.text for cell in model.cells("athens", fixed, len(model.columns))}
    assert seen == {40: {"—", "●", "↛"}, 60: {"—", "●", "↛"}, 100: {"—", "● up", "↛ one-way"}}


def test_a_preset_is_foretold_before_it_is_made_and_undone_after() -> None:
    cluster = wired()

    async def steps(console: Console, view: NetworkScreen, pilot: Pilot[None]) -> None:
        await pilot.press("n")
        text = await shown(console, pilot)
        assert "planned: halves (blackhole)" in text
        assert "athens stays master with byzantium, cyrene" in text and "delos is master then with ephesus" in text
        assert "delos claims the mastership, suspecting athens, byzantium, cyrene" in text
        assert "assumed" in text and "founded anew" in text
        assert not cluster.commands and "no fault is in force" in text
        await pilot.press("b")
        text = await shown(console, pilot)
        halves = Partition((("athens", "byzantium", "cyrene"), ("delos", "ephesus")))
        assert cluster.commands == [halves]
        assert "1 fault in force" in text and "✕ partition" in text and "planned" not in text
        assert "heal athens,byzantium,cyrene delos,ephesus" in text
        await pilot.press("U")
        text = await shown(console, pilot)
        assert not cluster.conditions.conditions and "no fault is in force" in text

    played(cluster, steps)


def test_the_key_goes_through_all_presets_and_back_to_none() -> None:
    cluster = wired()

    async def steps(console: Console, view: NetworkScreen, pilot: Pilot[None]) -> None:
        await pilot.press("j", "j")
        titles = []
        for _ in range(6):
            await pilot.press("n")
            titles.append(view._plan.title if view._plan else "")
        assert titles == ["halves", "isolate cyrene", "bridge cyrene", "ring of majorities", "3 racks", ""]

    played(cluster, steps)


def test_presets_can_be_typed() -> None:
    cluster = wired()

    async def steps(console: Console, view: NetworkScreen, pilot: Pilot[None]) -> None:
        for line, title in (
            ("preset isolate delos", "isolate delos"),
            ("preset bridge byzantium", "bridge byzantium"),
            ("preset racks 2", "2 racks"),
            ("preset ring", "ring of majorities"),
        ):
            console.answered(":", line)
            await pilot.pause()
            assert view._plan is not None and view._plan.title == title
        for line, why in (
            ("preset moon", "there is no preset 'moon'"),
            ("preset racks many", "not a number of racks"),
            ("preset halves athens", "stands alone"),
            ("preset isolate nobody", "not among the running members"),
            ("preset racks 9", "takes 9 running members at least"),
        ):
            console.answered(":", line)
            await pilot.pause()
            assert why in screen_text(console)
        await pilot.press("C")
        assert view._plan is None

    played(cluster, steps)


def test_sides_are_put_together_by_hand() -> None:
    cluster = wired()

    async def steps(console: Console, view: NetworkScreen, pilot: Pilot[None]) -> None:
        await pilot.press("space", "j", "space", "u")
        assert "one side is no partition" in screen_text(console)
        await pilot.press("b")
        assert "nothing is planned" in screen_text(console) and not cluster.commands
        await pilot.press("escape", "j", "u", "u", "j", "u", "u", "u")
        assert view._sides == {"athens": 1, "byzantium": 1, "cyrene": 2, "delos": 3}
        await pilot.press("u", "u")
        assert view._sides == {"athens": 1, "byzantium": 1, "cyrene": 2}
        assert "A[1] athens" in await shown(console, pilot)
        await pilot.press("r", "b")
        await shown(console, pilot)
        assert cluster.commands == [Partition((("athens", "byzantium"), ("cyrene",)), "reset")]
        assert "(reset)" in screen_text(console)

    played(cluster, steps)


def test_a_plan_that_is_refused_stays() -> None:
    cluster = wired()

    async def steps(console: Console, view: NetworkScreen, pilot: Pilot[None]) -> None:
        cluster.execute = FakeCluster.execute.__get__(cluster)  # type: ignore[method-assign]
        cluster.refuse("not today")
        await pilot.press("n", "b")
        assert "not today" in await shown(console, pilot)
        assert view._plan is not None

    played(cluster, steps)


def test_faults_are_listed_with_age_and_undone_one_by_one() -> None:
    cluster = wired()
    cluster.execute(CutLink(("athens",), ("byzantium",)))
    cluster.happen("", ProcessPaused("ephesus"), after_us=130_000_000)

    async def steps(console: Console, view: NetworkScreen, pilot: Pilot[None]) -> None:
        text = screen_text(console)
        assert "‖ paused" in text and "pause ephesus" in text and "resume ephesus" in text
        assert "cut athens byzantium" in text and "2 min" in text
        console.answered(":", "undo 3")
        await pilot.pause()
        assert "there is no fault '3'" in screen_text(console)
        console.answered(":", "undo 2")
        await pilot.pause()
        await shown(console, pilot)
        assert not cluster.conditions.conditions
        view.faults.focus()
        await pilot.pause()
        assert "pause ephesus: undone by resume ephesus" in await shown(console, pilot)
        await pilot.press("U")
        assert cluster.commands[-1] == ResumeMember("ephesus")

    played(cluster, steps)


def test_ages_are_right_when_the_view_is_opened_late() -> None:
    cluster = wired()
    cluster.execute(CutLink(("athens",), ("byzantium",)))
    cluster.happen("athens", ProcessPaused("ephesus"), after_us=10_000_000)

    async def steps(console: Console, view: NetworkScreen, pilot: Pilot[None]) -> None:
        assert [fault.age(cluster.now_us()) for fault in view._ledger.faults()] == ["0 s", "10 s"]
        cluster.execute(CutLink(("athens",), ("cyrene",)))
        await shown(console, pilot)
        assert [fault.age(cluster.now_us()) for fault in view._ledger.faults()] == ["0 s", "0 s", "10 s"]

    played(cluster, steps)


def test_on_a_read_only_cluster_faults_are_only_foretold() -> None:
    cluster = wired(writable=False)

    async def steps(console: Console, view: NetworkScreen, pilot: Pilot[None]) -> None:
        await pilot.press("n", "b", "U")
        assert "planned: halves" in await shown(console, pilot)
        assert not cluster.commands

    played(cluster, steps)


def test_the_layout_can_be_chosen_while_members_are_few() -> None:
    cluster = wired()

    async def steps(console: Console, view: NetworkScreen, pilot: Pilot[None]) -> None:
        assert view.topology.display and view.matrix.display
        await pilot.press("z")
        assert not view.topology.display and view.matrix.display
        await pilot.press("z")
        assert view.topology.display and not view.matrix.display
        console.answered(":", "layout both")
        await pilot.pause()
        assert view.topology.display and view.matrix.display
        console.answered(":", "layout round")
        await pilot.pause()
        assert "there is no layout 'round'" in screen_text(console)

    played(cluster, steps)


def test_of_many_members_there_is_a_matrix_with_letters() -> None:
    cluster = wired(tuple(f"m{place}" for place in range(60)))

    async def steps(console: Console, view: NetworkScreen, pilot: Pilot[None]) -> None:
        assert not view.topology.display
        assert [column.title for column in view._links.columns[-3:]] == ["AF", "AG", "AH"]
        await pilot.press("z")
        assert "too many to draw" in screen_text(console)
        await pilot.press("G", "n")
        text = await shown(console, pilot)
        assert "m0 stays master with m1, m2, m3, m4, m5, m6, m7, m8 and 21 more" in text

    played(cluster, steps, (80, 24))


def test_hostile_names_are_shown_as_they_are() -> None:
    cluster = wired(("[b]x[/b]", "[/]", "a b", "\x1b[31mred"))

    async def steps(console: Console, view: NetworkScreen, pilot: Pilot[None]) -> None:
        await pilot.press("n")
        text = await shown(console, pilot)
        assert "[b]x[/b]" in text and "[/]" in text and "\x1b" not in text
        await pilot.press("b")
        await shown(console, pilot)
        await pilot.press("U")
        await shown(console, pilot)
        assert not cluster.conditions.conditions

    played(cluster, steps)


def test_in_the_past_the_faults_of_then_are_in_force() -> None:
    cluster = wired()
    cluster.execute(CutLink(("athens",), ("byzantium",)))
    cut_us = cluster.now_us()
    cluster.happen("", ProcessPaused("ephesus"), after_us=10_000_000)

    async def steps(console: Console, view: NetworkScreen, pilot: Pilot[None]) -> None:
        assert "2 faults in force" in screen_text(console)
        console.goto("network", at_us=cut_us + 3_000_000)
        text = await shown(console, pilot)
        assert "1 fault in force" in text and "3 s     cut athens byzantium" in text
        await pilot.press("U")
        assert "what is shown is the past" in await shown(console, pilot)
        assert len(cluster.commands) == 1

    played(cluster, steps)
