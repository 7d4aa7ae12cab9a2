"""Runs of text, each in one style, that make a line of exactly so many cells; an ellipsis marks what was cut."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from itertools import groupby

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip


@lru_cache(maxsize=4096)
def fit(text: str, width: int, gap: int = 1) -> str:
    """Return `text` in exactly `width` cells, the last ones a gap; an ellipsis marks a text that was cut."""
    if cell_len(text) + gap <= width:
        return set_cell_size(text, width)
    return set_cell_size(set_cell_size(text, max(0, width - gap - 1)) + "…", width)


def slid(runs: list[tuple[str, Style]], hidden: int) -> list[tuple[str, Style]]:
    """Return `runs` without the first `hidden` cells; an ellipsis marks text that was cut."""
    if not hidden or not runs:
        return runs
    text, style = runs[0]
    before, after = Segment(text).split_cells(hidden)
    shown = after.text
    if before.text.strip():
        shown = set_cell_size(f"…{shown[1:]}", cell_len(shown))
    return [(shown, style), *runs[1:]]


def merge_runs(runs: Iterable[tuple[str, Style]]) -> list[Segment]:
    """Join neighbours of one style into segments: the fewer segments, the cheaper the frame."""
    return [
        Segment("".join(text for text, _ in alike), style) for style, alike in groupby(runs, key=lambda run: run[1])
    ]


def painted_line(runs: list[tuple[str, Style]], width: int, rest: Style) -> Strip:
    """Return `runs` as a strip of exactly `width` cells, filled up in the style `rest`."""
    return Strip(merge_runs(trim_runs(runs, width, rest)), width)


def trim_runs(runs: list[tuple[str, Style]], width: int, rest: Style) -> list[tuple[str, Style]]:
    """Cut `runs` to exactly `width` cells, which an ellipsis marks, or fill them up in the style `rest`."""
    filled = sum(cell_len(text) for text, _ in runs)
    if filled < width:
        runs.append((" " * (width - filled), rest))
    while filled > width and runs:
        text, style = runs.pop()
        filled -= cell_len(text)
        if filled < width:
            runs.append((fit(text.rstrip(), width - filled, gap=0), style))
            break
    return runs
