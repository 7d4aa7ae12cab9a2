"""Follows a cluster, makes its metrics when they are asked for, and hands changes of its condition to the hooks."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from quarterdeck.backend.clusters.cluster import WatchedCluster
from quarterdeck.backend.clusters.observed_story import story_of
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.picture.operations.cluster_metrics import (
    PREFIX,
    ClusterMetric,
    cluster_metrics,
    observed_metrics,
)
from quarterdeck.cli.commands.cluster.watch import FollowedCluster
from quarterdeck.cli.commands.export.hooks import Hooks
from quarterdeck.cli.output import say


class ClusterExporter(Collector):
    """Follows a cluster, and makes its metrics when they are asked for."""

    def __init__(self, cluster: WatchedCluster, hooks: Hooks) -> None:
        self._cluster, self._hooks = cluster, hooks
        self._followed = FollowedCluster(cluster)
        self._lock = threading.Lock()
        """Metrics are asked for in a thread of the server's."""
        self._last: dict[str, object] | None = None

    def follow(self) -> None:
        """Apply what has come, and hand a change to the hooks."""
        with self._lock:
            self._followed.follow()
            if not self._cluster.is_settled:
                return
            now_us = self._cluster.now_us()
            health = self._followed.health()
            fields = health.as_fields(now_us)
            masters = sorted(label for label, belief in self._followed.picture.members.items() if belief.leads)
        lost: Any = fields["data_lost"]
        state = {
            "condition": health.condition,
            "whole": fields["whole"],
            "data_safe": fields["data_safe"],
            "lost_partitions": lost and lost["partitions"],
            "masters": masters,
        }
        if state != self._last:
            before, self._last = self._last, state
            say(health.narrated)
            at = datetime.now(UTC).isoformat(timespec="milliseconds")
            self._hooks.send({"cluster": self._cluster.name, "at": at, **fields, **state, "before": before})

    def collect(self) -> Iterable[Metric]:
        """Return the metrics of this moment."""
        with self._lock:
            states = {
                label: status.state or status.contact for label, status in self._cluster.connection_status().items()
            }
            now_us = self._cluster.now_us()
            found = [*cluster_metrics(self._followed.picture, self._followed.health(), states, now_us)]
            story = story_of(self._cluster)
            if story is not None:
                seen = ((known.kind, ", ".join(known.members), known.is_open) for known in story.observations)
                found += observed_metrics(seen)
            heard_us = self._followed.picture.at
        yield from map(_family, found)
        age = GaugeMetricFamily("quarterdeck_cluster_last_record_age_seconds", "Since a member reported anything.")
        if heard_us:
            age.add_metric([], max(now_us - heard_us, 0) / SECOND_US)
        yield age
        dropped = CounterMetricFamily("quarterdeck_cluster_hooks_failed", "Changes that a hook did not take.")
        dropped.add_metric([], self._hooks.failed)
        yield dropped


def _family(metric: ClusterMetric) -> Metric:
    kind = CounterMetricFamily if metric.counts_up else GaugeMetricFamily
    family = kind(PREFIX + metric.name, metric.meaning, labels=metric.labels)
    for labels, value in metric.samples.items():
        family.add_metric(labels, value)
    return family
