"""All tables of metrics, by name."""

from __future__ import annotations

from quarterdeck.backend.pipeline.metrics import availability, detection, split_brains, traffic, view_convergence
from quarterdeck.backend.pipeline.metrics.table_source import TableSource
from quarterdeck.backend.pipeline.tables.columns import TableDefinition as Table

_METRICS: tuple[Table[TableSource], ...] = (
    Table("detection", detection.DETECTION, detection.detection, "how long faults went unnoticed, and by whom"),
    Table(
        "one_view",
        view_convergence.VIEW_CONVERGENCE,
        view_convergence.view_convergence,
        "how long members took to agree on one list",
    ),
    Table(
        "splits",
        split_brains.SPLITS,
        split_brains.splits,
        "split brains, with their sides, and how long the merge took",
    ),
    Table(
        "availability",
        availability.AVAILABILITY,
        availability.availability,
        "how long partitions were without owner or short of replicas",
    ),
    Table("migration_rates", traffic.MIGRATION_RATES, traffic.migration_rates, "how fast data moved"),
    Table("plans", traffic.PLANS, traffic.plans, "plans of migrations against their lower bound"),
    Table("messages", traffic.MESSAGES, traffic.messages, "what can be known of the messages that were sent"),
)

METRICS = {table.name: table for table in _METRICS}
"""In the order of the documentation. Durations of migrations, merges and calls are in the tables of those names."""
