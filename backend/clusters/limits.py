"""What a cluster of some kind cannot do, whoever asks: such actions are not offered on it at all."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from quarterdeck.backend.core.commands.catalogue import CATALOGUE

SNAPSHOTS = "snapshots"
"""Stands among what a cluster lacks when its members do not tell all that they know, so that no copy goes on from there."""

NOT_REMOTE = frozenset(one.tag for one in CATALOGUE if one.http is None and one.operation is None)
"""What no member does that is asked over HTTP."""


ONLY_HAZELCAST = frozenset(one.tag for one in CATALOGUE if one.hazelcast_only)
"""What members of ours do not do."""


@runtime_checkable
class LimitedCluster(Protocol):
    """A cluster that cannot do all that the catalogue of commands has."""

    @property
    def lacks(self) -> frozenset[str]:
        """Tags of the commands that it cannot do (`CommandDescription.tag`); `SNAPSHOTS` when it cannot be copied."""
        ...


def lacks_of(cluster: object) -> frozenset[str]:
    """Return what `cluster` cannot do; where it does not say, what no cluster of ours can."""
    return cluster.lacks if isinstance(cluster, LimitedCluster) else ONLY_HAZELCAST
