"""The `Cluster` protocol: how console, command line and demos reach a cluster of any kind, and what some kinds cannot do."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from quarterdeck.backend.core.commands.catalogue import CATALOGUE
from quarterdeck.backend.core.commands.commands import Command, CommandRefused
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.operations import Answer, Operation

if TYPE_CHECKING:
    from quarterdeck.backend.core.cluster_snapshot import ClusterSnapshot  # it reads all that a member consists of

Source = Literal["live", "simulated", "recorded", "remote", "hazelcast", "copy"]
"""Members of Hazelcast are watched from outside. A `copy` is a simulated cluster that goes on from the members of another one."""

SNAPSHOTS = "snapshots"
"""Stands among what a cluster lacks when its members do not report all that they know, so that no copy goes on from there."""

NOT_REMOTE = frozenset(command.tag for command in CATALOGUE if command.http is None and command.operation is None)
"""What no member does that is asked over HTTP."""

NO_DIAGNOSTICS = frozenset(command.tag for command in CATALOGUE if command.ability == "diagnostics")
"""What takes members that write diagnostics, as ours do not."""


class Cluster(Protocol):
    """A cluster to watch and, when `writable`, to act on. Everything about it is learnt from its records."""

    @property
    def name(self) -> str: ...

    @property
    def source(self) -> Source: ...

    @property
    def writable(self) -> bool: ...

    @property
    def labels(self) -> Sequence[str]:
        """Labels of all members there ever were, in order of first appearance."""

    def now_us(self) -> int:
        """Now on the run's monotonic clock, in microseconds."""

    def drain(self) -> list[Record]:
        """Return the records since the last call, oldest first. It never waits. For one reader."""

    def execute(self, command: Command) -> Future[None]:
        """Do `command`. The future fails with `CommandRefused` when it cannot be done. Never waits."""

    def call(self, member: str, operation: Operation, *, watched: bool = False) -> Future[Answer]:
        """Ask `member` for an operation on a distributed map, as a client would. Never waits.

        The future fails with `CommandRefused` when the member is not there to be asked. When it dies before it has answered, the
        answer says so. A `watched` put, get or remove is recorded.
        """

    def close(self) -> None:
        """End the cluster (or the connection to it) and release what it holds; returns when that is done."""


@runtime_checkable
class LimitedCluster(Protocol):
    """A cluster that cannot do all that the catalogue of commands has."""

    @property
    def lacks(self) -> frozenset[str]:
        """Tags of the commands that it cannot do (`CommandDescription.tag`); `SNAPSHOTS` when it cannot be copied."""


def lacks_of(cluster: object) -> frozenset[str]:
    """Return what `cluster` cannot do."""
    return cluster.lacks if isinstance(cluster, LimitedCluster) else NO_DIAGNOSTICS


def refused(reason: str) -> Future[Any]:
    """Return a future that has failed with `CommandRefused`."""
    done: Future[Any] = Future()
    done.set_exception(CommandRefused(reason))
    return done


@runtime_checkable
class SnapshotSource(Protocol):
    """A cluster of which snapshots can be taken."""

    def snapshot(self) -> Future[ClusterSnapshot]:
        """Return what its members are now; those that do not answer are in it without a state. It never waits.

        The future fails with `CommandRefused` when no member answers, or none may be asked.
        """
