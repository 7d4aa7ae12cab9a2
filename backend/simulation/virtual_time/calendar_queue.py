"""The queue in which everything waits that is to happen in a simulated run: a calendar (R. Brown, Calendar Queues, 1988).

Most of what is put in is due soon, and much of it comes in order. So it is put aside by the day that it is due, and a day is
sorted when it has come. That costs an arrival less than a place in one great heap.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from heapq import heappop, heappush

from quarterdeck.backend.simulation.virtual_time.node import Arrival

SHORT_DAY_BITS = 8
"""A day has 256 microseconds: hardly more than the least latency, so that little is put in on the day on which it is due."""

FEW_SENDERS = 12
LONG_DAY_BITS = 15
"""So few senders have a day of 33 milliseconds: on shorter ones there would be one arrival."""

NO_DAY = -1


class CalendarQueue:
    """Arrivals in the order of their times and places. Nothing is put in before the present, which is in the opened day."""

    __slots__ = ("_day_bits", "_days", "_numbers", "_today")

    def __init__(self, senders: int) -> None:
        self._day_bits = LONG_DAY_BITS if senders <= FEW_SENDERS else SHORT_DAY_BITS
        self._days: dict[int, list[Arrival]] = {}
        self._numbers: list[int] = []
        """A heap of the numbers of all days but the opened one."""
        self._today = NO_DAY

    def __len__(self) -> int:
        return sum(map(len, self._days.values()))

    def __iter__(self) -> Iterator[Arrival]:
        return iter(sorted(arrival for day in self._days.values() for arrival in day))

    def put(self, arrival: Arrival) -> None:
        number = arrival[0] >> self._day_bits
        if number == self._today:
            insort(self._days[number], arrival)
        elif (day := self._days.get(number)) is not None:
            day.append(arrival)
        else:
            self._days[number] = [arrival]
            heappush(self._numbers, number)

    def put_all(self, arrivals: Sequence[Arrival]) -> None:
        """Put in many arrivals, which are in order."""
        place = 0
        while place < len(arrivals):
            number = arrivals[place][0] >> self._day_bits
            day = self._days.get(number)
            if day is None or number == self._today:
                self.put(arrivals[place])
                place += 1
            else:
                end = bisect_left(arrivals, ((number + 1) << self._day_bits,), place)
                day += arrivals[place:end]
                place = end

    def open_day(self, until_us: int) -> list[Arrival] | None:
        """Return what happens on the next day, in order; None if no day has anything that begins until then.

        What is put in for this day while it is gone through takes its place behind the present. It has to be closed.
        """
        if self._today == NO_DAY:
            if not self._numbers or self._numbers[0] << self._day_bits > until_us:
                return None
            self._today = heappop(self._numbers)
            self._days[self._today].sort()
        return self._days[self._today]

    def close_day(self) -> None:
        """Forget the opened day, all of which has happened."""
        del self._days[self._today]
        self._today = NO_DAY

    def leave_day(self, at_us: int, order: int) -> None:
        """Forget what has happened of the opened day; what stands at this time and place comes next."""
        day = self._days[self._today]
        del day[: bisect_left(day, (at_us, order))]
