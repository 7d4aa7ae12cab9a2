"""What some clusters can do besides: let their time go at another pace, be forked, say of themselves what is no event."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from typing import Protocol, runtime_checkable

from quarterdeck.backend.clusters.cluster import Cluster
from quarterdeck.backend.core.commands.commands import Command


@runtime_checkable
class TimeControl(Protocol):
    """A cluster whose time goes as fast as one likes, or stands still."""

    @property
    def paused(self) -> bool: ...

    @property
    def speed(self) -> float:
        """Seconds of the run in one second, as asked for; it may be more than can be computed."""

    def set_speed(self, speed: float) -> None:
        """Let time pass at this speed.

        Raises:
            ValueError: The speed is not positive.
        """

    def pause(self) -> None:
        """Let time stand still."""

    def resume(self) -> None:
        """Let time go on."""

    def run_on(self, by_us: int) -> None:
        """Let so much time pass and then stand still."""

    def run_to_next_event(self) -> None:
        """Let time pass until anything is recorded, and then stand still."""


@runtime_checkable
class StatusNotes(Protocol):
    """A cluster of which something has to be said that is no event."""

    def notes(self) -> Sequence[str]:
        """One line each, the most important first."""


class Fork(Cluster, Protocol):
    """A cluster that goes its own way from a moment of another one."""

    @property
    def started(self) -> Future[None]:
        """Done when the fork has come to its moment and done its command; fails when that was refused."""


@runtime_checkable
class Forkable(Protocol):
    """A cluster that can be run once more up to a moment, and then differently."""

    def fork(self, at_us: int, command: Command | None = None) -> Fork:
        """Return the same run up to a moment, with `command` at that moment.

        Raises:
            ValueError: The moment has not come.
        """
