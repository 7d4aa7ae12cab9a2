"""Time in a simulated run: members' own clocks, which run fast or slow and may jump ahead, and how long messages take.

Members only ever see their own clock; the run's time is no member's. A clock never goes backwards, being monotonic. Each
message draws its own time, so messages overtake one another.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from math import log
from typing import Literal

from quarterdeck.backend.core.timers import NEVER

MILLION = 1_000_000


class Clock:
    """Shows `ahead_us` at time 0 and gains `rate` seconds a second; at each time in `jumps` it leaps ahead. All in microseconds.

    Raises ValueError for a rate that is not positive and for a jump backwards.
    """

    __slots__ = ("_rate_millionths", "_shown_us", "_times_us")

    def __init__(self, rate: float = 1.0, jumps: Mapping[int, int] | None = None, *, ahead_us: int = 0) -> None:
        self._rate_millionths = round(rate * MILLION)
        if self._rate_millionths <= 0:
            raise ValueError(f"a clock with the rate {rate:g} does not go")
        self._times_us = [0]
        self._shown_us = [ahead_us]
        for at_us, by_us in sorted((jumps or {}).items()):
            if at_us < 0 or by_us < 0:
                raise ValueError("a clock jumps ahead only, and not before the run begins")
            self._shown_us.append(self.local_us(at_us) + by_us)
            self._times_us.append(at_us)

    def local_us(self, time_us: int) -> int:
        place = bisect_right(self._times_us, time_us) - 1
        return self._shown_us[place] + (time_us - self._times_us[place]) * self._rate_millionths // MILLION

    def time_us(self, local_us: int) -> int:
        """Return the first time at which the clock shows `local_us` or more; `NEVER` for `NEVER`."""
        if local_us >= NEVER:
            return NEVER
        place = max(0, bisect_right(self._shown_us, local_us) - 1)
        missing_us = max(0, local_us - self._shown_us[place])
        reached_us = self._times_us[place] - (-missing_us * MILLION // self._rate_millionths)
        # What lies between two pieces is reached by the jump from one to the other.
        return min(reached_us, self._times_us[place + 1]) if place + 1 < len(self._times_us) else reached_us


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
