"""How one replica of the map is painted at each zoom: its text, and what its style is made of."""

from __future__ import annotations

from typing import Literal

from quarterdeck.backend.picture.replicas.replica_cell import MARKS, ReplicaCell

Zoom = Literal["wide", "letters", "halves"]

ZOOMS: tuple[Zoom, ...] = ("wide", "letters", "halves")

HUES = 8
"""How many colours there are for members; letters tell those of one colour apart."""

UPPER_HALF = "▀"

ReplicaStyle = tuple[int, int, str, bool]
"""What a style is made of: colours of the upper and the lower half, state, and whether the cursor is there."""


def letter_look(cell: ReplicaCell, zoom: Zoom, width: int) -> tuple[str, ReplicaStyle]:
    """Letter and mark in `width` cells; where there is room for one of them only, the mark, if there is one."""
    letter, hue, state = cell
    mark = MARKS[state]
    text = f"{letter}{mark}" if zoom == "wide" else mark or letter
    return text.ljust(width)[:width], (_colour(hue), -1, state, False)


def half_look(upper: ReplicaCell, lower: ReplicaCell) -> tuple[str, ReplicaStyle]:
    """Two replicas in one cell: colours as long as all is well with both, else the mark of the graver of the two."""
    for state, mark in MARKS.items():
        if mark and state != "vacant" and state in (upper.state, lower.state):
            return mark, (-1, -1, state, False)
    above, below = _colour(upper.hue), _colour(lower.hue)
    if above < 0 and below < 0:
        return MARKS["vacant"], (-1, -1, "vacant", False)
    return UPPER_HALF, (above, below, "half", False)


def _colour(hue: int) -> int:
    return hue % HUES if hue >= 0 else -1
