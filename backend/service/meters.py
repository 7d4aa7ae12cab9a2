"""What a member's process counts and times for its metrics, besides what follows from events."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict

from quarterdeck.backend.core.causes import RefusalCause

BOUNDS_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Durations:
    """How long many things took: a histogram."""

    __slots__ = ("counts", "seconds")

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS_SECONDS) + 1)
        """By bucket: those that took longer than the bound before it and no longer than its own; the last has no bound."""
        self.seconds = 0.0
        """The sum of all."""

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(BOUNDS_SECONDS, seconds)] += 1
        self.seconds += seconds


class Meters:
    """The meters of one member."""

    def __init__(self) -> None:
        self.requests: defaultdict[tuple[str, str], Durations] = defaultdict(Durations)
        """By what the path is about, and the hundreds of the status."""
        self.calls: defaultdict[tuple[str, str], Durations] = defaultdict(Durations)
        """By operation on a map, and how it ended."""
        self.refusals: Counter[RefusalCause] = Counter()
        """Clients that were refused at the member's port, by cause."""


ROOMS = {
    "/hazelcast/health": "health",
    "/hazelcast/rest/maps/": "maps",
    "/hazelcast/rest/": "operations",
    "/quarterdeck/v1/maps/": "maps",
    "/quarterdeck/v1": "console",
    "/metrics": "metrics",
}
"""By how a path begins; the first that fits counts. Short, for each is a label of metrics."""


def room_of(path: str) -> str:
    """Return the subject of a path."""
    return next((room for start, room in ROOMS.items() if path.startswith(start)), "other")
