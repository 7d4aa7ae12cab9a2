"""The whole run as a strip: how much happened when, lanes of marks, and the playhead through all of them."""

from __future__ import annotations

from itertools import groupby

from rich.segment import Segment
from textual import events
from textual.message import Message
from textual.strip import Strip

from quarterdeck.backend.picture.replay.timeline import LANES, LEVELS, Timeline
from quarterdeck.widgets.component_styles import ComponentStyles, fit

LABEL_WIDTH = len("▔ 99999 events") + 1
BLOCKS = " ▁▂▃▄▅▆▇█"
DENSITY_LINES = 2
LINES = 1 + DENSITY_LINES + len(LANES) + 1
"""One line for the playhead's handle, then the density, the lanes, and the axis."""

HANDLE, LINE_OF_PLAYHEAD, EMPTY = "▼", "│", "·"


class TimelineStrip(ComponentStyles):
    """A strip that paints a `Timeline`. Call `show` when it has changed; `columns` is its width."""

    PREFIX = "timeline"
    DEFAULT_CSS = """
    .timeline--label { color: $text-muted; }
    .timeline--density { color: $text-primary; }
    .timeline--playhead { text-style: reverse bold; }
    """

    class Chosen(Message):
        """The operator clicked on a column."""

        def __init__(self, column: int) -> None:
            super().__init__()
            self.column = column

    class Resized(Message):
        """The number of columns has changed."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._model: Timeline | None = None

    @property
    def columns(self) -> int:
        return max(1, self.size.width - LABEL_WIDTH)

    def show(self, model: Timeline) -> None:
        """Paint `model` if it differs from the last one."""
        if model != self._model:
            self._model = model
            self.refresh()

    def on_resize(self) -> None:
        self.post_message(self.Resized())

    def on_click(self, event: events.Click) -> None:
        if event.x >= LABEL_WIDTH:
            self.post_message(self.Chosen(event.x - LABEL_WIDTH))

    def render_line(self, y: int) -> Strip:
        model, width = self._model, self.size.width
        if model is None or y >= LINES:
            return Strip.blank(width, self.part_style("plain"))
        columns = model.width
        if y == 0:
            label, cells = "", self._handle(model)
        elif y <= DENSITY_LINES:
            label = f"▔ {model.busiest} events" if y == 1 else "  in a column"
            cells = self._density(model, DENSITY_LINES - y)
        elif y < LINES - 1:
            lane, signals = model.lanes[y - 1 - DENSITY_LINES]
            label, cells = lane, [(EMPTY, "faint")] * columns
            for signal in signals:
                cells[signal.column] = (signal.letter, signal.tone)
        else:
            label, cells = "", self._axis(model)
        return self._paint(label, cells, model.playhead if y else None).crop_extend(0, width, self.part_style("plain"))

    def _handle(self, model: Timeline) -> list[tuple[str, str]]:
        cells = [(" ", "plain")] * model.width
        if model.playhead is not None:
            cells[model.playhead] = (HANDLE, "playhead")
        return cells

    def _density(self, model: Timeline, line: int) -> list[tuple[str, str]]:
        eighths = LEVELS // DENSITY_LINES
        return [(BLOCKS[min(eighths, max(0, level - line * eighths))], "density") for level in model.levels]

    def _axis(self, model: Timeline) -> list[tuple[str, str]]:
        text = [" "] * model.width
        free = 0
        for column, tick in model.ticks:
            label = f"╵{tick}"
            if column >= free and column + len(label) <= model.width:
                text[column : column + len(label)] = label
                free = column + len(label) + 1
        return [(sign, "label") for sign in text]

    def _paint(self, label: str, cells: list[tuple[str, str]], playhead: int | None) -> Strip:
        segments = [Segment(fit(label, LABEL_WIDTH), self.part_style("label"))]
        if playhead is not None and cells[playhead][0] in (" ", EMPTY):
            cells[playhead] = (LINE_OF_PLAYHEAD, "playhead")
        runs = groupby(enumerate(cells), key=lambda one: (one[1][1], one[0] == playhead))
        for (tone, at_playhead), run in runs:
            style = self.part_style(tone, "playhead" if at_playhead else "")
            segments.append(Segment("".join(cell[0] for _, cell in run), style))
        return Strip(segments, LABEL_WIDTH + len(cells))
