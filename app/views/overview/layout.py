"""Where the panes of the overview stand, by the room that there is and the number of members."""

from __future__ import annotations

from typing import Literal, NamedTuple

PaneName = Literal["lists", "suspicions", "tables", "migrations", "happened", "detail"]

PANES: tuple[PaneName, ...] = ("lists", "suspicions", "tables", "migrations", "happened", "detail")
"""In the order in which tab visits them."""

Shape = Literal["lines", "two", "two-with-detail", "three"]
"""All below each other, most of them a line each; two side by side; the same with the detail beside what happened; three."""

TWO_FROM = (110, 26)
"""Columns and rows from which two panes stand side by side."""
DETAIL_FROM = (150, 38)
THREE_FROM = (220, 50)
FRAME = 3
"""Lines of a pane that are no rows: upper edge, heading of the columns, lower edge."""
LEAST_ROWS = 2
"""The least rows of a table that is not folded."""
LEAST_HAPPENED = 4


class PaneArrangement(NamedTuple):
    """The arrangement. `rows` has the heights of the lines of panes from the top; 0 means all that is left."""

    shape: Shape
    rows: tuple[int, ...]
    folded: frozenset[PaneName] = frozenset()
    """Panes of which only the edge is shown."""
    hidden: frozenset[PaneName] = frozenset()


def arrange(width: int, height: int, members: int, enlarged: PaneName | None = None) -> PaneArrangement:
    """Return the arrangement for so much room; an `enlarged` pane has all of it."""
    if enlarged is not None:
        return PaneArrangement("lines", (0,), hidden=frozenset(PANES) - {enlarged})
    wanted = members + FRAME
    if _fits(width, height, THREE_FROM):
        return PaneArrangement("three", (_shared(wanted, height, 2), 0))
    if _fits(width, height, DETAIL_FROM):
        row = _shared(wanted, height, 3)
        return PaneArrangement("two-with-detail", (row, row, 0))
    if _fits(width, height, TWO_FROM):
        row = _shared(wanted, height, 3)
        return PaneArrangement("two", (row, row, 0), hidden=frozenset({"detail"}))
    single: tuple[PaneName, ...] = ("suspicions", "tables", "migrations")
    left = height - len(single)
    if left < FRAME + LEAST_ROWS + 1:
        return PaneArrangement("lines", (0, 1, 1, 1), frozenset(single), frozenset({"happened", "detail"}))
    lists = max(FRAME + LEAST_ROWS, min(wanted, left - LEAST_HAPPENED))
    if left - lists < LEAST_HAPPENED:
        return PaneArrangement("lines", (0, 1, 1, 1, 1), frozenset({*single, "happened"}), frozenset({"detail"}))
    return PaneArrangement("lines", (lists, 1, 1, 1, 0), frozenset(single), frozenset({"detail"}))


def _fits(width: int, height: int, least: tuple[int, int]) -> bool:
    return width >= least[0] and height >= least[1]


def _shared(wanted: int, height: int, rows: int) -> int:
    """Return the height of a line of panes, of which each of the `rows` has its share."""
    return max(FRAME + LEAST_ROWS, min(wanted, height // rows))
