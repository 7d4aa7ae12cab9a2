"""How much happens, second by second: heartbeats that come late, operations of clients, migrations that end."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from quarterdeck.backend.core.data.events import CallFinished
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


class Series(NamedTuple):
    """One thing that is counted."""

    title: str
    kinds: tuple[type, ...]
    aspect: Aspect
    tone: Tone
    """What a second in which it happened is painted in."""


SERIES = (
    Series("late heartbeats", (HeartbeatLate,), "heartbeats", "warning"),
    Series("operations", (CallFinished,), "data", "plain"),
    Series("migrations", (MigrationDecided, ReplicaMigrated), "migration-ends", "strong"),
)


@dataclass(frozen=True, slots=True)
class Pulse:
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
        self._counts: tuple[dict[int, int], ...] = tuple({} for _ in SERIES)

    def restart(self, records: Iterable[Record]) -> None:
        """Count `records` instead of all that was counted."""
        for counts in self._counts:
            counts.clear()
        self.take(records)

    def take(self, records: Iterable[Record]) -> None:
        place_of = self._place
        for record in records:
            place = place_of.get(type(record.event))
            if place is not None and not (type(record.event) is HeartbeatLate and record.event.over):
                second = record.at // SECOND_US
                counts = self._counts[place]
                if second not in counts and len(counts) > 2 * SECONDS:
                    for old in sorted(counts)[:SECONDS]:
                        del counts[old]
                counts[second] = counts.get(second, 0) + 1

    def pulses(self, picture: Picture, now_us: int) -> tuple[Pulse, ...]:
        """All series up to the last second that is over."""
        last = now_us // SECOND_US - 1
        found = []
        for series, counts in zip(SERIES, self._counts, strict=True):
            numbers = [counts.get(second, 0) for second in range(last - SECONDS + 1, last + 1)]
            if picture.without(series.aspect) is not None:
                found.append(Pulse(series.title, "", NOT_REPORTED, "faint"))
                continue
            tone: Tone = series.tone if any(numbers) else "faint"
            found.append(Pulse(series.title, bars(numbers, max(numbers)), f"{numbers[-1]}/s", tone))
        return tuple(found)
