"""What the metrics of a member of Hazelcast say of its maps: entries that it owns, entries that it keeps as backups, operations.

Metrics come every 5 seconds, and count operations since the member began.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from quarterdeck.backend.core.data.events import DataMeasured, MapMeasured
from quarterdeck.backend.hazelcast.wire.messages import MetricSet

PREFIX = "map."
READS = ("getCount",)
WRITES = ("putCount", "setCount", "removeCount")
WANTED = frozenset(
    ("ownedEntryCount", "ownedEntryMemoryCost", "backupEntryCount", "backupEntryMemoryCost", *READS, *WRITES)
)
MAPS_RECORDED = 100
"""So many maps are recorded, those with most entries first."""

MILLISECOND_US = 1_000


class MapMetrics(NamedTuple):
    """What one set of metrics says of the maps of a member, by map and metric."""

    at_ms: int
    maps: Mapping[str, Mapping[str, int]]


def map_metrics(metrics: MetricSet) -> MapMetrics | None:
    """Return what the metrics say of maps; None if they say nothing of any."""
    maps: dict[str, dict[str, int]] = {}
    for sample in metrics.samples:
        name = sample.name.removeprefix(PREFIX)
        if name in WANTED and name != sample.name and sample.discriminator is not None:
            maps.setdefault(sample.discriminator[1], {})[name] = int(sample.value)
    return MapMetrics(metrics.at_ms, maps) if maps else None


def data_measured(before: MapMetrics | None, now: MapMetrics) -> DataMeasured | None:
    """Return what is stored now, and what was asked of the member since the metrics before; None if that is the same."""
    if before is not None and before.maps == now.maps:
        return None

    def total(name: str) -> int:
        return sum(counts.get(name, 0) for counts in now.maps.values())

    def since(map_name: str, names: tuple[str, ...]) -> int:
        """Count the operations since the metrics before; none where there are no others to compare with."""
        earlier = before.maps.get(map_name) if before is not None else None
        if earlier is None:
            return 0
        counts = now.maps[map_name]
        return max(sum(counts.get(name, 0) - earlier.get(name, 0) for name in names), 0)

    largest = sorted(now.maps, key=lambda name: (-now.maps[name].get("ownedEntryCount", 0), name))[:MAPS_RECORDED]
    rows = tuple(
        MapMeasured(
            name,
            now.maps[name].get("ownedEntryCount", 0),
            now.maps[name].get("ownedEntryMemoryCost", 0),
            since(name, READS),
            since(name, WRITES),
        )
        for name in sorted(largest)
    )
    span_us = max(now.at_ms - before.at_ms, 0) * MILLISECOND_US if before is not None else 0
    return DataMeasured(
        span_us, total("ownedEntryCount"), total("ownedEntryMemoryCost"), total("backupEntryCount"),
        total("backupEntryMemoryCost"), 0, rows, (), (),
    )  # fmt: skip
