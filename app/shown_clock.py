"""The clock on which the times of a cluster are shown: UTC, or the seconds since its run began."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache

from quarterdeck.app.console_state import Clock
from quarterdeck.backend.clusters.cluster import Source
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.picture.text.formatting import clock_text

DATED = frozenset[Source]({"remote", "hazelcast", "recorded"})
"""Clusters whose times are compared with those of other systems."""


class ShownClock:
    """Writes times on the clock that the operator has chosen; until then on the one that suits the cluster.

    In simulated time a record's UTC is the time of its run.
    """

    def __init__(self, source: Source) -> None:
        self._is_dated = source in DATED
        self.chosen: Clock = "auto"
        self._ahead_us = 0
        """By how much UTC shows more than the run's clock."""

    def learn(self, record: Record) -> None:
        """Take over how the two clocks stand to each other at `record`."""
        self._ahead_us = record.utc - record.at

    @property
    def utc(self) -> bool:
        if self.chosen == "auto":
            return self._is_dated and self._ahead_us > 0
        return self.chosen == "utc"

    @property
    def zone(self) -> str:
        """The zone of the times; empty for seconds of the run."""
        return "UTC" if self.utc else ""

    def of_record(self, record: Record) -> str:
        """Return when a record was made, in as many cells as any other one of this clock."""
        return utc_text(record.utc) if self.utc else clock_text(record.at)

    def of_moment(self, at_us: int) -> str:
        """Return a moment of the run, in as many cells as any other one of this clock."""
        return utc_text(at_us + self._ahead_us) if self.utc else clock_text(at_us)

    def spoken(self, at_us: int) -> str:
        """Return a moment of the run with its unit or zone, as a sentence has it."""
        return f"{self.of_moment(at_us).strip()} {self.zone or 's'}"


@lru_cache(maxsize=4096)
def utc_text(utc_us: int) -> str:
    """Return the time of day in UTC, with milliseconds."""
    return datetime.fromtimestamp(utc_us / SECOND_US, tz=UTC).strftime("%H:%M:%S.%f")[:-3]
