"""A line of facts, or a few lines if one is too short, repainted only when its text changes."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.segment import Segment
from textual.containers import Vertical
from textual.strip import Strip

from quarterdeck.widgets.component_styles import ComponentStyles
from quarterdeck.widgets.line_table import TableCell

GAP = "  "

LEFT_OUT = TableCell("…", "faint")
"""Stands at the end of a line for the parts that have no room."""


class StatusLine(ComponentStyles):
    """A line that paints its parts from left to right; text that does not fit into `most_lines` is cut off."""

    PREFIX = "status-line"

    def __init__(
        self, *, id: str | None = None, classes: str | None = None, most_lines: int = 1, shrinks: bool = True
    ) -> None:
        """Create a line. With `most_lines` above 1 it is as high as its text; the style sheet gives the height of one line.

        A line that does not shrink keeps its height, so that what stands around it does not jump.
        """
        super().__init__(id=id, classes=classes)
        self._most_lines, self._shrinks = most_lines, shrinks
        self._fitted_width = self._laid_width = 0
        self._height = 1
        """The height requested last: the size follows later."""
        self._parts: tuple[TableCell, ...] = ()
        self._more: tuple[TableCell, ...] = ()
        self._lines: list[Strip] = []

    @property
    def parts(self) -> tuple[TableCell, ...]:
        """The painted parts, from left to right, as far as they fit."""
        return self._parts + self._more

    @property
    def text(self) -> str:
        """The text, without tones."""
        return GAP.join(part.text for part in self.parts)

    def show(self, *parts: TableCell, more: Sequence[TableCell] = ()) -> None:
        """Show `parts`, and behind them as many of `more` as fit into the last line, each whole or not at all."""
        shown, rest = tuple(part for part in parts if part.text), tuple(part for part in more if part.text)
        if (shown, rest) != (self._parts, self._more):
            self._parts, self._more = shown, rest
            self._lines = []
            self._fit()
            self.refresh()

    def on_resize(self) -> None:
        if self.size.width != self._fitted_width:
            self._fit()

    def render_line(self, y: int) -> Strip:
        if not self._lines or self._laid_width != self.size.width:  # it is painted before it hears of its new size
            self._lines = self._laid_out(self.size.width)
        if y < len(self._lines):
            return self._lines[y]
        return Strip.blank(self.size.width, self.part_style("plain"))

    def _fit(self) -> None:
        width = self.size.width
        if self._most_lines == 1 or not width:
            return
        self._lines = self._laid_out(width)
        needed = len(self._lines)
        if not self._shrinks and width == self._fitted_width:
            needed = max(needed, self._height)
        self._fitted_width = width
        if self._height != needed:
            self._height = self.styles.height = needed

    def _laid_out(self, width: int) -> list[Strip]:
        self._laid_width = width
        plain = self.part_style("plain")
        broken = [list(self._parts)]
        if Strip(self._segments(self._parts)).cell_length > width and self._most_lines > 1:
            broken = self._broken(width)
        for place, part in enumerate(self._more, start=1):
            room = width if place == len(self._more) else width - len(GAP) - len(LEFT_OUT.text)
            if Strip(self._segments([*broken[-1], part])).cell_length > room:
                broken[-1].append(LEFT_OUT)
                break
            broken[-1].append(part)
        lines = [Strip(self._segments(parts)) for parts in broken]
        last = lines[self._most_lines - 1 :]
        if last and (len(last) > 1 or last[0].cell_length > width):
            ended = Strip([*last[0].crop(0, min(max(0, width - 1), last[0].cell_length)), Segment("…", plain)])
            lines = [*lines[: self._most_lines - 1], ended]
        return [line.crop_extend(0, width, plain) for line in lines]

    def _segments(self, parts: Sequence[TableCell]) -> list[Segment]:
        plain = self.part_style("plain")
        segments = [Segment(" ", plain)]
        for place, part in enumerate(parts):
            segments += [Segment(GAP, plain)] if place else []
            segments.append(Segment(part.text, self.part_style(part.tone)))
        return segments

    def _broken(self, width: int) -> list[list[TableCell]]:
        lines: list[list[TableCell]] = [[]]
        used = 1
        for part in self._parts:
            text, gap = "", len(GAP) if lines[-1] else 0
            for word in part.text.split(" "):
                longer = f"{text} {word}" if text else word
                if used + gap + cell_len(longer) > width and (text or lines[-1]):
                    if text:
                        lines[-1].append(TableCell(text, part.tone))
                    lines.append([])
                    used, gap, longer = 1, 0, word
                text = longer
            lines[-1].append(TableCell(text, part.tone))
            used += gap + cell_len(text)
        return lines

    def forget_painted(self) -> None:
        self._lines = []


class StatusLines(Vertical):
    """Lines below each other, one for each sentence. Each wraps into at most three."""

    DEFAULT_CSS = "StatusLines { height: auto; } StatusLines StatusLine { height: 1; }"

    def __init__(self, most: int, *, id: str) -> None:
        self.lines = tuple(StatusLine(most_lines=3) for _ in range(most))
        super().__init__(*self.lines, id=id)

    def show(self, texts: Sequence[Sequence[TableCell]]) -> None:
        """Show these lines, as far as the widget may have this number of lines."""
        for place, line in enumerate(self.lines):
            wanted = place < len(texts)
            if wanted:
                line.show(*texts[place])
            if line.display != wanted:
                line.display = wanted
