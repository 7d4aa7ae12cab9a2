"""Everything an operator may do to a cluster, whatever kind of cluster it is.

Members go by their labels. Keys, the ``:`` prompt, command lines and scenario steps all become one of these.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from quarterdeck.backend.core.cluster_profile import ClusterState
from quarterdeck.backend.core.operations import Operation
from quarterdeck.backend.core.properties import PropertyValue

BlockMode = Literal["blackhole", "reset"]

LinkFault = Literal["cut", "delay", "lose", "duplicate", "drop-messages", "hold"]
"""What can be wrong with a link, by the name of the command that makes it so."""


class StartMember(Struct, frozen=True, tag_field="do", tag="start"):
    """Start the member of this label, or start it anew under its old address."""

    member: str


class StopMember(Struct, frozen=True, tag_field="do", tag="stop"):
    """Stop gracefully: the member says goodbye."""

    member: str


class StopCluster(Struct, frozen=True, tag_field="do", tag="stop-cluster"):
    """Stop `member` at once, and have every member of its cluster that hears of it do the same."""

    member: str


class PromoteMember(Struct, frozen=True, tag_field="do", tag="promote"):
    """Let the lite member `member` hold data from now on. Only members of Hazelcast can do that."""

    member: str


class KillMember(Struct, frozen=True, tag_field="do", tag="kill"):
    """End the member without a goodbye."""

    member: str


class PauseMember(Struct, frozen=True, tag_field="do", tag="pause"):
    """Freeze the process: it neither reads nor sends nor looks at the clock."""

    member: str


class ResumeMember(Struct, frozen=True, tag_field="do", tag="resume"):
    """Let a frozen process go on, as if nothing had happened."""

    member: str


class SuspectMember(Struct, frozen=True, tag_field="do", tag="suspect"):
    """Have `member` take another one for dead, on no evidence: a master removes it, any other member suspects it."""

    member: str
    suspect: str
    """A label, or an address as text."""


class Partition(Struct, frozen=True, tag_field="do", tag="partition"):
    """Cut every link between members of different groups, both ways. Members named in no group keep all their links."""

    groups: tuple[tuple[str, ...], ...]
    mode: BlockMode = "blackhole"


class CutLink(Struct, frozen=True, tag_field="do", tag="cut"):
    """Cut the links from each source to each target, and back unless `one_way`."""

    sources: tuple[str, ...]
    targets: tuple[str, ...]
    one_way: bool = False
    mode: BlockMode = "blackhole"


class DelayLink(Struct, frozen=True, tag_field="do", tag="delay"):
    """Add `delay_us` to everything from each source to each target, and back unless `one_way`.

    With `up_to_us` it is drawn from between the two for each message. With `kinds`, only messages of these are meant, here and
    in the two commands that follow; they suffer it besides what all messages do.
    """

    sources: tuple[str, ...]
    targets: tuple[str, ...]
    delay_us: int
    one_way: bool = False
    up_to_us: int = 0
    kinds: tuple[str, ...] = ()


class LoseOnLink(Struct, frozen=True, tag_field="do", tag="lose"):
    """Drop messages from each source to each target with `probability`, and back unless `one_way`."""

    sources: tuple[str, ...]
    targets: tuple[str, ...]
    probability: float
    one_way: bool = False
    kinds: tuple[str, ...] = ()


class DuplicateOnLink(Struct, frozen=True, tag_field="do", tag="duplicate"):
    """Deliver messages from each source to each target twice with `probability`, and back unless `one_way`."""

    sources: tuple[str, ...]
    targets: tuple[str, ...]
    probability: float
    one_way: bool = False
    kinds: tuple[str, ...] = ()


class DropMessages(Struct, frozen=True, tag_field="do", tag="drop-messages"):
    """Drop every message of these kinds from each source to each target; no kinds: drop none of them any more."""

    sources: tuple[str, ...]
    targets: tuple[str, ...]
    kinds: tuple[str, ...]
    """Names as in `backend.core.messages.MESSAGE_KINDS`."""


class HoldMessages(Struct, frozen=True, tag_field="do", tag="hold"):
    """Keep messages of these kinds, or all, from each source to each target, until they are replayed. Simulated only."""

    sources: tuple[str, ...]
    targets: tuple[str, ...]
    kinds: tuple[str, ...] = ()


class ReplayMessages(Struct, frozen=True, tag_field="do", tag="replay"):
    """Deliver what is held from each source to each target, in the order in which it was sent, and hold no more."""

    sources: tuple[str, ...]
    targets: tuple[str, ...]


class MoveMember(Struct, frozen=True, tag_field="do", tag="move"):
    """Have `member`, which is down, start at another address from now on. Simulated only."""

    member: str
    address: str


class SetJoinList(Struct, frozen=True, tag_field="do", tag="set-join-list"):
    """Edit the TCP-IP join list through `member`; it reaches every member of its cluster.

    See Split-brain Recovery Improvements, User Interaction.
    """

    member: str
    addresses: tuple[str, ...]
    """Labels, or addresses as text; an address without a port stands for a few ports."""


class ChangeState(Struct, frozen=True, tag_field="do", tag="change-state"):
    """Ask the cluster of `member` to change its state."""

    member: str
    state: ClusterState


class SetProperties(Struct, frozen=True, tag_field="do", tag="set"):
    """Change properties of `member` while it runs: all of them, or none. They hold until its process ends."""

    member: str
    properties: dict[str, PropertyValue]
    """By name, as people write them (`backend.core.properties.PROPERTIES`)."""


class SearchClusters(Struct, frozen=True, tag_field="do", tag="search"):
    """Let the master `member` look for other clusters now, instead of at its next turn."""

    member: str


class Operate(Struct, frozen=True, tag_field="do", tag="operate"):
    """Ask `member` for an operation as a client would. Refused while it sees too few members."""

    member: str


class ArrangePartitions(Struct, frozen=True, tag_field="do", tag="arrange"):
    """Ask the cluster of `member` for the first arrangement of partitions now, instead of at the first use of data."""

    member: str


class CallMap(Struct, frozen=True, tag_field="do", tag="call"):
    """Ask `member` for an operation on a distributed map, as a client would. How it ends is told by events."""

    member: str
    operation: Operation


class KillAt(Struct, frozen=True, tag_field="do", tag="kill-at"):
    """Kill `member` as soon as it records an event of the kind `event`, once: a crash at a named point of a protocol.

    What it was about to do besides in that instant (the messages that follow the event) is done only if `after` is set.
    """

    member: str
    event: str
    """A name as in `backend.core.events.EVENT_KINDS`."""
    after: bool = False


class Heal(Struct, frozen=True, tag_field="do", tag="heal"):
    """Remove every link condition."""


class HealLink(Struct, frozen=True, tag_field="do", tag="heal-link"):
    """Remove the conditions of the links between these members, both ways; with `only`, those that these faults have made."""

    sources: tuple[str, ...]
    targets: tuple[str, ...]
    only: tuple[LinkFault, ...] = ()


Command = (
    StartMember
    | StopMember
    | StopCluster
    | PromoteMember
    | KillMember
    | PauseMember
    | ResumeMember
    | SuspectMember
    | Partition
    | CutLink
    | DelayLink
    | LoseOnLink
    | DuplicateOnLink
    | DropMessages
    | HoldMessages
    | ReplayMessages
    | MoveMember
    | SetJoinList
    | ChangeState
    | SetProperties
    | SearchClusters
    | Operate
    | ArrangePartitions
    | CallMap
    | KillAt
    | Heal
    | HealLink
)


class CommandRefused(Exception):
    """The command cannot be done as things stand; the message says why, and nothing was changed."""
