"""The clock of a run: microseconds since it began, monotonic, next to UTC and to the event loop's own time."""

from __future__ import annotations

import time


class RunClock:
    """Starts at 0 when made. The same source as an asyncio loop's time, so deadlines convert exactly."""

    def __init__(self) -> None:
        self._origin_ns = time.monotonic_ns()
        self.utc_origin_us = time.time_ns() // 1_000
        """UTC at 0, in microseconds since 1970."""

    def now_us(self) -> int:
        return (time.monotonic_ns() - self._origin_ns) // 1_000

    def loop_time(self, at_us: int) -> float:
        """`at_us` as the argument of an asyncio loop's ``call_at``, in seconds."""
        return (self._origin_ns + at_us * 1_000) / 1_000_000_000
