"""How one replica of the map is painted at each zoom: its text, and the parts of its style."""

from __future__ import annotations

from typing import Literal

from quarterdeck.backend.picture.replicas.replica_cell import MARKS, ReplicaCell

Zoom = Literal["wide", "letters", "halves"]

ZOOMS: tuple[Zoom, ...] = ("wide", "letters", "halves")

HUES = 8
"""The number of colours for members; letters distinguish members of one colour."""

UPPER_HALF = "▀"

ReplicaStyle = tuple[int, int, str, bool]
"""The parts of a style: colours of the upper and the lower half, the state, and whether the cursor is there."""


def letter_look(cell: ReplicaCell, zoom: Zoom, width: int) -> tuple[str, ReplicaStyle]:
    """Return letter and mark in `width` cells. If only one fits, it is the mark, if there is one."""
    letter, hue, state = cell
    mark = MARKS[state]
    text = f"{letter}{mark}" if zoom == "wide" else mark or letter
    return text.ljust(width)[:width], (_colour(hue), -1, state, False)


def half_look(upper: ReplicaCell, lower: ReplicaCell) -> tuple[str, ReplicaStyle]:
    """Return two replicas in one cell: their colours, or the mark of the worse of the two if something is wrong."""
    for state, mark in MARKS.items():
        if mark and state != "vacant" and state in (upper.state, lower.state):
            return mark, (-1, -1, state, False)
    above, below = _colour(upper.hue), _colour(lower.hue)
    if above < 0 and below < 0:
        return MARKS["vacant"], (-1, -1, "vacant", False)
    return UPPER_HALF, (above, below, "half", False)


def _colour(hue: int) -> int:
    return hue % HUES if hue >= 0 else -1
