"""The views of the console in one line: whole names, short names or keys alone, whatever fits without being cut."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rich.cells import cell_len
from rich.segment import Segment
from textual import events
from textual.strip import Strip

from quarterdeck.widgets.component_styles import ComponentStyles

GAPS = ("  ", " ")
"""Between two views; the narrow one before names become short."""


class BarView(NamedTuple):
    """A view: the key that opens it as people read it and as Textual calls it, and what it is called."""

    key: str
    key_name: str
    id: str
    title: str
    short: str

    def texts(self) -> tuple[str, str, str]:
        """How it may be written, from the longest to the shortest."""
        return f"{self.key} {self.title}", f"{self.key} {self.short}", self.key


class ViewBar(ComponentStyles):
    """A click on a view opens it."""

    def __init__(self, views: Sequence[BarView], in_sight: str, *, id: str | None = None) -> None:
        """`in_sight` is the id of the view that the bar belongs to."""
        super().__init__(id=id)
        self._views, self._in_sight = tuple(views), in_sight

    def render_line(self, y: int) -> Strip:
        plain = self.rich_style
        segments = [Segment(" ", plain)]
        if y == 0:
            gap, texts = self._written()
            for view, text in zip(self._views, texts, strict=True):
                part = "in-sight" if view.id == self._in_sight else "view"
                style = plain + self.get_component_rich_style(f"view-bar--{part}", partial=True)
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
        """The gap, and each view in the longest way in which all fit; at last, the one in sight with its name."""
        ways = [[view.texts()[way] for view in self._views] for way in range(3)]
        named = [view.texts()[1 if view.id == self._in_sight else 2] for view in self._views]
        for way in (ways[0], ways[1], named):
            for gap in GAPS:
                if 1 + sum(map(cell_len, way)) + len(gap) * (len(way) - 1) <= self.size.width:
                    return gap, way
        return GAPS[-1], ways[2]
