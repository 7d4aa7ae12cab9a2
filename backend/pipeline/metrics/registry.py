"""All tables of metrics, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from quarterdeck.backend.pipeline.metrics import availability, detection, messages, migration_throughput, splits
from quarterdeck.backend.pipeline.metrics import view_convergence as view_convergence
from quarterdeck.backend.pipeline.metrics.table_source import TableSource


@dataclass(frozen=True)
class MetricDefinition:
    """A table of metrics: its columns, and how it is made of the tables."""

    name: str
    schema: StructType
    make: Callable[[TableSource], DataFrame]
    meaning: str


METRICS: dict[str, MetricDefinition] = {
    one.name: one
    for one in (
        MetricDefinition(
            "detection", detection.DETECTION, detection.detection, "how long faults went unnoticed, and by whom"
        ),
        MetricDefinition(
            "one_view",
            view_convergence.VIEW_CONVERGENCE,
            view_convergence.view_convergence,
            "how long members took to agree on one list",
        ),
        MetricDefinition(
            "splits", splits.SPLITS, splits.splits, "split brains, with their sides, and how long the merge took"
        ),
        MetricDefinition(
            "availability",
            availability.AVAILABILITY,
            availability.availability,
            "how long partitions were without owner or short of replicas",
        ),
        MetricDefinition(
            "migration_rates",
            migration_throughput.MIGRATION_RATES,
            migration_throughput.migration_rates,
            "how fast data moved",
        ),
        MetricDefinition(
            "plans",
            migration_throughput.PLANS,
            migration_throughput.plans,
            "plans of migrations against their lower bound",
        ),
        MetricDefinition(
            "messages", messages.MESSAGES, messages.messages, "what can be known of the messages that were sent"
        ),
    )
}
"""In the order of the documentation. Durations of migrations, merges and calls stand in the tables of those names."""
