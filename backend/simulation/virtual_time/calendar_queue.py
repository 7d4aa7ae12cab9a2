"""The queue in which everything waits that is to happen in a simulated run: a calendar (R. Brown, Calendar Queues, 1988).

Most of what is put in is due soon, and much of it comes in order. So it is put aside by the day that it is due, where a day is
some hundred microseconds, and a day is sorted when it has come. That costs an arrival less than a place in one great heap.
While few days wait, all of them are opened at once: the queue of a small cluster is one sorted list.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from heapq import heappop, heappush

from quarterdeck.backend.simulation.virtual_time.node import Arrival

DAY_BITS = 9
"""A day has 512 microseconds: about the latency of a message, so that little is put in on the day on which it is due."""

FEW_DAYS = 16
"""Fewer than these are opened at once: where a day has an event or two, opening it costs more than a place in a short list."""


class CalendarQueue:
    """Arrivals in the order of their times and places. Nothing is put in before the present, which is in what is opened."""

    __slots__ = ("_days", "_numbers", "_opened", "_opened_until_us")

    def __init__(self) -> None:
        self._days: dict[int, list[Arrival]] = {}
        self._numbers: list[int] = []
        """A heap of the numbers of `_days`."""
        self._opened: list[Arrival] = []
        """What is due on the days that are opened, in order."""
        self._opened_until_us = 0
        """When the last of these days ends."""

    def __len__(self) -> int:
        return len(self._opened) + sum(map(len, self._days.values()))

    def __iter__(self) -> Iterator[Arrival]:
        """Return all arrivals in order."""
        return iter(sorted(arrival for day in (self._opened, *self._days.values()) for arrival in day))

    def put(self, arrival: Arrival) -> None:
        if arrival[0] < self._opened_until_us:
            insort(self._opened, arrival)
            return
        number = arrival[0] >> DAY_BITS
        if (day := self._days.get(number)) is not None:
            day.append(arrival)
        else:
            self._days[number] = [arrival]
            heappush(self._numbers, number)

    def put_all(self, arrivals: list[Arrival]) -> None:
        """Put in many arrivals, which are in order."""
        place = 0
        if arrivals[0][0] < self._opened_until_us:
            place = bisect_left(arrivals, (self._opened_until_us,))
            for arrival in arrivals[:place]:
                insort(self._opened, arrival)
        while place < len(arrivals):
            number = arrivals[place][0] >> DAY_BITS
            day = self._days.get(number)
            if day is None:
                self.put(arrivals[place])
                place += 1
            else:
                end = bisect_left(arrivals, ((number + 1) << DAY_BITS,), place)
                day += arrivals[place:end]
                place = end

    def open_days(self, until_us: int) -> list[Arrival] | None:
        """Return what happens next, in order; None if no day that comes next has anything that begins until then.

        What is put in for these days while they are gone through takes its place behind the present. They have to be closed.
        """
        if not self._opened:
            numbers = self._numbers
            if not numbers or numbers[0] << DAY_BITS > until_us:
                return None
            for _ in range(len(numbers) if len(numbers) < FEW_DAYS else 1):
                last = heappop(numbers)
                self._opened += self._days.pop(last)
            self._opened.sort()
            self._opened_until_us = (last + 1) << DAY_BITS
        return self._opened

    def close_days(self) -> None:
        """Forget the opened days, all of which have happened."""
        self._opened = []
        self._opened_until_us = 0

    def leave_days(self, at_us: int, order: int) -> None:
        """Forget what has happened of the opened days; what stands at this time and place comes next."""
        del self._opened[: bisect_left(self._opened, (at_us, order))]
