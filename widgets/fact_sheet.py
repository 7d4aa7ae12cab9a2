"""A sheet of facts: headings at the left, or above when they are long, paragraphs wrapped to the width at their right.

Repaints only lines that changed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache
from typing import ClassVar

from rich.cells import cell_len
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from quarterdeck.backend.picture.text.fact import Fact
from quarterdeck.widgets.component_styles import ComponentStyles, fit, painted_line
from quarterdeck.widgets.line_table import TableCell

HEADING_WIDTH = 13
MARGIN = 1
LEAST_PARAGRAPH = 10
"""The least width of a paragraph, in cells."""

SheetLine = tuple[TableCell, ...]


class FactSheet(ScrollView, ComponentStyles, can_focus=True, inherit_bindings=False):
    """A sheet that paints the facts given to `show`."""

    PREFIX = "fact-sheet"

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "scroll_up", "Up", show=False),
        Binding("down,j", "scroll_down", "Down", show=False),
        Binding("pageup", "page_up", "Page up", show=False),
        Binding("pagedown", "page_down", "Page down", show=False),
        Binding("home,g", "scroll_home", "First", show=False),
        Binding("end,G", "scroll_end", "Last", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._facts: tuple[Fact, ...] = ()
        self._lines: tuple[SheetLine, ...] = ()

    def show(self, facts: Sequence[Fact]) -> None:
        """Show `facts`. If they are the same as before, this costs only a comparison."""
        shown = tuple(facts)
        if shown != self._facts:
            self._facts = shown
            self._lay_out()

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        place = self.scroll_offset.y + y
        runs = [(" " * MARGIN, self.part_style("plain"))]
        if place < len(self._lines):
            runs += [(text, self.part_style(tone)) for text, tone in self._lines[place]]
        return painted_line(runs, width, self.part_style("plain"))

    def on_mount(self) -> None:
        # A scrollbar that comes or goes leaves the paragraphs another width, and is no change of size.
        self.watch(self, "show_vertical_scrollbar", self._lay_out_later, init=False)

    def on_resize(self) -> None:
        self._lay_out()

    def _lay_out_later(self) -> None:
        self.call_after_refresh(self._lay_out)

    def _lay_out(self) -> None:
        room = max(LEAST_PARAGRAPH, self.scrollable_content_region.width - MARGIN - HEADING_WIDTH)
        before, self._lines = self._lines, tuple(line for fact in self._facts for line in _wrapped(fact, room))
        if len(before) != len(self._lines):
            # Where the height is given, lines that fit into it come and go without the whole screen being laid out anew.
            least = 0 if self.styles.auto_dimensions else self.scrollable_content_region.height
            size = Size(0, max(len(self._lines), least))
            if self.show_vertical_scrollbar and min(size.height, self.virtual_size.height) > least > 0:
                # The scroll bar stays, and nothing around the sheet moves.
                self.set_reactive(FactSheet.virtual_size, size)
                self._scroll_update(size)
            elif size != self.virtual_size:
                self.virtual_size = size
            self.refresh()
            return
        first, region = self.scroll_offset.y, self.scrollable_content_region
        changed = [
            Region(0, place - first, region.width, 1)
            for place in range(first, min(first + region.height, len(before)))
            if before[place] != self._lines[place]
        ]
        if changed:
            self.refresh(*changed)


@lru_cache(maxsize=512)
def _wrapped(fact: Fact, room: int) -> tuple[SheetLine, ...]:
    """Return the lines of `fact`, its paragraph in this number of cells. Most facts stay as before when shown again."""
    if fact.verbatim:
        return ((TableCell(fact.text, fact.tone),),)
    headings = [fact.heading]
    lines: list[SheetLine] = []
    if cell_len(fact.heading) >= HEADING_WIDTH:  # it would touch its paragraph or be cut, so it stands above it
        lines.append((TableCell(fact.heading, "heading"),))
        headings = []
    for part in Content(fact.text).wrap(room):
        heading = headings.pop() if headings else ""
        lines.append((TableCell(fit(heading, HEADING_WIDTH), "heading"), TableCell(part.plain, fact.tone)))
    return tuple(lines)


class RowDetail(FactSheet):
    """The facts about the row under the cursor. They are computed only while they are in sight and something has changed."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._row: Hashable = None
        self._about: Hashable = None
        self._asked: tuple[Hashable, Callable[[], Sequence[Fact]], Hashable] = None, tuple, None

    def show_facts(self, row: Hashable, facts: Callable[[], Sequence[Fact]], beat: Hashable) -> None:
        """Show the `facts` of this row; none for None. They are the same for the same `beat`."""
        self._asked = row, facts, beat
        if (row is None) != self.has_class("-about-nothing"):
            self.set_class(row is None, "-about-nothing")
        if not self.display or not self.size.width:
            return
        subject = (row, beat)
        if subject != self._about:
            moved = row != self._row
            self._about, self._row = subject, row
            self.show(facts() if row is not None else ())
            if moved:
                self.scroll_home(animate=False)

    def on_resize(self) -> None:
        self._about = None
        self.show_facts(*self._asked)
