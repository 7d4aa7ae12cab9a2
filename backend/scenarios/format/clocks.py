"""A member's own clock in a simulated run: one that runs fast or slow, and may jump ahead.

Members only ever see their own clock; the run's time is nobody's. A clock never goes backwards, as no monotonic clock does.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping

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
        """Return what the clock shows at `time_us`."""
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
