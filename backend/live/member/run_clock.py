"""The clock of a run: microseconds since it began, monotonic, next to UTC and to the event loop's own time."""

from __future__ import annotations

import time
from typing import Self

from msgspec import Struct


class RunClock(Struct, frozen=True):
    """The clock of a run: the same source as an asyncio loop's time, so deadlines convert exactly.

    It is the same in all processes of a machine, so that members that are processes share the clock of their run.
    """

    origin_ns: int
    """What the machine's monotonic clock showed when this clock showed 0."""
    utc_origin_us: int
    """UTC at 0, in microseconds since 1970."""

    @classmethod
    def started_now(cls) -> Self:
        """Return a clock that shows 0."""
        return cls(time.monotonic_ns(), time.time_ns() // 1_000)

    def now_us(self) -> int:
        return (time.monotonic_ns() - self.origin_ns) // 1_000

    def loop_time(self, at_us: int) -> float:
        """`at_us` as the argument of an asyncio loop's ``call_at``, in seconds."""
        return (self.origin_ns + at_us * 1_000) / 1_000_000_000
