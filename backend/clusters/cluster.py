"""The `Cluster` protocol: how console, command line and demos reach a cluster, whatever kind it is."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from typing import Literal, Protocol

from quarterdeck.backend.core.commands.commands import Command
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.operations import Answer, Operation

Source = Literal["live", "simulated", "recorded", "remote", "hazelcast", "copy"]
"""Members of Hazelcast are watched from outside. A `copy` is a simulated cluster that goes on from the members of another one."""


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
        ...

    def now_us(self) -> int:
        """Now on the run's monotonic clock, in microseconds."""
        ...

    def drain(self) -> list[Record]:
        """Return the records since the last call, oldest first. It never waits. For one reader."""
        ...

    def execute(self, command: Command) -> Future[None]:
        """Do `command`. The future fails with `CommandRefused` when it cannot be done. Never waits."""
        ...

    def call(self, member: str, operation: Operation, *, watched: bool = False) -> Future[Answer]:
        """Ask `member` for an operation on a distributed map, as a client would. Never waits.

        The future fails with `CommandRefused` when the member is not there to be asked. When it dies before it has answered, the
        answer says so. A `watched` put, get or remove is recorded.
        """
        ...

    def close(self) -> None:
        """End the cluster (or the connection to it) and release what it holds; returns when that is done."""
        ...
