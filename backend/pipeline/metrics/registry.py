"""All tables of metrics, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from quarterdeck.backend.pipeline.metrics import availability, detection, messages, moving, one_view, splits
from quarterdeck.backend.pipeline.metrics.material import Material


@dataclass(frozen=True)
class Metric:
    """A table of metrics: its columns, and how it is made of the tables."""

    name: str
    schema: StructType
    make: Callable[[Material], DataFrame]
    meaning: str


METRICS: dict[str, Metric] = {
    one.name: one
    for one in (
        Metric("detection", detection.DETECTION, detection.detection, "how long faults went unnoticed, and by whom"),
        Metric("one_view", one_view.ONE_VIEW, one_view.one_view, "how long members took to agree on one list"),
        Metric("splits", splits.SPLITS, splits.splits, "split brains, with their sides, and how long the merge took"),
        Metric(
            "availability",
            availability.AVAILABILITY,
            availability.availability,
            "how long partitions were without owner or short of replicas",
        ),
        Metric("migration_rates", moving.MIGRATION_RATES, moving.migration_rates, "how fast data moved"),
        Metric("plans", moving.PLANS, moving.plans, "plans of migrations against their lower bound"),
        Metric("messages", messages.MESSAGES, messages.messages, "what can be known of the messages that were sent"),
    )
}
"""In the order of the documentation. Durations of migrations, merges and calls stand in the tables of those names."""
