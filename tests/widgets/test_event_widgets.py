"""The tail's cursor and marks, and the space–time diagram."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from textual.app import App, ComposeResult
from textual.pilot import Pilot

from quarterdeck.backend.picture.explain.space_time import SpaceTime, SpaceTimeRow
from quarterdeck.backend.picture.text.formatting import clock_text, text_filter
from quarterdeck.widgets.space_time import SpaceTimeDiagram
from quarterdeck.widgets.tail_log import TailLine, TailLog
from tests.app.fakes.screen_text import screen_text
from tests.picture.played_scenarios import event_index_of


class Stage(App[None]):
    """One widget that fills the screen."""

    def __init__(self, widget: TailLog[str] | SpaceTimeDiagram) -> None:
        super().__init__()
        self._widget = widget
        self.moves = 0

    def compose(self) -> ComposeResult:
        yield self._widget

    def on_mount(self) -> None:
        self._widget.focus()

    def on_tail_log_moved(self) -> None:
        self.moves += 1

    def on_space_time_diagram_moved(self) -> None:
        self.moves += 1


def play(stage: Stage, talk: Callable[[Pilot[None]], Awaitable[None]], size: tuple[int, int] = (60, 10)) -> None:
    async def scenario() -> None:
        async with stage.run_test(size=size) as pilot:
            await talk(pilot)

    asyncio.run(scenario())


def tail_of(lines: int, *, capacity: int = 50) -> TailLog[str]:
    tail: TailLog[str] = TailLog(TailLine, title="tail", matcher_of=text_filter, capacity=capacity)
    tail.extend(f"line {place}" for place in range(lines))
    return tail


def test_the_cursor_pauses_moves_and_reaches_the_end_again() -> None:
    tail = tail_of(30)
    stage = Stage(tail)

    async def talk(pilot: Pilot[None]) -> None:
        assert tail.pointed is None and tail.following
        await pilot.press("up")
        assert tail.pointed == "line 29" and not tail.following
        await pilot.press("up", "k")
        tail.extend(["line 30"])
        await pilot.pause()
        assert tail.pointed == "line 27" and tail.unseen == 1
        assert "▸ line 27" in screen_text(stage)
        await pilot.press("home")
        assert tail.pointed == "line 0"
        await pilot.press("pagedown")
        assert tail.pointed == "line 8"
        await pilot.click(TailLog, offset=(5, 3))
        assert tail.pointed == "line 2"
        await pilot.press("end")
        assert tail.following and tail.pointed is None
        assert stage.moves >= 6

    play(stage, talk)


def test_the_cursor_stays_in_the_ring_when_its_entry_falls_out() -> None:
    tail = tail_of(50)
    stage = Stage(tail)

    async def talk(pilot: Pilot[None]) -> None:
        await pilot.press("home")
        for place in range(50, 95):
            tail.extend([f"line {place}"])
        await pilot.pause()
        assert tail.pointed == "line 45"
        assert "▸ line 45" in screen_text(stage)

    play(stage, talk)


def test_the_cursor_stays_in_sight_when_the_room_shrinks() -> None:
    tail = tail_of(30)
    stage = Stage(tail)

    async def talk(pilot: Pilot[None]) -> None:
        await pilot.press("up", *["up"] * 8)
        assert "▸ line 21" in screen_text(stage).splitlines()[1]
        await pilot.resize_terminal(60, 7)
        await pilot.pause()
        assert tail.pointed == "line 21" and "▸ line 21" in screen_text(stage)

    play(stage, talk)


def test_what_came_in_a_pause_stays_out_of_sight_when_the_room_grows() -> None:
    tail = tail_of(3)
    stage = Stage(tail)

    async def talk(pilot: Pilot[None]) -> None:
        await pilot.press("up")
        tail.extend(["line 3"])
        await pilot.resize_terminal(60, 12)
        await pilot.pause()
        assert tail.unseen == 1 and "line 3" not in screen_text(stage)

    play(stage, talk)


def test_marks_and_matches() -> None:
    tail = tail_of(40)
    stage = Stage(tail)

    async def talk(pilot: Pilot[None]) -> None:
        assert not tail.next_match(-1)
        tail.set_filter("line 1")
        assert len(tail.shown) == 11
        tail.point_at(lambda entry: entry == "line 15")
        tail.set_hiding(False)
        await pilot.pause()
        assert tail.pointed == "line 15" and len(tail.shown) == 40
        assert "▸•line 15" in screen_text(stage) and "• marks /line 1" in screen_text(stage)
        assert tail.next_match(1) and tail.pointed == "line 16"
        tail.point_at(lambda entry: entry == "line 19")
        assert not tail.next_match(1)
        assert tail.next_match(-1) and tail.pointed == "line 18"
        assert not tail.point_at(lambda entry: entry == "nowhere")
        tail.set_hiding(True)
        assert tail.pointed == "line 18" and len(tail.shown) == 11
        tail.extend(["line 100", "other"])
        assert len(tail.shown) == 12
        await pilot.press("escape")
        assert tail.filter_text == "" and len(tail.shown) == 42

    play(stage, talk)


def words(row: SpaceTimeRow) -> str:
    return f"words of {row.record.member}"


def diagram_of(name: str, labels: int = 20, zoom_us: int = 0) -> tuple[SpaceTimeDiagram, SpaceTime]:
    event_index = event_index_of(name)
    known = list(dict.fromkeys(record.member for record in event_index.records if record.uuid != record.run))
    model = SpaceTime(event_index, known[:labels], zoom_us)
    model.extend(event_index.records)
    return SpaceTimeDiagram(clock_text, words), model


def test_arrows_end_at_the_mark_and_lanes_of_the_dead_are_empty() -> None:
    widget, model = diagram_of("master-crash")

    async def talk(pilot: Pilot[None]) -> None:
        widget.show(model)
        await pilot.pause()
        lines = screen_text(pilot.app).splitlines()
        assert lines[1].split() == ["A", "athens", "B", "byzantium", "C", "cyrene", "D", "delphi"]
        arrow = next(line for line in lines if "● v5B" in line and "├" in line)
        assert arrow.index("├") == lines[1].index("byzantium") - 2
        assert arrow.index("▶") + 1 == arrow.index("●")
        assert not arrow[12 : arrow.index("├")].strip()

    play(Stage(widget), talk, (80, 40))


def test_moving_following_and_what_is_painted_anew() -> None:
    widget, model = diagram_of("cut-racks")
    stage = Stage(widget)

    async def talk(pilot: Pilot[None]) -> None:
        widget.show(model)
        assert widget.following and widget.cursor == len(model) - 1
        await pilot.press("up", "up")
        assert widget.cursor == len(model) - 2 and not widget.following
        await pilot.press("g")
        assert widget.cursor == 0
        await pilot.pause()
        assert "‖ paused, row 1 of" in screen_text(stage)
        assert screen_text(stage).splitlines()[2].startswith("▸")
        await pilot.press("pagedown", "j")
        assert widget.cursor == 8
        await pilot.press("G")
        assert widget.following
        await pilot.click(SpaceTimeDiagram, offset=(5, 4))
        assert not widget.following

    play(stage, talk, (100, 10))


def test_lanes_that_do_not_fit_are_reached_sideways() -> None:
    widget, model = diagram_of("cut-racks")
    stage = Stage(widget)

    async def talk(pilot: Pilot[None]) -> None:
        widget.show(model)
        await pilot.pause()
        assert screen_text(stage).splitlines()[1].split() == ["A", "a1", "B", "a2", "C", "b1"]
        assert "← 0 lanes, 3 lanes →" in widget.title_text
        await pilot.press("right", "right", "right", "right", "right")
        await pilot.pause()
        assert screen_text(stage).splitlines()[1].split() == ["D", "b2", "E", "c1", "F", "c2"]
        await pilot.press("left")
        await pilot.pause()
        assert screen_text(stage).splitlines()[1].split()[0] == "C"

    play(stage, talk, (42, 30))


def test_room_at_the_right_is_for_words_and_every_line_is_as_wide_as_the_screen() -> None:
    for width, zoom_us in ((80, 0), (80, 1_000_000), (200, 0), (300, 10_000), (20, 0)):
        widget, model = diagram_of("p-graceful-two", zoom_us=zoom_us)

        async def talk(pilot: Pilot[None], widget: SpaceTimeDiagram = widget, model: SpaceTime = model) -> None:
            widget.show(model)
            await pilot.pause()
            for y in range(30):
                strip = widget.render_line(y)
                assert sum(segment.cell_length for segment in strip) == widget.size.width
            assert ("words of" in screen_text(pilot.app)) == (widget.size.width >= 200)

        play(Stage(widget), talk, (width, 30))
