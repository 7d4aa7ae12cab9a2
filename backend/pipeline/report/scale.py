"""Formats times and numbers for people, and places moments on a drawing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from quarterdeck.backend.core.properties import SECOND_US

STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600)
"""Seconds between two ticks, where that is a second or more."""
MAX_TICKS = 10


@dataclass(frozen=True)
class Scale:
    """A mapping from a span of time to a span of a drawing."""

    start_us: int
    end_us: int
    left: float
    right: float

    def x(self, at_us: int) -> float:
        """Return the place of a moment; moments outside of the span are placed at its edge."""
        inside = min(max(at_us, self.start_us), self.end_us)
        span_us = max(self.end_us - self.start_us, 1)
        return round(self.left + (inside - self.start_us) / span_us * (self.right - self.left), 2)

    def ticks(self) -> Iterator[tuple[float, str]]:
        """Yield the place and the text of round moments within the span."""
        step_us = _step_us(self.end_us - self.start_us)
        at_us = -(-self.start_us // step_us) * step_us
        while at_us <= self.end_us:
            yield self.x(at_us), clock(at_us)
            at_us += step_us


def _step_us(span_us: int) -> int:
    wanted_us = max(span_us, 1) / MAX_TICKS
    if wanted_us > STEPS[-1] * SECOND_US:
        return int(-(-wanted_us // (STEPS[-1] * SECOND_US))) * STEPS[-1] * SECOND_US
    if wanted_us > SECOND_US / 2:
        return next(step for step in STEPS if step * SECOND_US >= wanted_us) * SECOND_US
    step_us = 1
    while step_us < wanted_us:
        step_us *= 10
    return step_us


def clock(at_us: int) -> str:
    """Format a moment of a run in seconds: 12.5 s."""
    return f"{at_us / SECOND_US:.6f}".rstrip("0").rstrip(".") + " s"


def span(length_us: float) -> str:
    """Format a duration in the unit that suits it."""
    if length_us < 1_000:
        return f"{length_us:g} µs" if length_us == int(length_us) else f"{length_us:.1f} µs"
    if length_us < SECOND_US:
        return f"{length_us / 1_000:.3g} ms"
    if length_us < 60 * SECOND_US:
        return f"{length_us / SECOND_US:.3g} s"
    minutes, seconds = divmod(round(length_us / SECOND_US), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {seconds:02d} s"


def quantity(value: float | None, unit: str) -> str:
    """Format a measured value with its unit, or a dash for None."""
    if value is None:
        return "–"
    if unit == "us":
        return span(value)
    if unit == "share":
        return f"{value:.2%}"
    number = f"{value:,.0f}" if value == int(value) or abs(value) >= 1_000 else f"{value:.3g}"
    return f"{number}{ {'per-second': ' /s', 'bytes-per-second': ' B/s'}.get(unit, '') }"
