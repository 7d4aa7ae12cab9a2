"""Streams of records of many members, merged into one in the order of time.

Members disagree, and their clocks do a little too: this puts side by side what they said, and judges nothing.
"""

from __future__ import annotations

from bisect import bisect_right
from operator import attrgetter
from typing import NamedTuple

from quarterdeck.backend.core.events import Record

HOLD_US = 150_000
"""How long a record waits for those of other members that happened before it and arrive after it."""

HISTORY_HOLD_US = 3_000_000
"""How long the records of some wait for the history of others that is on its way."""


class _Held(NamedTuple):
    utc_us: int
    """Never before that of an earlier record of the same source, so that sorting keeps the order of each."""
    arrived_us: int
    record: Record


class RecordMerge:
    """Takes in records by source, gives out each once, in the order of UTC as far as holding them for a moment allows.

    Of one uuid the numbers only grow: a record that was seen, or was passed over by a gap, is not given out later.
    """

    def __init__(self, hold_us: int = HOLD_US, history_hold_us: int = HISTORY_HOLD_US) -> None:
        self._hold_us, self._history_hold_us = hold_us, history_hold_us
        self._held: list[_Held] = []
        self._highest: dict[str, int] = {}
        """By uuid: the number of the latest record taken in."""
        self._latest_utc: dict[str, int] = {}
        self._history_sources: dict[str, int] = {}
        """Sources that are sending their history, and since when."""

    def begin_history(self, source: str, now_us: int) -> None:
        """Note that what `source` adds from now on is long past: others wait for it."""
        self._history_sources[source] = now_us

    def end_history(self, source: str) -> None:
        """Note that what `source` adds from now on has just happened: others need not wait for it."""
        self._history_sources.pop(source, None)

    def add(self, source: str, record: Record, now_us: int) -> bool:
        """Take in one record, at `now_us` by any steady clock; whether it was new."""
        if record.seq <= self._highest.get(record.uuid, 0):
            return False
        self._highest[record.uuid] = record.seq
        utc_us = max(record.utc, self._latest_utc.get(source, record.utc))
        self._latest_utc[source] = utc_us
        self._held.append(_Held(utc_us, now_us, record))
        return True

    def release(self, now_us: int) -> list[Record]:
        """Return the records that have waited long enough, with all that happened before them."""
        if any(now_us - since_us < self._history_hold_us for since_us in self._history_sources.values()):
            return []
        ripe = [held.utc_us for held in self._held if now_us - held.arrived_us >= self._hold_us]
        self._held.sort(key=attrgetter("utc_us"))
        count = bisect_right(self._held, max(ripe, default=-1), key=attrgetter("utc_us"))
        released, self._held = self._held[:count], self._held[count:]
        return [held.record for held in released]
