"""The painted replica map on its own: what is in sight, what is painted again, where the cursor goes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest
from textual.app import App, ComposeResult
from textual.geometry import Region
from textual.pilot import Pilot

from quarterdeck.backend.boards.replicas.replica_map import EMPTY, Column, ReplicaCell
from quarterdeck.backend.picture.text.formatting import letter_of
from quarterdeck.widgets.replica_map import GUTTER, ReplicaMapView, Zoom
from tests.app.fakes.screen_text import screen_text

WIDE = (GUTTER + 40 + 2, 12)
"""Forty cells for partitions, and two for the scroll bar."""


class Columns:
    """A table of `count` partitions with three replicas, held by five members in turn; notes what it was asked for."""

    revision = 0
    width = 3
    letter_width = 1

    def __init__(self, count: int) -> None:
        self.count = count
        self.changed: dict[int, Column] = {}
        self.asked: set[int] = set()
        self._made: dict[int, Column] = {}

    def column(self, partition: int) -> Column:
        self.asked.add(partition)
        if partition in self.changed:
            return self.changed[partition]
        if partition not in self._made:
            places = [(partition + index) % 5 for index in range(3)]
            self._made[partition] = tuple(ReplicaCell(letter_of(place), place, "held") for place in places)
        return self._made[partition]

    def change(self, partition: int, column: Column) -> None:
        self.changed[partition] = column
        self.revision += 1


class Stage(App[None]):
    def __init__(self, count: int = 1_000) -> None:
        super().__init__()
        self.model = Columns(count)
        self.map = ReplicaMapView(self.model)
        self.shown: Sequence[int] = range(count)
        self.chosen = 0
        self.painted: list[Region] = []

    def compose(self) -> ComposeResult:
        yield self.map

    def on_mount(self) -> None:
        self.map.show(self.shown)
        self.map.focus()

    def on_replica_map_view_chosen(self) -> None:
        self.chosen += 1


def on_stage(scenario: Callable[[Stage, Pilot[None]], Awaitable[None]], size: tuple[int, int] = WIDE) -> None:
    async def play() -> None:
        app = Stage()
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            await scenario(app, pilot)

    asyncio.run(play())


@pytest.mark.parametrize(
    ("zoom", "lines"),
    [
        ("wide", ["    p0        p5        p10", "own A B C D E A B", "b1  B C D E A B C", "b2  C D E A B C D"]),
        ("letters", ["    p0   p5   p10  p15  p20", "own ABCDEABCDE", "b1  BCDEABCDEA", "b2  CDEABCDEAB"]),
        ("halves", ["    p0   p5   p10  p15  p20", "0/1 ▀▀▀▀▀▀▀▀▀▀", "2/3 ▀▀▀▀▀▀▀▀▀▀"]),
    ],
)
def test_zooms(zoom: Zoom, lines: list[str]) -> None:
    async def scenario(app: Stage, pilot: Pilot[None]) -> None:
        app.map.set_zoom(zoom)
        await pilot.pause()
        painted = screen_text(app).split("\n")
        assert [one[: len(line)] for one, line in zip(painted, lines, strict=False)] == lines
        assert painted[len(lines)].startswith("    p20" if zoom == "wide" else "    p40")

    on_stage(scenario)


def test_marks_beside_letters_in_place_of_them_and_over_halves() -> None:
    single = ReplicaCell("A", 0, "single")
    column = (single, EMPTY["gap"], EMPTY["vacant"])
    looks = {"wide": ["A!B C", "∅ C D", "· D E"], "letters": ["!BC", "∅CD", "·DE"], "halves": ["∅▀▀", "·▀▀"]}

    async def scenario(app: Stage, pilot: Pilot[None]) -> None:
        app.model.change(0, column)
        app.map.show(app.shown)
        zoom: Zoom
        for zoom in ("wide", "letters", "halves"):
            app.map.set_zoom(zoom)
            await pilot.pause()
            painted = screen_text(app).split("\n")[1 : 1 + len(looks[zoom])]
            assert [line[GUTTER : GUTTER + len(looks[zoom][0])] for line in painted] == looks[zoom]

    on_stage(scenario)


def test_only_what_is_in_sight_is_asked_for_and_only_lines_that_changed_are_painted_again() -> None:
    async def scenario(app: Stage, pilot: Pilot[None]) -> None:
        await pilot.pause()
        screen_text(app)  # paints all of it, whenever the console would have
        assert app.model.asked and max(app.model.asked) < 100
        regions: list[Region] = []
        refresh = app.map.refresh

        def noted(*some: Region, **options: bool) -> ReplicaMapView:
            regions.extend(some or [app.map.region])
            return refresh(*some, **options)

        app.map.refresh = noted  # type: ignore[method-assign, assignment]
        app.model.asked.clear()
        app.map.show(app.shown)
        assert not regions and not app.model.asked  # nothing is new, so nothing is even looked at
        before = app.model.column(21)
        app.model.change(21, (before[0], ReplicaCell("E", 4, "doubtful"), before[2]))
        app.model.change(900, (EMPTY["gap"],) * 3)
        app.map.show(app.shown)
        assert [(region.y, region.height) for region in regions] == [
            (4 + 2, 1)
        ]  # the second band's line of the first backups
        await pilot.pause()
        assert "E?" in screen_text(app).split("\n")[6]

    on_stage(scenario)


def test_the_cursor_walks_through_bands_and_stays_on_its_partition() -> None:
    async def scenario(app: Stage, pilot: Pilot[None]) -> None:
        here = app.map
        await pilot.press("right", "down")
        assert (here.partition, here.index) == (1, 1)
        await pilot.press("down", "down")
        assert (here.partition, here.index) == (21, 0)
        await pilot.press("up")
        assert (here.partition, here.index) == (1, 2)
        await pilot.press("left", "left")
        assert here.partition == 0
        await pilot.press("G")
        await pilot.pause()
        assert here.partition == 999 and "p980" in screen_text(app)
        await pilot.press("pageup", "g", "pagedown")
        assert here.partition == 60
        here.show([3, 60, 70, 80])
        assert here.partition == 60
        here.show([3, 70])
        assert here.partition == 70
        here.show([3])
        assert here.partition == 3
        here.show([])
        assert here.partition is None
        await pilot.press("down", "up", "left", "right", "pagedown", "G", "space")
        assert app.chosen == 0
        here.show(range(1_000))
        here.point_at(500, 2)
        await pilot.press("space")
        await pilot.pause()
        assert (app.chosen, here.partition, here.index) == (1, 500, 2)

    on_stage(scenario)


def test_the_mouse_puts_the_cursor_where_it_points() -> None:
    async def scenario(app: Stage, pilot: Pilot[None]) -> None:
        await pilot.click(ReplicaMapView, offset=(GUTTER + 6, 6))
        assert (app.map.partition, app.map.index) == (23, 1)
        await pilot.click(ReplicaMapView, offset=(0, 2))
        await pilot.click(ReplicaMapView, offset=(GUTTER, 4))  # a ruler
        assert (app.map.partition, app.map.index) == (23, 1)

    on_stage(scenario)


@pytest.mark.parametrize("size", [(1, 1), (5, 3), (GUTTER, 2), (300, 80)])
def test_any_size_will_do(size: tuple[int, int]) -> None:
    async def scenario(app: Stage, pilot: Pilot[None]) -> None:
        zoom: Zoom
        for zoom in ("halves", "letters", "wide"):
            app.map.set_zoom(zoom)
            await pilot.press("G", "up", "g", "down")
            await pilot.pause()
            screen_text(app)
        await pilot.resize_terminal(60, 20)
        await pilot.pause()
        assert "p0" in screen_text(app) or app.map.scroll_offset.y

    on_stage(scenario, size)
