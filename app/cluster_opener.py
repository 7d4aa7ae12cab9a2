"""Opens clusters beside the one that the console was started on. Whoever starts the console says how."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Protocol

from quarterdeck.backend.clusters.cluster import Cluster


class ClusterUnavailable(Exception):
    """A cluster that cannot be opened; the message says why."""


@dataclass(frozen=True)
class OpenedCluster:
    """A cluster, and the end of its start when it starts members."""

    cluster: Cluster
    starting: Future[None] | None = None


class ClusterOpener(Protocol):
    """Opens clusters. What it opens belongs to the console, which closes it."""

    @property
    def names(self) -> Sequence[str]:
        """Names of the clusters in the configuration."""
        ...

    def open(self, name: str) -> OpenedCluster:
        """Open the cluster of this name. Never waits for it. Raises `ClusterUnavailable`."""
        ...


class NoOtherClusters:
    """There is no other cluster to go to."""

    names: Sequence[str] = ()

    def open(self, name: str) -> OpenedCluster:
        raise ClusterUnavailable(f"there is no cluster {name!r}; the configuration names none")
