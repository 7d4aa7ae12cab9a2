"""Clusters whose members tell all that they know, so that a simulated copy can go on from there."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Protocol, runtime_checkable

from quarterdeck.backend.core.cluster_snapshot import ClusterSnapshot


@runtime_checkable
class SnapshotSource(Protocol):
    """A cluster of which snapshots can be taken."""

    def snapshot(self) -> Future[ClusterSnapshot]:
        """Return what its members are now; those that do not answer are in it without a state. It never waits.

        The future fails with `CommandRefused` when no member answers, or none may be asked.
        """
        ...
