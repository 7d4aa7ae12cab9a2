"""A table painted line by line: it asks its model only for cells in sight, and repaints only rows that changed.

Cursor and selection hold on to keys, so rows may come, go and change places underneath. The first columns stay put
while the others scroll sideways.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple, Protocol

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.actions import SkipAction
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from quarterdeck.widgets.component_styles import ComponentStyles, fit, painted_line, slid

MARKER_WIDTH = 2
"""Cells before the first column, for the marks of cursor and selection."""

LEAST_SENTENCE = 12
"""A column of sentences is left out where fewer cells of it would be in sight."""

MOVES = (
    Binding("up,k", "move(-1)", "Up", show=False),
    Binding("down,j", "move(1)", "Down", show=False),
    Binding("pageup", "page(-1)", "Page up", show=False),
    Binding("pagedown", "page(1)", "Page down", show=False),
    Binding("home,g", "edge(0)", "First", show=False),
    Binding("end,G", "edge(1)", "Last", show=False),
)
"""The keys of everything with a cursor on a line."""

NO_MATCH = "nothing here matches the filter: esc shows all again"
"""Stands in place of the rows while the filter leaves none."""

CURSOR_MARK = "▸"
SELECTION_MARK = "■"


class Column(NamedTuple):
    """A column's title and its width in cells, including the gap behind it.

    A `whole` column stays out of sight where it would be cut: half a figure misleads. Other columns have sentences, and share
    the room that is left over.
    """

    title: str
    width: int
    whole: bool = False


class TableCell(NamedTuple):
    """A text and its tone: a `Tone`, or another component class of the style sheet."""

    text: str
    tone: str = "plain"


class TableModel(Protocol):
    """The rows and columns of a table. `LineTable.show` asks for them again, and only for the visible rows."""

    @property
    def columns(self) -> Sequence[Column]: ...

    @property
    def fixed_columns(self) -> int:
        """How many columns, from the left, never scroll sideways."""

    @property
    def keys(self) -> Sequence[str]:
        """One key a row, in the order of the rows, without duplicates."""

    def cells(self, key: str, first: int, last: int) -> Sequence[TableCell]:
        """Return the cells of a row from column `first` up to, but not including, `last`."""

    def outlier(self, key: str) -> bool:
        """Return whether the whole row should stand out."""


class RowLook(NamedTuple):
    """All of the model that decides how a row looks."""

    still: tuple[TableCell, ...]
    moving: tuple[TableCell, ...]
    outlier: bool


class LineTable(ScrollView, ComponentStyles, can_focus=True):
    """A table that paints a `TableModel`. Call `show` whenever the model may have changed; it costs only the visible rows."""

    PREFIX = "line-table"

    BINDINGS: ClassVar[list[BindingType]] = [
        *MOVES,
        Binding("left", "slide(-1)", "Left", show=False),
        Binding("right", "slide(1)", "Right", show=False),
        Binding("space", "mark", "Select", show=False),
        Binding("escape", "select_none", "Select none", show=False),
    ]

    class Selected(Message):
        """The selection has changed."""

    class Moved(Message):
        """The cursor has moved to another row."""

        def can_replace(self, message: Message) -> bool:
            return isinstance(message, LineTable.Moved) and message.sender == self.sender

        def __init__(self, sender: LineTable) -> None:
            super().__init__()
            self.sender = sender

    class TitleClicked(Message):
        """The operator clicked on the title of a column, the one at `place` of all."""

        def __init__(self, sender: LineTable, place: int) -> None:
            super().__init__()
            self.sender, self.place = sender, place

    def __init__(self, model: TableModel, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._when_empty = ""
        self.model = model
        self._keys: tuple[str, ...] = ()
        self._place: dict[str, int] = {}
        self._declared: tuple[Column, ...] = ()
        self._columns: tuple[Column, ...] = ()
        self.cursor_key: str | None = None
        """The key of the row under the cursor; None only while the table has no rows."""
        self._awaited_key: str | None = None
        self._selection: set[str] = set()
        self._looks: dict[int, RowLook] = {}
        """How the rows in sight look, by place; dropped when the table scrolls."""
        self._sight: tuple[int, int, int] | None = None

    @property
    def selection(self) -> tuple[str, ...]:
        return tuple(key for key in self._keys if key in self._selection) if self._selection else ()

    @property
    def chosen(self) -> tuple[str, ...]:
        """The selected rows, or the one under the cursor."""
        return self.selection or ((self.cursor_key,) if self.cursor_key is not None else ())

    def point_at(self, key: str) -> None:
        """Move the cursor to the row of `key`, as soon as the table has that row."""
        if key in self._place:
            self._move_cursor(self._place[key])
        else:
            self._awaited_key = key

    def say_when_empty(self, text: str) -> None:
        """Show `text` while the table has no rows."""
        if text != self._when_empty:
            self._when_empty = text
            self.refresh()

    def show(self) -> None:
        """Read the model again and repaint the rows in sight that look different."""
        keys, columns = tuple(self.model.keys), tuple(self.model.columns)
        if keys != self._keys or columns != self._declared:
            self._restructure(keys, columns)
            return
        first, height = self.scroll_offset.y, self.scrollable_content_region.height
        width = self.scrollable_content_region.width
        changed: list[Region] = []
        for y in range(1, height):
            place = first + y - 1
            if place >= len(keys):
                break
            known = self._looks.get(place)
            if known is None:
                continue  # not painted since the table scrolled; the next paint asks the model itself
            look = self._look(keys[place])
            if look != known:
                self._looks[place] = look
                changed.append(Region(0, y, width, 1))
        if changed:
            self.refresh(*changed)

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        if y == 0:
            return self._paint_header(width)
        place = self.scroll_offset.y + y - 1
        if place >= len(self._keys):
            empty = NO_MATCH if getattr(self.model, "chip", "") else self._when_empty
            text = " " * MARKER_WIDTH + empty if y == 1 and not self._keys else ""
            return Strip([Segment(text, self.part_style("faint"))]).crop_extend(0, width, self.part_style("plain"))
        return self._paint_row(place, width)

    def watch_scroll_x(self, old_value: float, new_value: float) -> None:
        self._forget_looks()
        super().watch_scroll_x(old_value, new_value)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        self._forget_looks()
        super().watch_scroll_y(old_value, new_value)

    def on_resize(self) -> None:
        self._set_room()
        self._forget_looks()

    def on_click(self, event: events.Click) -> None:
        place = event.y + self.scroll_offset.y - 1
        if event.y == 0 and (column := self._column_at(event.x)) is not None:
            self.post_message(self.TitleClicked(self, column))
        elif event.y >= 1 and place < len(self._keys):
            self._move_cursor(place)

    def action_move(self, rows: int) -> None:
        self._move_cursor(self._cursor_place() + rows)

    def action_page(self, pages: int) -> None:
        self._move_cursor(self._cursor_place() + pages * max(1, self.scrollable_content_region.height - 2))

    def action_edge(self, last: int) -> None:
        self._move_cursor(len(self._keys) - 1 if last else 0)

    def action_slide(self, columns: int) -> None:
        scrolling = self._columns[self.model.fixed_columns :]
        if scrolling:
            self.scroll_to(x=self.scroll_offset.x + columns * scrolling[0].width, animate=False)

    def action_mark(self) -> None:
        if self.cursor_key is not None:
            self._selection ^= {self.cursor_key}
            self._repaint(self._cursor_place())
            self.post_message(self.Selected())

    def action_select_none(self) -> None:
        if not self.select_none():
            raise SkipAction  # the screen knows what else escape means

    def select_none(self) -> bool:
        """Clear the selection. Return whether rows were selected."""
        if not self._selection:
            return False
        places = [self._place[key] for key in self.selection]
        self._selection.clear()
        for place in places:
            self._repaint(place)
        self.post_message(self.Selected())
        return True

    def _restructure(self, keys: tuple[str, ...], columns: tuple[Column, ...]) -> None:
        former_place = self._cursor_place()
        self._keys, self._declared = keys, columns
        self._place = {key: place for place, key in enumerate(keys)}
        self._selection &= set(keys)
        if self._awaited_key in self._place:
            self.cursor_key, self._awaited_key = self._awaited_key, None
            self.call_after_refresh(self._bring_into_sight)
            self.post_message(self.Moved(self))
        if self.cursor_key not in self._place:
            self.cursor_key = keys[min(former_place, len(keys) - 1)] if keys else None
            self.post_message(self.Moved(self))
        self._set_room()
        self._forget_looks()

    def _set_room(self) -> None:
        """Set columns and virtual size. In a table of a given size, rows come and go without a new layout of the screen."""
        self._columns = stretched(self._declared, self.scrollable_content_region.width - MARKER_WIDTH)
        size = Size(MARKER_WIDTH + sum(column.width for column in self._columns), len(self._keys) + 1)
        if size == self.virtual_size:
            return
        if self.styles.auto_dimensions:
            self.virtual_size = size
        else:  # not the screen is laid out anew, only the bars follow
            self.set_reactive(LineTable.virtual_size, size)
            self._scroll_update(size)

    def _forget_looks(self) -> None:
        self._looks.clear()
        self._sight = None
        self.refresh()

    def _cursor_place(self) -> int:
        return self._place.get(self.cursor_key, 0) if self.cursor_key is not None else 0

    def _move_cursor(self, place: int) -> None:
        if not self._keys:
            return
        before = self._cursor_place()
        place = min(max(place, 0), len(self._keys) - 1)
        if self._keys[place] != self.cursor_key:
            self.cursor_key = self._keys[place]
            self.post_message(self.Moved(self))
        self._awaited_key = None
        self._repaint(before)
        self._repaint(place)
        self._bring_into_sight()

    def _bring_into_sight(self) -> None:
        place = self._cursor_place()
        first, rows = self.scroll_offset.y, max(1, self.scrollable_content_region.height - 1)
        if place < first:
            self.scroll_to(y=place, animate=False)
        elif place >= first + rows:
            self.scroll_to(y=place - rows + 1, animate=False)

    def _repaint(self, place: int) -> None:
        y = place - self.scroll_offset.y + 1
        region = self.scrollable_content_region
        if 1 <= y < region.height:
            self.refresh(Region(0, y, region.width, 1))

    def _column_at(self, x: int) -> int | None:
        first, last, hidden = self._columns_in_sight()
        fixed, end = self.model.fixed_columns, MARKER_WIDTH
        places: list[int] = [*range(fixed), *range(first, last)]
        for place in places:
            end += self._columns[place].width - (hidden if place == first and place >= fixed else 0)
            if x < end:
                return place
        return None

    def _columns_in_sight(self) -> tuple[int, int, int]:
        """Return the first and last scrolling column in sight, and how many cells of the first are scrolled away."""
        if self._sight is None:
            fixed = self.model.fixed_columns
            width = self.scrollable_content_region.width
            room = width - MARKER_WIDTH - sum(column.width for column in self._columns[:fixed])
            first, hidden = fixed, self.scroll_offset.x
            while first < len(self._columns) and hidden >= self._columns[first].width:
                hidden -= self._columns[first].width
                first += 1
            last, filled = first, -hidden
            while last < len(self._columns) and filled < room:
                column = self._columns[last]
                least = column.width - 1 if column.whole else min(column.width, LEAST_SENTENCE)
                if room - filled < least and last > first:
                    break
                filled += column.width
                last += 1
            self._sight = first, last, hidden
        return self._sight

    def _look(self, key: str) -> RowLook:
        first, last, _ = self._columns_in_sight()
        return RowLook(
            tuple(self.model.cells(key, 0, self.model.fixed_columns)),
            tuple(self.model.cells(key, first, last)),
            self.model.outlier(key),
        )

    def _paint_row(self, place: int, width: int) -> Strip:
        key = self._keys[place]
        look = self._looks.get(place)
        if look is None:
            look = self._looks[place] = self._look(key)
        first, last, hidden = self._columns_in_sight()
        cursor, selected = key == self.cursor_key, key in self._selection
        mark = (CURSOR_MARK if cursor else " ") + (SELECTION_MARK if selected else " ")
        states = (("outlier", look.outlier), ("selected", selected), ("cursor", cursor))
        over = tuple(name for name, wanted in states if wanted)
        still = [(mark, self.cell_style("strong", over))]
        moving: list[tuple[str, Style]] = []
        for columns, cells, runs in (
            (self._columns[: self.model.fixed_columns], look.still, still),
            (self._columns[first:last], look.moving, moving),
        ):
            for column, (text, tone) in zip(columns, cells, strict=True):
                runs.append((fit(text, column.width), self.cell_style(tone, over)))
        return painted_line([*still, *slid(moving, hidden)], width, self.cell_style("plain", over))

    def _paint_header(self, width: int) -> Strip:
        """Paint the titles of the columns, and the filter over their right end."""
        chip = getattr(self.model, "chip", "")
        if not chip:
            return self._paint_titles(width)
        shown = f"{chip_text(chip)} "
        titles = self._paint_titles(max(0, width - cell_len(shown)))
        return Strip.join([titles, Strip([Segment(shown, self.part_style("chip"))])]).crop(0, width)

    def _paint_titles(self, width: int) -> Strip:
        first, last, hidden = self._columns_in_sight()
        style = self.part_style("header")
        fixed = [(fit(column.title, column.width), style) for column in self._columns[: self.model.fixed_columns]]
        moving = [(fit(column.title, column.width), style) for column in self._columns[first:last]]
        return painted_line([(" " * MARKER_WIDTH, style), *fixed, *slid(moving, hidden)], width, style)

    def cell_style(self, tone: str, over: tuple[str, ...]) -> Style:
        """Return the style of a cell in a row of these looks."""
        return self.part_style(tone, *over)


def stretched(columns: tuple[Column, ...], width: int) -> tuple[Column, ...]:
    """Return the columns with the rest of `width` shared out among the columns that are not `whole`."""
    spare, elastic = width - sum(column.width for column in columns), sum(not column.whole for column in columns)
    if spare <= 0 or not elastic:
        return columns
    more = spare // elastic
    return tuple(column if column.whole else column._replace(width=column.width + more) for column in columns)


def chip_text(text: str) -> str:
    """Return a filter as the title of the filtered table shows it."""
    return f"[{text}  esc]"
