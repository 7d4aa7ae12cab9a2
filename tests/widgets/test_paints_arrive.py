"""Whatever a loaded machine delays or overtakes, in the end the terminal shows what the widgets hold."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Sequence

import pytest
from rich.console import RenderableType
from textual import messages
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual.app import App, ComposeResult
from textual.containers import Horizontal, Vertical
from textual.geometry import Region
from textual.message import Message
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widgets import Static

from quarterdeck.app.commands.confirmation import ConfirmScreen
from quarterdeck.backend.boards.network_board import NetworkDrawing, NetworkNode
from quarterdeck.backend.picture.text.fact import Fact
from quarterdeck.widgets.component_styles import ComponentStyles
from quarterdeck.widgets.dirty_rows import DirtyRowsCompositor
from quarterdeck.widgets.fact_sheet import FactSheet
from quarterdeck.widgets.line_table import Column, LineTable, TableCell
from quarterdeck.widgets.pane import Pane
from quarterdeck.widgets.replica_map import ReplicaMapView
from quarterdeck.widgets.status_line import StatusLine
from quarterdeck.widgets.tail_log import TailLine, TailLog
from quarterdeck.widgets.topology import Topology
from tests.thoroughness import long_after
from tests.waiting import LIMIT_SECONDS
from tests.widgets.test_replica_map import Columns

ROUNDS, STEPS = 25, 4
CITIES = ("athens", "byzantium", "cyrene")
SIZES = ((80, 24), (60, 18), (100, 30))


class Numbers:
    """A table of rows and two columns, whose figures change."""

    columns = (Column("row", 8, whole=True), Column("figure", 12))
    fixed_columns = 1

    def __init__(self) -> None:
        self.keys: Sequence[str] = [f"r{number}" for number in range(12)]
        self.figures = dict.fromkeys(self.keys, 0)

    def cells(self, key: str, first: int, last: int) -> Sequence[TableCell]:
        return [TableCell(key), TableCell(str(self.figures.get(key, 0)))][first:last]

    def outlier(self, key: str) -> bool:
        return self.figures.get(key, 0) % 7 == 3


class LoadedScreen(Screen[None]):
    """One of each widget. What it is sent about changes waits for a random time, and is delivered in a random order."""

    DEFAULT_CSS = """
    #line, #edge { height: 1; }
    #table { height: auto; max-height: 50%; } #map, #sheet, #tail { height: 1fr; } #left, #right { width: 1fr; }
    """

    def __init__(self, draw: random.Random) -> None:
        super().__init__()
        self._compositor = DirtyRowsCompositor()
        self.draw, self.late, self.loaded = draw, list[Message](), False
        self.numbers, self.columns = Numbers(), Columns(200)
        self.line, self.below = StatusLine(id="line", most_lines=2), StatusLine(id="edge")
        self.table, self.sheet = LineTable(self.numbers, id="table"), FactSheet(id="sheet")
        self.tail: TailLog[int] = TailLog(
            lambda number: TailLine(f"line {number}"),
            title="tail",
            matcher_of=lambda text: lambda number: text in str(number),
            id="tail",
        )
        self.map = ReplicaMapView(self.columns, id="map")

    def compose(self) -> ComposeResult:
        yield self.line
        with Horizontal():
            with Vertical(id="left"):
                yield Pane("1", "numbers", self.table, id="pane")
                yield self.map
            with Vertical(id="right"):
                yield self.sheet
                yield self.tail
        yield self.below

    def post_message(self, message: Message) -> bool:
        late = self.loaded and isinstance(message, messages.Update | messages.Layout)
        if late and self.draw.random() < 0.5:
            self.late.append(message)
            return True
        return super().post_message(message)

    def release(self) -> None:
        self.draw.shuffle(self.late)
        while self.late:
            super().post_message(self.late.pop())

    def change(self, step: int, *, layout: bool) -> None:
        """Change something, as views do at each tick; a `layout` repaints all, and would hide what was lost before."""
        draw = self.draw
        match draw.choice((0, 0, 2, 5, 8, *((1, 3, 4, 6, 7) if layout else ()))):
            case 0:
                self.numbers.figures[f"r{draw.randrange(12)}"] = step
            case 1:
                self.numbers.keys = [f"r{number}" for number in range(draw.randrange(1, 20))]
            case 2:
                self.tail.extend(range(step, step + draw.randrange(4)))
            case 3:
                self.sheet.show(
                    [Fact(f"fact {number}", f"at step {step} " * number) for number in range(draw.randrange(9))]
                )
            case 4:
                self.line.show(TableCell(f"at step {step}, " * draw.randrange(1, 9)), TableCell("strong", "strong"))
            case 5:
                self.columns.change(draw.randrange(40), self.columns.column(draw.randrange(200)))
            case 6:
                shown = draw.choice((self.map, self.sheet, self.table, self.tail))
                shown.display = not shown.display
            case 7:
                draw.choice((self.map, self.sheet, self.table, self.tail)).focus()
            case 8:
                self.table.action_page(draw.choice((-1, 1)))
                self.tail.action_move(draw.randint(-3, 3))
        self.table.show()
        self.map.show(range(self.columns.count))
        self.below.show(TableCell(f"step {step}"))


class LoadedApp(App[None]):
    """Keeps what a terminal would show."""

    def __init__(self, draw: random.Random) -> None:
        super().__init__()
        self.loaded = LoadedScreen(draw)
        self.shown: dict[tuple[int, int], str] = {}

    def on_mount(self) -> None:
        self.push_screen(self.loaded)

    def _display(self, screen: Screen[object], renderable: RenderableType | None) -> None:
        if isinstance(renderable, LayoutUpdate):
            left, top = renderable.region.offset
            lines = [(top + y, left, "".join(part.text for part in row)) for y, row in enumerate(renderable.strips)]
            spans = [(top + y, left, left + renderable.region.width) for y in range(len(renderable.strips))]
        elif isinstance(renderable, ChopsUpdate):
            spans = list(renderable.spans)
            chops = ((y, renderable.chops[y]) for y in {y for y, _, _ in spans})
            lines = [(y, x, strip.text) for y, row in chops for x, strip in row.items() if strip is not None]
        else:
            return
        for y, x, text in lines:
            for column, letter in enumerate(text, x):
                if any(row == y and first <= column < last for row, first, last in spans):
                    self.shown[column, y] = letter

    def screen_lines(self) -> list[str]:
        width, height = self.size
        return ["".join(self.shown.get((x, y), " ") for x in range(width)) for y in range(height)]


def held_by_widgets(screen: LoadedScreen) -> list[str]:
    """Return what the screen would be if all were painted now, without what widgets remember."""
    for widget in screen.query("*"):
        widget._styles_cache.clear()
    screen.table._looks.clear()
    screen.map._bands.clear()
    return [strip.text for strip in screen._compositor.render_strips()]


def assert_same(shown: list[str], held: list[str], where: str) -> None:
    different = [
        f"{y}: {ours!r} is shown of {theirs!r}"
        for y, (ours, theirs) in enumerate(zip(shown, held, strict=True))
        if ours != theirs
    ]
    assert not different, "\n".join((where, *different))


@pytest.mark.parametrize("seed", long_after(1, range(4)))
async def test_no_paint_is_lost(seed: int) -> None:
    draw = random.Random(seed)

    app = LoadedApp(draw)
    async with app.run_test(size=SIZES[0]) as pilot:
        await pilot.pause()
        screen = app.loaded
        for number in range(ROUNDS):
            screen.loaded = True
            layout = draw.random() < 0.3
            for step in range(STEPS):
                screen.change(number * STEPS + step, layout=layout)
                for _ in range(draw.randrange(4)):
                    await asyncio.sleep(draw.choice((0, 0, 0.01)))
                if draw.random() < 0.3:
                    screen.release()
            if layout and draw.random() < 0.2:
                await pilot.resize_terminal(*draw.choice(SIZES))
            screen.loaded = False
            screen.release()
            limit = time.monotonic() + LIMIT_SECONDS
            while (shown := app.screen_lines()) != (held := held_by_widgets(screen)) and time.monotonic() < limit:
                await pilot.pause(0.01)
            assert_same(shown, held, f"round {number}")


def on_loaded(check: Callable[[LoadedScreen, Pilot[None]], Awaitable[None]]) -> None:
    """Run `check`; in the end the terminal shows what the widgets hold."""

    async def scenario() -> None:
        app = LoadedApp(random.Random(0))
        async with app.run_test(size=SIZES[0]) as pilot:
            await pilot.pause()
            await check(app.loaded, pilot)
            await pilot.pause()
            await pilot.pause()
            assert_same(app.screen_lines(), held_by_widgets(app.loaded), "in the end")

    asyncio.run(scenario())


def test_a_place_that_is_asked_for_before_the_layout_loses_no_paint() -> None:
    async def check(screen: LoadedScreen, pilot: Pilot[None]) -> None:
        screen.sheet.display, screen.numbers.keys = False, ["r1"]
        screen.table.show()
        await pilot.pause()
        high = screen.table.size.height
        screen.numbers.keys = ["r1", "r2", "r3"]
        screen.table.show()
        screen.table._check_refresh()  # it is higher now; its message waits in the queue of the screen
        screen._compositor.update_widgets({screen.sheet})  # late news of what has gone: places are no more known
        assert screen._compositor._full_map_invalidated and screen.table.region.height > high
        await pilot.pause()
        assert screen.table.size.height > high

    on_loaded(check)


def test_a_layout_that_finds_all_where_it_was_before_a_scroll_loses_no_paint() -> None:
    async def check(screen: LoadedScreen, pilot: Pilot[None]) -> None:
        left = screen.query_one("#left")
        left.styles.overflow_y, screen.query_one("#pane").styles.height = "scroll", 40
        await pilot.pause()
        left.scroll_to(y=5, animate=False, immediate=True)
        await pilot.pause()
        left.scroll_to(y=0, animate=False, immediate=True)
        screen.tail.refresh(layout=True)
        for widget in (left, screen.tail):
            widget._check_refresh()  # one layout is for both

    on_loaded(check)


def test_what_a_view_paints_below_a_question_loses_no_paint_of_the_question() -> None:
    async def scenario() -> None:
        app, question = LoadedApp(random.Random(0)), ConfirmScreen("Kill n1?", "", "Kill")
        async with app.run_test(size=SIZES[0]) as pilot:
            await app.push_screen(question)
            await pilot.pause()
            static = question.query_one("#confirm-question", Static)
            static.update("Kill n2?", layout=False)
            static._check_refresh()
            question.refresh(Region(0, 0, 5, 1))  # as the view below does, at the same time
            await pilot.pause()
            assert any("Kill n2?" in line for line in app.screen_lines())

    asyncio.run(scenario())


class ResizedApp(App[None]):
    """A line that is cut and a drawing that fills the rest, each painted before it hears of its new size."""

    CSS = "StatusLine { height: 1; }"

    def compose(self) -> ComposeResult:
        self.line, self.topology = StatusLine(), Topology()
        self.line.show(TableCell("a sentence of many words " * 4))
        self.topology.show(NetworkDrawing(tuple(NetworkNode(name, "plain", False) for name in CITIES), ()))
        yield self.line
        yield self.topology


async def test_what_has_another_size_is_painted_for_it() -> None:
    app = ResizedApp()
    async with app.run_test(size=(80, 24)) as pilot:
        for size in ((60, 24), (60, 16), (90, 20)):
            await pilot.resize_terminal(*size)
            await pilot.pause()
            shown = [strip.text for strip in app.screen._compositor.render_strips()]
            assert shown[0].rstrip().endswith("…") and len(shown[0]) == size[0]
            for widget in app.screen.query("*"):
                widget._styles_cache.clear()
                if isinstance(widget, ComponentStyles):
                    widget.forget_painted()
            assert_same(shown, [strip.text for strip in app.screen._compositor.render_strips()], str(size))
