"""Members on a circle and the links between them, drawn with the dots of braille; glyphs mark what is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from math import cos, pi, sin

from rich.cells import cell_len
from textual.geometry import Size
from textual.strip import Strip

from quarterdeck.backend.boards.network_board import Edge, NetworkDrawing
from quarterdeck.widgets.component_styles import ComponentStyles, fit

BRAILLE = 0x2800
DOT_BITS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""By row and column within a cell."""

NEAR_END = (0.25, 0.31, 0.37, 0.2, 0.43)
"""Where on a line the glyph of its end may stand, as shares of the line's length; the first free place is taken."""

SHORTEST_NAME = 5

NOTHING = NetworkDrawing((), ())

Cell = tuple[str, str]
"""A letter and its tone. The second cell of a wide letter has an empty letter."""


class Topology(ComponentStyles):
    """A drawing of the `NetworkDrawing` that was given to `show`. It is laid out once, however often it is painted."""

    PREFIX = "topology"
    DEFAULT_CSS = """
    .topology--ringed { text-style: bold reverse; }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._drawing = NOTHING
        self._strips: list[Strip] | None = None
        self._painted_size = Size(0, 0)

    def show(self, drawing: NetworkDrawing) -> None:
        if drawing != self._drawing:
            self._drawing = drawing
            self._strips = None
            self.refresh()

    def render_line(self, y: int) -> Strip:
        if self._strips is None or self._painted_size != self.size:  # it is painted before it hears of its new size
            self._strips, self._painted_size = self._painted(), self.size
        return self._strips[y] if y < len(self._strips) else Strip.blank(self.size.width)

    def forget_painted(self) -> None:
        self._strips = None

    def _painted(self) -> list[Strip]:
        width, height = self.size.width, self.size.height
        return [Strip(self.toned(row), width) for row in laid_out(self._drawing, width, height)]


def laid_out(drawing: NetworkDrawing, width: int, height: int) -> list[list[Cell]]:
    """Return the drawing as rows of cells."""
    rows: list[list[Cell]] = [[(" ", "plain")] * width for _ in range(height)]
    if not drawing.nodes or width < SHORTEST_NAME or height < 1:
        return rows
    most = max(SHORTEST_NAME, width // 2 - 1)
    names = [fit(node.text, min(most, cell_len(node.text)), gap=0) for node in drawing.nodes]
    places = _places(len(names), max(map(cell_len, names)), width, height)
    for edge in sorted(drawing.edges, key=lambda one: one.tone != "faint"):  # what is wrong is painted over what is not
        _draw_line(rows, places[edge.one], places[edge.other], edge)
    for edge in drawing.edges:
        _put_glyph(rows, places[edge.one], places[edge.other], edge.glyph_at_one, edge.tone)
        _put_glyph(rows, places[edge.other], places[edge.one], edge.glyph_at_other, edge.tone)
    for node, name, (x, y) in zip(drawing.nodes, names, places, strict=True):
        size = cell_len(name)
        first = min(max(round(x) - size // 2, 0), max(0, width - size))
        _put_text(rows[min(max(round(y), 0), height - 1)], first, name, "ringed" if node.ringed else node.tone)
    return rows


def _places(count: int, longest: int, width: int, height: int) -> list[tuple[float, float]]:
    """Return the middle of each name, in cells: clockwise on an ellipse, the first one at the top."""
    middle_x, middle_y = (width - 1) / 2, (height - 1) / 2
    reach_x, reach_y = max(0.0, middle_x - longest / 2), middle_y
    if count == 1:
        return [(middle_x, middle_y)]
    angles = [2 * pi * place / count for place in range(count)]
    return [(middle_x + reach_x * sin(angle), middle_y - reach_y * cos(angle)) for angle in angles]


def _draw_line(rows: list[list[Cell]], start: tuple[float, float], end: tuple[float, float], edge: Edge) -> None:
    for place, (x, y) in enumerate(_dots(start, end)):
        if place % edge.dots:
            continue
        row, column = y // 4, x // 2
        if 0 <= row < len(rows) and 0 <= column < len(rows[row]):
            letter, _ = rows[row][column]
            dots = ord(letter) - BRAILLE if letter != " " else 0
            rows[row][column] = (chr(BRAILLE | dots | DOT_BITS[y % 4][x % 2]), edge.tone)


def _dots(start: tuple[float, float], end: tuple[float, float]) -> Iterator[tuple[int, int]]:
    """Yield the dots of a line between the middles of two cells; a cell is two dots wide and four high."""
    x, y = start[0] * 2 + 1, start[1] * 4 + 2
    across, down = end[0] * 2 + 1 - x, end[1] * 4 + 2 - y
    steps = max(1, round(max(abs(across), abs(down))))
    for step in range(steps + 1):
        yield int(x + across * step / steps), int(y + down * step / steps)


def _put_glyph(
    rows: list[list[Cell]], start: tuple[float, float], end: tuple[float, float], glyph: str, tone: str
) -> None:
    if not glyph:
        return
    free: tuple[int, int] | None = None
    for share in NEAR_END:
        x, y = round(start[0] + (end[0] - start[0]) * share), round(start[1] + (end[1] - start[1]) * share)
        if 0 <= y < len(rows) and 0 <= x < len(rows[y]):
            letter = rows[y][x][0]
            if letter == " " or ord(letter[0]) & ~0xFF == BRAILLE:
                free = x, y
                break
    if free is not None:
        rows[free[1]][free[0]] = (glyph, tone)


def _put_text(row: list[Cell], first: int, text: str, tone: str) -> None:
    at = first
    for letter in text:
        size = cell_len(letter)
        if size == 0:  # it belongs to the letter before
            if at > first:
                row[at - 1] = (row[at - 1][0] + letter, tone)
            continue
        if at + size > len(row):
            return
        for place in range(at, at + size):
            _clear(row, place)
        row[at] = (letter, tone)
        for behind in range(at + 1, at + size):
            row[behind] = ("", tone)
        at += size


def _clear(row: list[Cell], place: int) -> None:
    """Make room for one cell. If a wide letter loses one of its cells, the other becomes blank."""
    if cell_len(row[place][0]) == 0:
        row[place - 1] = (" ", "plain")
    elif place + 1 < len(row) and cell_len(row[place + 1][0]) == 0:
        row[place + 1] = (" ", "plain")
    row[place] = (" ", "plain")
