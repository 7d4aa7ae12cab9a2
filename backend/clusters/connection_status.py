"""Clusters whose members run elsewhere: how each member is reached, and what its process reports besides its records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import Literal, NamedTuple, Protocol, runtime_checkable

from msgspec import Struct

from quarterdeck.backend.clusters.cluster import Cluster
from quarterdeck.backend.core.events import Record

Contact = Literal["connecting", "connected", "stale"]


class ConnectionStatus(Struct, frozen=True):
    """How one member is reached. What is known of a stale one is what it believed when it was last heard."""

    url: str
    contact: Contact
    """`connecting` until it was reached for the first time."""
    since_us: int
    """On the run's clock: since when it is connected, or when it was last heard (never: since it is looked for)."""
    why: str = ""
    """Why it is not connected."""
    refused: bool = False
    """It does answer, but turns us away."""
    state: str = ""
    """The `ConnectionState` of a member of Hazelcast; empty for other members, and before it is known."""
    incomplete: str = ""
    """What is missing of its history; empty when nothing is."""
    is_gone: bool = False
    """It was reached before, its host answers, and no process is there any more: the member has ended."""


class MissedMembers(NamedTuple):
    """The members that a watcher does not reach, by label or address."""

    away: tuple[str, ...]
    """Those that may be there."""
    gone: tuple[str, ...]
    """Those whose process has ended."""


def missed_members(status: Mapping[str, ConnectionStatus]) -> MissedMembers:
    """Return which members are not reached."""
    missed = [label for label, known in status.items() if known.contact != "connected"]
    return MissedMembers(
        tuple(label for label in missed if not status[label].is_gone),
        tuple(label for label in missed if status[label].is_gone),
    )


class ProcessFacts(NamedTuple):
    """What a member's process reports of itself besides its records; None for what it does not report."""

    cluster_name: str
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
        """What the operator calls the place, such as PROD; may be empty."""

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
        """Return what the process of each member that was met reports, by label."""

    def present_state(self, *, tables: bool = False) -> Future[Sequence[Record]]:
        """Ask connected members for what records alone may not show, and return it as records.

        It is the list, join list, state and table of each member whose history does not come or is incomplete. With `tables` the
        rows of the tables are included. Such records have no numbers of their own: they are for a picture, not for a journal.
        The future fails with `CommandRefused` when a member refuses.
        """
