"""The replica map, painted line by line: bands of partitions side by side, one line for each replica index.

There are three zooms: `wide` has a letter and a mark for each replica; `letters` shows the mark in place of the letter where
there is one; `halves` shows two replica indices on a line, in colours only, with marks for what is wrong. Only lines in sight
are computed, and only those that look different are repainted.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import ClassVar, Literal, Protocol

from rich.cells import set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from quarterdeck.backend.boards.replicas.replica_map import EMPTY, SIGNS, Column, ReplicaCell
from quarterdeck.widgets.component_styles import ComponentStyles
from quarterdeck.widgets.line_table import MOVES

GUTTER = 4
"""Cells before the first partition, for the replica index."""

TICKS = (5, 10, 20, 50, 100)
"""Partitions between two numbers on the ruler."""

NOTHING = EMPTY["vacant"]


class MapModel(Protocol):
    """The replicas of a map. Asked only for partitions in sight."""

    @property
    def revision(self) -> int:
        """A number that changes when any column may look different."""

    @property
    def width(self) -> int:
        """The number of replica indices."""

    @property
    def letter_width(self) -> int:
        """The width of the longest letter, in cells."""

    def column(self, partition: int) -> Column:
        """Return the replicas of a partition; the same object as before if nothing has changed."""


class ReplicaMapView(ScrollView, ComponentStyles, can_focus=True):
    """A view that paints a `MapModel`. Call `show` whenever it may have changed; it costs only the visible lines."""

    PREFIX = "replica-map"
    DEFAULT_CSS = """
    .replica-map--gutter, .replica-map--ruler { color: $text-muted; }
    ReplicaMapView:focus .replica-map--ruler { text-style: bold; color: $text-primary; }
    .replica-map--cursor { text-style: reverse bold; }
    .replica-map--gap, .replica-map--gone { color: $text-error; background: $error-muted; text-style: bold; }
    .replica-map--single, .replica-map--doubtful, .replica-map--behind, .replica-map--differs {
        color: $text-warning; background: $warning-muted; text-style: bold;
    }
    .replica-map--migrating { color: $text-primary; background: $primary-muted; text-style: bold; }
    .replica-map--vacant { color: $text-muted; }
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        *MOVES,
        Binding("left", "step(-1)", "Left", show=False),
        Binding("right", "step(1)", "Right", show=False),
        Binding("space", "choose", "Select", show=False),
    ]

    class Moved(Message):
        """The cursor has moved to another replica."""

    class Chosen(Message):
        """The replica under the cursor was chosen."""

    def __init__(self, model: MapModel, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._model = model
        self._partitions: Sequence[int] = ()
        self._place = 0
        self.index = 0
        """The replica index under the cursor."""
        self.zoom: Zoom = "wide"
        self._revision = -1
        self._bands: dict[int, list[Column]] = {}
        self._geometry: tuple[object, ...] = ()
        self._styles: dict[ReplicaStyle, Style] = {}

    @property
    def zooms(self) -> tuple[Zoom, ...]:
        """The zooms that work here. Without colours of our own, halves look alike."""
        plain = self.app.no_color and bool(self.app.native_ansi_color)
        return tuple(zoom for zoom in ZOOMS if zoom != "halves" or not plain)

    @property
    def partition(self) -> int | None:
        """The partition under the cursor, or None."""
        return self._partitions[self._place] if self._place < len(self._partitions) else None

    def set_zoom(self, zoom: Zoom) -> None:
        """Paint larger or smaller; the cursor keeps its place."""
        self.zoom = zoom
        self._lay_out()
        self._bring_into_sight()

    def point_at(self, partition: int, index: int = 0) -> None:
        """Move the cursor to a replica, or to that of the nearest partition shown."""
        self._move_to(self._place_of(partition), index)

    def show(self, partitions: Sequence[int]) -> None:
        """Show these partitions, in ascending order, and repaint the lines that look different."""
        geometry = (self._model.width, self._model.letter_width)
        same = partitions is self._partitions or partitions == self._partitions
        if not same or geometry != self._geometry:
            here = self.partition
            self._partitions, self._geometry = partitions, geometry
            self._place = self._place_of(here) if here is not None else 0
            self.index = min(self.index, max(0, self._model.width - 1))
            self._lay_out()
            self.post_message(self.Moved())
        elif self._revision != self._model.revision:
            self._repaint_changed()
        self._revision = self._model.revision

    def _repaint_changed(self) -> None:
        changed: list[Region] = []
        width = self.scrollable_content_region.width
        for band, before in self._bands.items():
            columns = self._columns_of(band)
            if columns == before:
                continue
            self._bands[band] = columns
            changed += [
                Region(0, y, width, 1)
                for line in range(1, self._band_height)
                if 0 <= (y := band * self._band_height + line - self.scroll_offset.y) < self.size.height
                and self._cells_differ(before, columns, line)
            ]
        if changed:
            self.refresh(*changed)

    # Painting

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        band, line = divmod(self.scroll_offset.y + y, self._band_height)
        if band * self._per_band >= len(self._partitions) or not self._model.width:
            return Strip.blank(width, self.part_style("plain"))
        if line == 0:
            return self._paint_ruler(band, width)
        columns = self._bands.get(band)
        if columns is None:
            columns = self._bands[band] = self._columns_of(band)
        return self._paint_replicas(band, line, columns, width)

    def forget_painted(self) -> None:
        self._styles.clear()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        first = int(new_value) // self._band_height
        last = (int(new_value) + self.size.height) // self._band_height
        self._bands = {band: columns for band, columns in self._bands.items() if first <= band <= last}
        super().watch_scroll_y(old_value, new_value)

    def on_resize(self) -> None:
        self._lay_out()

    def on_click(self, event: events.Click) -> None:
        band, line = divmod(event.y + self.scroll_offset.y, self._band_height)
        place = band * self._per_band + (event.x - GUTTER) // self._cell_width
        if line and event.x >= GUTTER and place < min((band + 1) * self._per_band, len(self._partitions)):
            self._move_to(place, (line - 1) * self._indices_a_line)

    # Moving

    def action_move(self, lines: int) -> None:
        """Move up or down; beyond the last replica index, to the band below."""
        index = self.index + lines
        if 0 <= index < self._model.width:
            self._move_to(self._place, index)
            return
        place = self._place + lines * self._per_band
        if 0 <= place < len(self._partitions):
            self._move_to(place, 0 if lines > 0 else self._model.width - 1)

    def action_step(self, places: int) -> None:
        self._move_to(self._place + places, self.index)

    def action_page(self, pages: int) -> None:
        bands = max(1, self.size.height // self._band_height)
        self._move_to(self._place + pages * bands * self._per_band, self.index)

    def action_edge(self, last: int) -> None:
        self._move_to(len(self._partitions) - 1 if last else 0, self.index)

    def action_choose(self) -> None:
        if self.partition is not None:
            self.post_message(self.Chosen())

    # Where things are

    def _lay_out(self) -> None:
        halves = self.zoom == "halves"
        self._indices_a_line = 2 if halves else 1
        self._cell_width = 1 if halves else self._model.letter_width + (self.zoom == "wide")
        room = self.scrollable_content_region.width - GUTTER
        per_band = max(1, room // self._cell_width)
        self._per_band = per_band - per_band % 10 if per_band > 10 else per_band
        self._band_height = 1 + -(-self._model.width // self._indices_a_line)
        bands = -(-len(self._partitions) // self._per_band)
        self._bands.clear()
        self.virtual_size = Size(0, bands * self._band_height)
        self.refresh()

    _cell_width = 1
    _indices_a_line = 1
    _per_band = 1
    _band_height = 1

    def _place_of(self, partition: int) -> int:
        return min(bisect_left(self._partitions, partition), max(0, len(self._partitions) - 1))

    def _columns_of(self, band: int) -> list[Column]:
        return list(map(self._model.column, self._partitions[band * self._per_band : (band + 1) * self._per_band]))

    def _cells_differ(self, before: list[Column], now: list[Column], line: int) -> bool:
        first = (line - 1) * self._indices_a_line
        last = first + self._indices_a_line
        return any(
            column is not other and column[first:last] != other[first:last]
            for column, other in zip(before, now, strict=True)
        )

    def _move_to(self, place: int, index: int) -> None:
        if not self._partitions:
            return
        before = self._cursor_region()
        self._place = min(max(place, 0), len(self._partitions) - 1)
        self.index = min(max(index, 0), max(0, self._model.width - 1))
        if before != self._cursor_region():
            self.refresh(before, self._cursor_region())
        self._bring_into_sight()
        self.post_message(self.Moved())

    def _cursor_line(self) -> int:
        return (self._place // self._per_band) * self._band_height + 1 + self.index // self._indices_a_line

    def _cursor_region(self) -> Region:
        return Region(0, self._cursor_line() - self.scroll_offset.y, self.scrollable_content_region.width, 1)

    def _bring_into_sight(self) -> None:
        """Scroll so that the whole band of the cursor is in sight, if it fits."""
        top = (self._place // self._per_band) * self._band_height
        height = max(1, self.scrollable_content_region.height)
        if top < self.scroll_offset.y or self._band_height > height:
            self.scroll_to(
                y=min(top, self._cursor_line()) if self._band_height <= height else self._cursor_line() - 1,
                animate=False,
            )
        elif top + self._band_height > self.scroll_offset.y + height:
            self.scroll_to(y=top + self._band_height - height, animate=False)

    # Lines

    def _paint_ruler(self, band: int, width: int) -> Strip:
        shown = self._partitions[band * self._per_band : (band + 1) * self._per_band]
        longest = len(f"p{shown[-1]}") + 1
        step = next((tick for tick in TICKS if tick * self._cell_width >= longest), TICKS[-1])
        text = " " * GUTTER
        for place in range(0, len(shown), step):
            text = text.ljust(GUTTER + place * self._cell_width) + f"p{shown[place]}"
        return Strip([Segment(set_cell_size(text, width), self.part_style("ruler"))], width)

    def _paint_replicas(self, band: int, line: int, columns: list[Column], width: int) -> Strip:
        first = (line - 1) * self._indices_a_line
        cursor = -1
        if first <= self.index < first + self._indices_a_line and self._place // self._per_band == band:
            cursor = self._place % self._per_band
        segments = [Segment(self._gutter_text(first), self.part_style("gutter"))]
        painted = self._halves(columns, first) if self.zoom == "halves" else self._letters(columns, first)
        if 0 <= cursor < len(painted):
            text, look = painted[cursor]
            painted[cursor] = text, (*look[:3], True)
        for look, run in groupby(painted, itemgetter(1)):
            segments.append(Segment("".join(text for text, _ in run), self._style(look)))
        filled = GUTTER + len(columns) * self._cell_width
        if filled < width:
            segments.append(Segment(" " * (width - filled), self.part_style("plain")))
            filled = width
        strip = Strip(segments, filled)
        return strip if filled == width else strip.crop(0, width)

    def _gutter_text(self, index: int) -> str:
        if self._indices_a_line == 2:
            return f"{index}/{index + 1}".ljust(GUTTER)
        return "own".ljust(GUTTER) if index == 0 else f"b{index}".ljust(GUTTER)

    def _letters(self, columns: list[Column], index: int) -> list[tuple[str, ReplicaStyle]]:
        zoom, width = self.zoom, self._cell_width
        return [letter_look(column[index], zoom, width) for column in columns]

    def _halves(self, columns: list[Column], index: int) -> list[tuple[str, ReplicaStyle]]:
        halves = (column[index : index + 2] for column in columns)
        return [half_look(half[0], half[1] if len(half) > 1 else NOTHING) for half in halves]

    def _style(self, look: ReplicaStyle) -> Style:
        style = self._styles.get(look)
        if style is None:
            style = self._styles[look] = self._made_style(look)
        return style

    def _made_style(self, look: ReplicaStyle) -> Style:
        hue, below, state, cursor = look
        upper, lower = (f"hue{number}" if number >= 0 else "" for number in (hue, below))
        if state != "half":
            return self.part_style(upper, state, "cursor" if cursor else "")
        grounds = Style(color=self.part_style(upper).bgcolor, bgcolor=self.part_style(lower).bgcolor)
        half = self.rich_style + grounds
        return half + self.get_component_rich_style("replica-map--cursor", partial=True) if cursor else half


Zoom = Literal["wide", "letters", "halves"]

ZOOMS: tuple[Zoom, ...] = ("wide", "letters", "halves")

HUES = 8
"""The number of colours for members; letters distinguish members of one colour."""

UPPER_HALF = "▀"

ReplicaStyle = tuple[int, int, str, bool]
"""The parts of a style: colours of the upper and the lower half, the state, and whether it is under the cursor."""


@lru_cache(maxsize=4096)
def letter_look(cell: ReplicaCell, zoom: Zoom, width: int) -> tuple[str, ReplicaStyle]:
    """Return letter and mark in `width` cells. If only one of them fits, it is the mark, if the replica has one."""
    letter, hue, state = cell
    mark = SIGNS[state].mark
    text = f"{letter}{mark}" if zoom == "wide" else mark or letter
    return text.ljust(width)[:width], (_colour(hue), -1, state, False)


@lru_cache(maxsize=4096)
def half_look(upper: ReplicaCell, lower: ReplicaCell) -> tuple[str, ReplicaStyle]:
    """Return two replicas in one cell: their colours, or the mark of the worse of the two if something is wrong."""
    for state, sign in SIGNS.items():
        if sign.filter_word and state in (upper.state, lower.state):
            return sign.mark, (-1, -1, state, False)
    above, below = _colour(upper.hue), _colour(lower.hue)
    if above < 0 and below < 0:
        return SIGNS["vacant"].mark, (-1, -1, "vacant", False)
    return UPPER_HALF, (above, below, "half", False)


def _colour(hue: int) -> int:
    return hue % HUES if hue >= 0 else -1
