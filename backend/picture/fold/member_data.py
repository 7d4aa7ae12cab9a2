"""The last report of a member about its data: stored entries, operations, and backups that lag.

An operator reads rates. A member of which nothing is asked says nothing, so a rate holds only until it would have said more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from msgspec import Struct

from quarterdeck.backend.core.data.events import DataMeasured
from quarterdeck.backend.core.properties import SECOND_US

SPANS_VALID = 2
"""The number of spans over which a rate holds after it was counted."""


class Rate(NamedTuple):
    """Operations on single keys a second."""

    reads: float = 0.0
    writes: float = 0.0

    @property
    def both(self) -> float:
        """All of them."""
        return self.reads + self.writes

    def __bool__(self) -> bool:
        return self.both > 0


NO_RATE = Rate()


class Stored(NamedTuple):
    """The entries of a map or a partition at one owner, and its operations in a span of time up to `at_us`."""

    entries: int
    bytes: int
    reads: int
    writes: int
    span_us: int
    at_us: int
    behind: int = 0
    """Of a partition: writes that some backup had not confirmed."""
    oldest_us: int = 0
    """When the oldest of them was made."""
    backups: int | None = None
    """Of a map: how many it is to have; None where that is not reported."""
    backup_entries: int | None = None
    """Of a map: the entries that the member holds as a backup."""
    hits: int | None = None
    """Of a map: how often an entry of it was found."""
    reading_us: int | None = None
    """Of a map: how long the reads took together."""
    writing_us: int | None = None
    slowest_read_us: int | None = None
    """Of a map: how long the slowest read took since the member counts."""
    slowest_write_us: int | None = None

    def rate(self, now_us: int) -> Rate:
        """Return the present rate of its operations."""
        return rate_of(self.reads, self.writes, self.span_us, self.at_us, now_us)


class Answered(NamedTuple):
    """How owners answered of late; None is not reported, or nothing was asked."""

    hits: float | None = None
    """How often an entry was found, a second."""
    read_us: float | None = None
    """How long a read took at its owner, in the mean."""
    write_us: float | None = None
    slowest_read_us: int | None = None
    """How long the slowest read took since its owner counts; it may be long ago."""
    slowest_write_us: int | None = None


def answered(maps: Iterable[Stored], now_us: int) -> Answered:
    """Return how these maps answered together."""
    parts = list(maps)
    used = [stored for stored in parts if stored.rate(now_us)]
    hits = [stored.hits * SECOND_US / stored.span_us for stored in used if stored.hits is not None]

    def mean(times: Iterable[tuple[int | None, int]]) -> float | None:
        known = [(took_us, count) for took_us, count in times if took_us is not None]
        count = sum(count for _, count in known)
        return sum(took_us for took_us, _ in known) / count if count else None

    return Answered(
        sum(hits) if hits else None,
        mean((stored.reading_us, stored.reads) for stored in used),
        mean((stored.writing_us, stored.writes) for stored in used),
        max((part.slowest_read_us for part in parts if part.slowest_read_us is not None), default=None),
        max((part.slowest_write_us for part in parts if part.slowest_write_us is not None), default=None),
    )


class Lag(NamedTuple):
    """Writes of one owner that a backup has not confirmed, and the number of their partitions; the oldest of `oldest_us`."""

    partitions: int
    writes: int
    oldest_us: int


class MemberData(Struct, frozen=True):
    """The report of one incarnation about its data. It is replaced, not changed."""

    entries: int = 0
    bytes: int = 0
    backup_entries: int = 0
    backup_bytes: int = 0
    backup_writes: int = 0
    reads: int = 0
    writes: int = 0
    span_us: int = 0
    at_us: int = 0
    maps: Mapping[str, Stored] = {}
    partitions: Mapping[int, Stored] = {}
    lagging: Mapping[str, Lag] = {}
    """By address of the backup."""

    def rate(self, now_us: int) -> Rate:
        """Return the present rate of its operations as an owner."""
        return rate_of(self.reads, self.writes, self.span_us, self.at_us, now_us)

    def backup_rate(self, now_us: int) -> float:
        """Return the writes a second that it takes in as a backup now."""
        return rate_of(0, self.backup_writes, self.span_us, self.at_us, now_us).writes


NOTHING = MemberData()


def rate_of(reads: int, writes: int, span_us: int, at_us: int, now_us: int) -> Rate:
    """Return the rate of what was counted in `span_us` up to `at_us`: none when a later count is overdue at `now_us`."""
    if span_us <= 0 or now_us - at_us > SPANS_VALID * span_us:
        return NO_RATE
    return Rate(reads * SECOND_US / span_us, writes * SECOND_US / span_us)


def measured(before: MemberData | None, event: DataMeasured, at: int, *, by_map: bool = False) -> MemberData:
    """Return what is known after the member has reported what has changed. Much is reported in several events of one instant.

    Members of ours report operations by partition and by map, those of Hazelcast `by_map` alone.
    """
    more = before if before is not None and before.at_us == at else NOTHING
    before = before or NOTHING
    reads = sum(part.reads for part in event.maps) if by_map else sum(row[3] for row in event.rows if len(row) > 1)
    writes = sum(part.writes for part in event.maps) if by_map else sum(row[4] for row in event.rows if len(row) > 1)
    partitions = _taken(before.partitions, event.rows, event.span, at)
    maps = {name: stored for name, stored in before.maps.items() if stored.entries or stored.at_us == at}
    for part in event.maps:
        counts = part.entries, part.bytes, part.reads, part.writes
        maps[part.map] = Stored(
            *counts, event.span, at, backups=part.backups, backup_entries=part.backup_entries,
            hits=part.hits, reading_us=part.reading, writing_us=part.writing,
            slowest_read_us=part.slowest_read, slowest_write_us=part.slowest_write,
        )  # fmt: skip
    lagging = {str(lag.backup): Lag(lag.partitions, lag.writes, at - lag.oldest) for lag in event.lagging}
    return MemberData(
        entries=event.entries,
        bytes=event.bytes,
        backup_entries=event.backup_entries,
        backup_bytes=event.backup_bytes,
        backup_writes=event.backup_writes + more.backup_writes,
        reads=reads + more.reads,
        writes=writes + more.writes,
        span_us=event.span,
        at_us=at,
        maps=maps,
        partitions=partitions,
        lagging=lagging,
    )


def _taken(old: Mapping[int, Stored], rows: Iterable[tuple[int, ...]], span_us: int, at: int) -> Mapping[int, Stored]:
    partitions = dict(old)
    for partition, *values in rows:
        if not values:
            partitions.pop(partition, None)
            continue
        entries, size, reads, writes, *lag = values
        behind, age_us = lag or (0, 0)
        partitions[partition] = Stored(entries, size, reads, writes, span_us, at, behind, at - age_us if behind else 0)
    return partitions
