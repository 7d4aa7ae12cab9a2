"""A running cluster that is followed: a picture that grows with its records, and the judgement of its health."""

from __future__ import annotations

from quarterdeck.backend.clusters.connection_status import WatchedCluster, missed_members
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.health.cluster_health import ClusterHealth, HealthJudge


class FollowedCluster:
    """A cluster and what is known of it after the records that came."""

    def __init__(self, cluster: WatchedCluster) -> None:
        self.cluster, self.picture = cluster, Picture()
        self._judge = HealthJudge()

    def follow(self) -> list[Record]:
        """Apply the records that came since the last call, and return them."""
        fresh = self.cluster.drain()
        for record in fresh:
            self.picture.apply(record)
        return fresh

    def health(self) -> ClusterHealth:
        """Return whether the cluster is whole and its data safe now."""
        return self._judge.judge(self.picture, self.cluster.now_us(), *missed_members(self.cluster.connection_status()))
