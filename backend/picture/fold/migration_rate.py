"""How fast migrations go: what ended, and what was copied, in the last seconds."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from quarterdeck.backend.core.properties import SECOND_US

WINDOW_S = 10
"""Seconds that the pace is taken over."""


class MigrationRate(NamedTuple):
    """What happened in a second, on average over the window."""

    migrations: float
    bytes: float


class _Second(NamedTuple):
    second: int
    migrations: int
    bytes: int


class MigrationRates:
    """Counts by whole seconds, so that thousands of migrations cost no more room than ten."""

    def __init__(self) -> None:
        self._seconds: deque[_Second] = deque(maxlen=WINDOW_S + 1)
        """The latest last."""

    def fork(self) -> MigrationRates:
        """Return the same rates, to go their own way from here."""
        twin = MigrationRates()
        twin._seconds = self._seconds.copy()
        return twin

    def count(self, at_us: int, *, migrations: int = 0, size: int = 0) -> None:
        """At this time so many migrations ended, or so many bytes were copied."""
        second = at_us // SECOND_US
        if self._seconds and self._seconds[-1].second >= second:
            last = self._seconds[-1]
            self._seconds[-1] = last._replace(migrations=last.migrations + migrations, bytes=last.bytes + size)
        else:
            self._seconds.append(_Second(second, migrations, size))

    def at(self, now_us: int) -> MigrationRate:
        """Return the pace over the last `WINDOW_S` seconds, or since the first that was counted in them."""
        now = now_us // SECOND_US
        counted = [one for one in self._seconds if now - WINDOW_S < one.second <= now]
        if not counted:
            return MigrationRate(0.0, 0.0)
        length_s = max(1, min(WINDOW_S, now - counted[0].second + 1))
        return MigrationRate(
            sum(one.migrations for one in counted) / length_s, sum(one.bytes for one in counted) / length_s
        )
