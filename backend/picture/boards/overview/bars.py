"""Rows of numbers as bars: one character for each, as high as the number."""

from __future__ import annotations

from collections.abc import Sequence

LEVELS = "▁▂▃▄▅▆▇█"
"""The first stands for nothing at all."""


def bars(numbers: Sequence[float], highest: float) -> str:
    """Return a bar for each number; one of `highest` is full, and none that is above 0 looks like 0."""
    steps = len(LEVELS) - 1
    if highest <= 0:
        return LEVELS[0] * len(numbers)
    return "".join(
        LEVELS[0] if number <= 0 else LEVELS[max(1, min(steps, round(number / highest * steps)))] for number in numbers
    )
