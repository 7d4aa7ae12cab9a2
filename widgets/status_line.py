"""One line of facts, repainted only when it says something new."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.cells import set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip
from textual.widget import Widget

from widgets.line_table import TONES, TableCell

GAP = "  "


class StatusLine(Widget):
    """Paints its parts from left to right; what does not fit is cut off at the right."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"status-line--{tone}" for tone in TONES}

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._parts: tuple[TableCell, ...] = ()
        self._style_of: dict[str, Style] = {}

    @property
    def parts(self) -> tuple[TableCell, ...]:
        return self._parts

    @property
    def text(self) -> str:
        """What it says, without tones."""
        return GAP.join(part.text for part in self._parts)

    def show(self, parts: Sequence[TableCell]) -> None:
        """Say `parts`."""
        said = tuple(part for part in parts if part.text)
        if said != self._parts:
            self._parts = said
            self.refresh()

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        if y:
            return Strip.blank(width, self._style("plain"))
        segments = [Segment(" ", self._style("plain"))]
        for part in self._parts:
            segments += [Segment(part.text, self._style(part.tone)), Segment(GAP, self._style("plain"))]
        strip = Strip(segments)
        if strip.cell_length - len(GAP) > width:
            segments = list(strip.crop(0, max(0, width - 1)))
            strip = Strip([*segments, Segment(set_cell_size("…", 1), self._style("plain"))])
        return strip.crop_extend(0, width, self._style("plain"))

    def notify_style_update(self) -> None:
        self._style_of.clear()
        super().notify_style_update()

    def _style(self, tone: str) -> Style:
        style = self._style_of.get(tone)
        if style is None:
            style = self.rich_style + self.get_component_rich_style(f"status-line--{tone}", partial=True)
            self._style_of[tone] = style
        return style
