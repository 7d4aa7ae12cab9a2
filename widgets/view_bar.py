"""The views of the console in one line: full names, short names or keys alone, whatever fits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rich.cells import cell_len
from rich.segment import Segment
from textual import events
from textual.strip import Strip

from quarterdeck.widgets.component_styles import ComponentStyles

GAPS = ("  ", " ")
"""Gaps between two views; the narrow one is tried before short names."""


class BarView(NamedTuple):
    """A view: the key that opens it, as operators read it and as Textual names it, and its names."""

    key: str
    key_name: str
    id: str
    title: str
    short: str

    def texts(self) -> tuple[str, str, str]:
        """Return the ways to write it, from the longest to the shortest."""
        return f"{self.key} {self.title}", f"{self.key} {self.short}", self.key


class ViewBar(ComponentStyles):
    """A bar of views. A click on a view opens it."""

    PREFIX = "view-bar"

    def __init__(self, views: Sequence[BarView], in_sight: str, *, id: str | None = None) -> None:
        """Create the bar of the view whose id is `in_sight`."""
        super().__init__(id=id)
        self._views, self._in_sight = tuple(views), in_sight

    def render_line(self, y: int) -> Strip:
        plain = self.rich_style
        segments = [Segment(" ", plain)]
        if y == 0:
            gap, texts = self._written()
            for view, text in zip(self._views, texts, strict=True):
                style = self.part_style("in-sight" if view.id == self._in_sight else "view")
                segments += [Segment(text, style), Segment(gap, plain)]
        return Strip(segments).crop_extend(0, self.size.width, plain)

    def on_click(self, event: events.Click) -> None:
        left = event.x - 1
        gap, texts = self._written()
        for view, text in zip(self._views, texts, strict=True):
            if 0 <= left < cell_len(text):
                self.app.simulate_key(view.key_name)
                return
            left -= cell_len(text) + len(gap)

    def _written(self) -> tuple[str, list[str]]:
        """Return the gap and the longest texts that all fit; as a last resort, only the view in sight has a name."""
        ways = [[view.texts()[way] for view in self._views] for way in range(3)]
        named = [view.texts()[1 if view.id == self._in_sight else 2] for view in self._views]
        for way in (ways[0], ways[1], named):
            for gap in GAPS:
                if 1 + sum(map(cell_len, way)) + len(gap) * (len(way) - 1) <= self.size.width:
                    return gap, way
        return GAPS[-1], ways[2]
