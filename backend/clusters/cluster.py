"""The `Cluster` protocol: how console, command line and demos reach a cluster of any kind, and what some kinds can do or not.

Members may run elsewhere: then a cluster says how each is reached, and what its process reports besides its records. Some let
their time go at another pace, are forked, or have something to say of themselves that is no event.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, runtime_checkable

from msgspec import Struct

from quarterdeck.backend.commands.catalogue import CATALOGUE
from quarterdeck.backend.core.commands import Command, CommandRefused
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.operations import Answer, Operation
from quarterdeck.backend.judgement.watcher import Missed, Watcher

if TYPE_CHECKING:
    from quarterdeck.backend.core.cluster_snapshot import ClusterSnapshot
    from quarterdeck.backend.judgement.observations.story import LogStory


Source = Literal["live", "simulated", "recorded", "remote", "hazelcast", "copy"]
"""Members of Hazelcast are watched from outside. A `copy` is a simulated cluster that goes on from the members of another one."""

SNAPSHOTS = "snapshots"
"""Stands among what a cluster lacks when its members do not report all that they know, so that no copy goes on from there."""

NOT_REMOTE = frozenset(command.tag for command in CATALOGUE if command.http is None and command.operation is None)
"""Operations that no member does over HTTP."""

NO_DIAGNOSTICS = frozenset(command.tag for command in CATALOGUE if command.ability == "diagnostics")
"""Operations for members that write diagnostics, which ours do not."""


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
        """Labels of all members, the ended ones included, in order of first appearance."""

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
    """Return the operations that `cluster` cannot do."""
    lacks = cluster.lacks if isinstance(cluster, LimitedCluster) else NO_DIAGNOSTICS
    return lacks if isinstance(cluster, SnapshotSource | Forkable) else lacks | {SNAPSHOTS}


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


Contact = Literal["connecting", "connected", "stale"]


class ConnectionStatus(Struct, frozen=True):
    """How one member is reached. The known belief of a stale member is its last one."""

    url: str
    contact: Contact
    """`connecting` until it was reached for the first time."""
    since_us: int
    """On the run's clock: since when it is connected, or when it was last heard (never: since it is looked for)."""
    why: str = ""
    """Why it is not connected."""
    refused: bool = False
    """Whether the member answers, but turns us away."""
    state: str = ""
    """The `ConnectionState` of a member of Hazelcast; empty for other members, and before it is known."""
    incomplete: str = ""
    """The missing part of its history; empty for a whole history."""
    is_gone: bool = False
    """Whether the member has ended: it was reached before, its host answers, and its process is gone."""


def watcher_of(
    status: Mapping[str, ConnectionStatus], since_us: int | None = None, expected_members: int | None = None
) -> Watcher:
    """Return the watcher that reaches members as `status` says, and follows them since `since_us`."""
    return Watcher(
        {
            label: Missed(
                known.since_us,
                known.is_gone or known.state == "gone",
                known.refused,
                known.is_gone or known.contact != "connecting",
                known.why,
            )
            for label, known in status.items()
            if known.contact != "connected"
        },
        since_us,
        expected_members,
    )


class ProcessFacts(NamedTuple):
    """The report of a member's process besides its records; None for a value that it does not report."""

    cluster_name: str
    """Empty where it is not known."""
    version: str | None = None
    """The version of its software."""
    node_state: str | None = None
    """How far its process is, in the operators' words."""
    clock_ahead_us: int | None = None
    """By how much its clock shows more than this machine's."""
    allow_faults: bool = False
    read_only: bool | None = None


@runtime_checkable
class ConnectionStatusSource(Protocol):
    """A cluster whose members may be out of the watcher's reach."""

    @property
    def environment(self) -> str:
        """The operator's name of the place, such as PROD; may be empty."""

    def connection_status(self) -> Mapping[str, ConnectionStatus]:
        """How each of the `labels` is reached now."""


@runtime_checkable
class ReachedByOptions(Protocol):
    """A cluster that one URL does not always reach: its halves may not know of each other, and its members want its name."""

    def connect_options(self) -> Sequence[str]:
        """Return the options with which another command reaches the same members."""


class WatchedCluster(Cluster, ConnectionStatusSource, Protocol):
    """A cluster whose members run elsewhere, of whatever kind they are."""

    started: Future[None]
    """Done when a member is reached for the first time."""

    @property
    def met(self) -> bool:
        """Whether a member has said who it is."""

    @property
    def is_settled(self) -> bool:
        """Whether every known member has reported a first full state, or is known not to be reached."""

    def process_facts(self) -> Mapping[str, ProcessFacts]:
        """Return the report of each met member's process, by label."""

    def present_state(self, *, tables: bool = False) -> Future[Sequence[Record]]:
        """Ask connected members for what records alone may not show, and return it as records.

        It is the list, join list, state and table of each member whose history does not come or is incomplete. With `tables` the
        rows of the tables are included. Such records have no numbers of their own: they are for a picture, not for a journal.
        The future fails with `CommandRefused` when a member refuses.
        """


@runtime_checkable
class TimeControl(Protocol):
    """A cluster whose time goes as fast as one likes, or stands still."""

    @property
    def paused(self) -> bool: ...

    @property
    def speed(self) -> float:
        """Seconds of the run in one second, as asked for; it may be more than can be computed."""

    def set_speed(self, speed: float) -> None:
        """Let time pass at this speed. Raises `ValueError` when it is not positive."""

    def pause(self) -> None:
        """Let time stand still."""

    def resume(self) -> None:
        """Let time go on."""

    def run_on(self, by_us: int) -> None:
        """Let this time pass and then stand still."""

    def run_to_next_event(self) -> None:
        """Let time pass until anything is recorded, and then stand still."""


@runtime_checkable
class StatusNotes(Protocol):
    """A cluster of which something has to be said that is no event."""

    def notes(self) -> Sequence[str]:
        """One line each, the most important first."""


@runtime_checkable
class ClusterWithStory(Protocol):
    """A cluster that is read from logs, of which more is observed than its records show."""

    @property
    def story(self) -> LogStory:
        """The observations; their number may grow."""


class Fork(Cluster, Protocol):
    """A cluster that goes its own way from a moment of another one."""

    @property
    def started(self) -> Future[None]:
        """Done when the fork has come to its moment and done its command; fails when that was refused."""


@runtime_checkable
class Forkable(Protocol):
    """A cluster that can be run once more up to a moment, and then differently."""

    def fork(self, at_us: int, command: Command | None = None) -> Fork:
        """Return the same run up to a moment, with `command` at that moment. Raises `ValueError` when it has not come."""
