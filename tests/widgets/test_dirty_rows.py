"""The compositor that renders dirty rows only: it paints what Textual's paints, and renders less."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

from rich.segment import Segment
from textual._compositor import ChopsUpdate, Compositor
from textual.app import App, ComposeResult
from textual.containers import Horizontal
from textual.geometry import Region
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget

from quarterdeck.widgets.dirty_rows import DirtyRowsCompositor

WIDTH, HEIGHT = 40, 24


class Field(Widget):
    """A field of letters that differ by row and column. It counts the rows that it is asked for."""

    DEFAULT_CSS = "Field { height: 1fr; width: 1fr; border: solid white; }"

    asked = 0

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        return Strip([Segment("".join(chr(97 + (x + y + len(self.id or "")) % 26) for x in range(width)))], width)

    def render_lines(self, crop: Region) -> list[Strip]:
        self.asked += crop.height
        return super().render_lines(crop)


class Fields(Screen[None]):
    """Four fields above each other, one of them in two halves, and a small one over them."""

    DEFAULT_CSS = "Fields { layers: default above; } #over { layer: above; offset: 5 4; width: 12; height: 6; }"

    def __init__(self) -> None:
        super().__init__()
        self._compositor = DirtyRowsCompositor()

    def compose(self) -> ComposeResult:
        yield Field(id="top")
        yield Horizontal(Field(id="left"), Field(id="the-right"))
        yield Field(id="third-one")
        yield Field(id="bottommost")
        yield Field(id="over")


def on_fields(check: Callable[[Fields], None]) -> None:
    async def scenario() -> None:
        stage: App[None] = App()
        async with stage.run_test(size=(WIDTH, HEIGHT)) as pilot:
            screen = Fields()
            await stage.push_screen(screen)
            await pilot.pause()
            check(screen)

    asyncio.run(scenario())


def partial_update(kind: type[Compositor], screen: Fields, regions: set[Region]) -> ChopsUpdate:
    screen._compositor._dirty_regions = set(regions)
    update = kind.render_partial_update(screen._compositor)
    assert isinstance(update, ChopsUpdate)
    return update


def painted(update: ChopsUpdate) -> dict[tuple[int, int], str]:
    """Return what the update paints, by place."""
    cells = {}
    for y, left, right in update.spans:
        for x, strip in update.chops[y].items():
            for place, letter in enumerate(strip.text if strip is not None else "", x):
                if left <= place < right:
                    cells[place, y] = letter
    return cells


def test_what_is_painted_is_what_textual_paints() -> None:
    def check(screen: Fields) -> None:
        draw = random.Random(7)
        for _ in range(60):
            regions = {
                Region(draw.randrange(WIDTH - 1), draw.randrange(HEIGHT - 1), draw.randint(1, 30), draw.randint(1, 5))
                for _ in range(draw.randint(1, 4))
            }
            regions = {region.intersection(screen.region) for region in regions}
            ours, theirs = (
                painted(partial_update(kind, screen, regions)) for kind in (DirtyRowsCompositor, Compositor)
            )
            assert ours == theirs
            assert len(ours) >= max(region.area for region in regions)

    on_fields(check)


def test_dirty_rows_alone_are_rendered() -> None:
    far_apart = {Region(0, 1, WIDTH, 1), Region(0, HEIGHT - 2, WIDTH, 1)}

    def asked_by(kind: type[Compositor], screen: Fields) -> dict[str | None, int]:
        fields = [*screen.query(Field)]
        for field in fields:
            field.asked = 0
        partial_update(kind, screen, far_apart)
        return {field.id: field.asked for field in fields if field.asked}

    def check(screen: Fields) -> None:
        assert asked_by(DirtyRowsCompositor, screen) == {"top": 1, "bottommost": 1}
        assert len(asked_by(Compositor, screen)) == 6, (
            "Textual renders no longer all that lies between two dirty regions: drop our compositor, widgets/dirty_rows.py"
        )

    on_fields(check)
