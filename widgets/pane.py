"""A framed part of the screen: its key, its title and one figure stand in the upper edge, its content below.

Where there is little room, a pane is folded: only the edge is left, without corners, and shows the most important of the
content.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.segment import Segment
from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from quarterdeck.widgets.component_styles import ComponentStyles
from quarterdeck.widgets.line_table import TableCell


class PaneEdge(ComponentStyles):
    """The upper edge of a pane. In a folded pane it takes the focus in place of the body."""

    PREFIX = "pane-edge"

    def __init__(self, key: str, title: str) -> None:
        super().__init__(classes="pane-edge")
        self.key, self.title = key, title
        self.folded = False
        """Whether the rest of its pane is out of sight."""
        self._said: tuple[TableCell, ...] = ()

    @property
    def text(self) -> str:
        """All text of the edge."""
        return " ".join(filter(None, (self.key, self.title, *(part.text for part in self._said))))

    def show(self, *parts: TableCell) -> None:
        shown = tuple(part for part in parts if part.text)
        if shown != self._said:
            self._said = shown
            self.refresh()

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        line = self.part_style("line")
        room = width if self.folded else width - 1
        said = list(self._said)
        strip = self._painted(said)
        while strip.cell_length > room and said and ", " in said[-1].text:  # half a figure misleads
            said[-1] = TableCell(said[-1].text.rpartition(", ")[0], said[-1].tone)
            strip = self._painted(said)
        if strip.cell_length > room:
            strip = Strip([*strip.crop(0, max(0, room - 1)), Segment("…", line)])
        rest = max(0, room - strip.cell_length)
        end = [Segment(" " * rest, line)] if self.folded else [Segment("─" * rest + "┐", line)]
        return Strip([*strip, *end]).crop_extend(0, width, line)

    def _painted(self, said: Sequence[TableCell]) -> Strip:
        line = self.part_style("line")
        segments = [Segment("  " if self.folded else "┌ ", line)]
        if self.key:
            segments.append(Segment(f"{self.key} ", self.part_style("key")))
        segments.append(Segment(self.title, self.part_style("title")))
        for part in said:
            segments += [Segment("  " if self.folded else " ─ ", line), Segment(part.text, self.part_style(part.tone))]
        return Strip([*segments, Segment(" ", line)])


class Pane(Vertical):
    """A body in a frame. A click on its title asks to open it."""

    DEFAULT_CSS = """
    Pane { width: 1fr; height: 1fr; }
    .pane-edge { height: 1; width: 1fr; }
    .pane-body { height: 1fr; border: solid $border; border-top: none; scrollbar-size: 0 1; }
    .pane-edge--line { color: $border; }
    .pane-edge--key { text-style: bold; color: $footer-key-foreground; }
    .pane-edge--title { text-style: bold; color: $foreground; }
    Pane:focus-within .pane-edge--line { color: $text-primary; }
    Pane:focus-within .pane-edge--title { color: $text-primary; }
    Pane:focus-within .pane-body { border: solid $text-primary; border-top: none; }
    Pane.-folded:focus-within PaneEdge { background: $primary-muted; }
    """

    class Chosen(Message):
        """The operator wants to see this pane in full."""

        def __init__(self, pane: Pane) -> None:
            super().__init__()
            self.pane = pane

    def __init__(self, key: str, title: str, body: Widget, *, id: str) -> None:
        super().__init__(id=id, classes="pane")
        self.edge = PaneEdge(key, title)
        self.body = body
        body.add_class("pane-body", update=False)  # it is styled when it is mounted

    def compose(self) -> ComposeResult:
        yield self.edge
        yield self.body

    @property
    def folded(self) -> bool:
        """Whether only the edge is in sight."""
        return self.edge.folded

    def fold(self, folded: bool) -> None:
        """Show only the edge, or the body too. The focus stays in the pane."""
        if folded == self.edge.folded:
            return
        focused = self.has_focus_within
        self.edge.folded = folded
        self.edge.can_focus = folded
        self.body.display = not folded
        self.set_class(folded, "-folded")
        if focused:
            self.focus_inside()
        self.edge.refresh()

    def focus_inside(self) -> None:
        """Focus the body, or the edge of a folded pane."""
        (self.edge if self.edge.folded else self.body).focus()

    def on_click(self, event: events.Click) -> None:
        if event.widget is self.edge:
            self.post_message(self.Chosen(self))
