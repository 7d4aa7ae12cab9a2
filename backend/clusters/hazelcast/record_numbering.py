"""From events that are heard late and out of order to the records of each incarnation, numbered in the order of time."""

from __future__ import annotations

from bisect import bisect_right
from operator import attrgetter
from typing import NamedTuple

from quarterdeck.backend.core.events import WITNESSED_FORM, Event, Record
from quarterdeck.backend.core.membership.events import MemberMerging, MemberStopped

ONCE: tuple[type, ...] = (MemberMerging, MemberStopped)
"""An incarnation ends once, though both its log and the connection may report it."""

MOST_NUMBERED = 10_000
"""Incarnations whose latest numbers are remembered."""


class _Waiting(NamedTuple):
    at_us: int
    member: str
    uuid: str
    event: Event
    due_us: int


class RecordNumbering:
    """Takes events with their times on the run's clock, gives records."""

    def __init__(self, run: str, began_utc_us: int, hold_us: int = 0) -> None:
        """`began_utc_us` is UTC when the run's clock shows 0; each event waits for `hold_us`."""
        self.run = run
        self.hold_us, self._began_utc_us = hold_us, began_utc_us
        self._waiting: list[_Waiting] = []
        self._latest: dict[str, tuple[int, int]] = {}
        """By uuid, the number and the time of its latest record."""
        self._ended: dict[str, None] = {}

    def add(self, at_us: int, member: str, uuid: str, event: Event, now_us: int) -> None:
        """Something happened to the incarnation `uuid`, and was heard now."""
        self._waiting.append(_Waiting(at_us, member, uuid, event, now_us + self.hold_us))

    def release(self, now_us: int) -> list[Record]:
        """Return the records of what has waited long enough, with all that happened before."""
        ripe = [waiting.at_us for waiting in self._waiting if waiting.due_us <= now_us]
        if not ripe:
            return []
        self._waiting.sort(key=attrgetter("at_us"))
        count = bisect_right(self._waiting, max(ripe), key=attrgetter("at_us"))
        released, self._waiting = self._waiting[:count], self._waiting[count:]
        return [record for item in released if (record := self._numbered(item)) is not None]

    def _numbered(self, waiting: _Waiting) -> Record | None:
        if isinstance(waiting.event, ONCE):
            if waiting.uuid in self._ended:
                return None
            self._ended[waiting.uuid] = None
        number, latest_us = self._latest.pop(waiting.uuid, (0, 0))
        at_us = max(waiting.at_us, latest_us)
        self._latest[waiting.uuid] = (number + 1, at_us)
        for known in (self._latest, self._ended):
            if len(known) > MOST_NUMBERED:
                del known[next(iter(known))]  # long since nothing was heard of it
        utc_us = self._began_utc_us + at_us
        return Record(
            self.run, waiting.member, waiting.uuid, number + 1, at_us, utc_us, waiting.event, form=WITNESSED_FORM
        )
