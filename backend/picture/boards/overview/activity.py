"""How much happens, second by second: heartbeats that come late, operations of clients, migrations that end."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from msgspec import Struct

from quarterdeck.backend.core.data.events import DataMeasured
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.membership.events import HeartbeatLate
from quarterdeck.backend.core.partitions.events import MigrationDecided
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.core.witnessed.events import Aspect, ReplicaMigrated
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.text.fact import NOT_REPORTED, Tone
from quarterdeck.backend.picture.text.formatting import bars

SECONDS = 20
"""As far as it is shown; the second that is not over yet is not."""

READS, WRITES = 3, 4
"""Places in a row of `DataMeasured.rows`."""


class Series(NamedTuple):
    """One thing that is counted."""

    title: str
    kinds: tuple[type, ...]
    aspect: Aspect
    tone: Tone
    """What a second in which it happened is painted in."""
    lag_seconds: int = 0
    """How long members take to report it."""


SERIES = (
    Series("late heartbeats", (HeartbeatLate,), "heartbeats", "warning"),
    Series("operations", (DataMeasured,), "data", "plain", lag_seconds=2),
    Series("migrations", (MigrationDecided, ReplicaMigrated), "migration-ends", "strong"),
)


class Pulse(Struct, frozen=True):
    """One thing over the last seconds."""

    title: str
    bars: str
    rate: str
    """How often it happened in the last second that is over, or that this is not known."""
    tone: Tone


class Activity:
    """Counts the records of each of `SERIES` by seconds."""

    def __init__(self) -> None:
        self._place = {kind: place for place, series in enumerate(SERIES) for kind in series.kinds}
        self._counts: tuple[dict[int, float], ...] = tuple({} for _ in SERIES)

    def restart(self, records: Iterable[Record]) -> None:
        """Count `records` instead of all that was counted."""
        for counts in self._counts:
            counts.clear()
        self.take(records)

    def take(self, records: Iterable[Record]) -> None:
        place_of = self._place
        for record in records:
            event = record.event
            place = place_of.get(type(event))
            if place is None or (isinstance(event, HeartbeatLate) and event.over):
                continue
            last, times, seconds = record.at // SECOND_US, 1, 1
            if isinstance(event, DataMeasured):
                times = sum(row[READS] + row[WRITES] for row in event.rows if len(row) > WRITES)
                seconds = max(1, round(event.span / SECOND_US))
            counts = self._counts[place]
            for second in range(last - seconds + 1, last + 1):
                counts[second] = counts.get(second, 0) + times / seconds
            if len(counts) > 3 * SECONDS:
                for old in sorted(counts)[:SECONDS]:
                    del counts[old]

    def pulses(self, picture: Picture, now_us: int) -> tuple[Pulse, ...]:
        """All series up to the last second that is over."""
        last = now_us // SECOND_US - 1
        found = []
        for series, counts in zip(SERIES, self._counts, strict=True):
            end = last - series.lag_seconds + 1
            numbers = [round(counts.get(second, 0)) for second in range(end - SECONDS, end)]
            if picture.without(series.aspect) is not None:
                found.append(Pulse(series.title, "", NOT_REPORTED, "faint"))
                continue
            tone: Tone = series.tone if any(numbers) else "faint"
            found.append(Pulse(series.title, bars(numbers, max(numbers)), f"{numbers[-1]}/s", tone))
        return tuple(found)
