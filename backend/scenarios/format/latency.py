"""How long messages of a simulated run take. Each draws its own time, so messages overtake one another."""

from __future__ import annotations

from dataclasses import dataclass
from math import log
from typing import Literal

LatencyModel = Literal["uniform", "exponential", "heavy-tail"]

TAIL = 1.1
"""Exponent of the heavy tail: below 2 the spread has no bound but `most_us`, so a few messages take very long."""


@dataclass(frozen=True)
class Latency:
    """All messages take at least `least_us` and at most `most_us`; `typical_us` says how much more than the least.

    ``uniform`` spreads them evenly and has no use for `typical_us`, which is the mean of ``exponential`` and about the
    median of ``heavy-tail``.
    """

    model: LatencyModel = "uniform"
    least_us: int = 200
    typical_us: int = 400
    most_us: int = 1_000

    def __post_init__(self) -> None:
        if not 0 < self.least_us <= self.most_us or self.typical_us < 0:
            raise ValueError("messages take some time: least must be above nothing, and most no less than least")

    def sample_us(self, draw: float) -> int:
        """Return the time of a message, from a draw evenly spread over [0, 1)."""
        match self.model:
            case "uniform":
                return self.least_us + int(draw * (self.most_us - self.least_us))
            case "exponential":
                more = -self.typical_us * log(1.0 - draw)
            case "heavy-tail":
                more = self.typical_us * ((1.0 - draw) ** (-1 / TAIL) - 1.0)
        return min(self.most_us, self.least_us + int(more))
