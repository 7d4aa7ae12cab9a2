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


class MemberCommand(Struct, frozen=True, tag_field="do"):
    """A command to one member, named by its label."""

    member: str


class LinksCommand(Struct, frozen=True, tag_field="do"):
    """A command about the links from each of `sources` to each of `targets`."""

    sources: tuple[str, ...]
    targets: tuple[str, ...]


class StartMember(MemberCommand, frozen=True, tag="start"):
    """Start the member of this label, or start it anew under its old address."""


class StopMember(MemberCommand, frozen=True, tag="stop"):
    """Stop gracefully: the member says goodbye."""


class StopCluster(MemberCommand, frozen=True, tag="stop-cluster"):
    """Stop `member` at once, and have every member of its cluster that hears of it do the same."""


class PromoteMember(MemberCommand, frozen=True, tag="promote"):
    """Let the lite member `member` hold data from now on."""


class DemoteMember(MemberCommand, frozen=True, tag="demote"):
    """Let `member` hold no data from now on: it is moved away first, and the member goes on as a lite member."""


class Diagnose(MemberCommand, frozen=True, tag="diagnose"):
    """Let all members of `member`'s cluster write diagnostics for some time, 0 to end it. Only Hazelcast from 5.6 on can."""

    for_us: int


class KillMember(MemberCommand, frozen=True, tag="kill"):
    """End the member without a goodbye."""


class PauseMember(MemberCommand, frozen=True, tag="pause"):
    """Freeze the process: it neither reads nor sends nor looks at the clock."""


class ResumeMember(MemberCommand, frozen=True, tag="resume"):
    """Let a frozen process go on, as if nothing had happened."""


class SuspectMember(MemberCommand, frozen=True, tag="suspect"):
    """Have `member` take another one for dead, on no evidence: a master removes it, any other member suspects it."""

    suspect: str
    """A label, or an address as text."""


class Partition(Struct, frozen=True, tag_field="do", tag="partition"):
    """Cut every link between members of different groups, both ways. Members named in no group keep all their links."""

    groups: tuple[tuple[str, ...], ...]
    mode: BlockMode = "blackhole"


class CutLink(LinksCommand, frozen=True, tag="cut"):
    """Cut the links from each source to each target, and back unless `one_way`."""

    one_way: bool = False
    mode: BlockMode = "blackhole"


class DelayLink(LinksCommand, frozen=True, tag="delay"):
    """Add `delay_us` to everything from each source to each target, and back unless `one_way`.

    With `up_to_us` it is drawn from between the two for each message. With `kinds`, only messages of these are meant, here and
    in the two commands that follow; they suffer it besides what all messages do.
    """

    delay_us: int
    one_way: bool = False
    up_to_us: int = 0
    kinds: tuple[str, ...] = ()


class LoseOnLink(LinksCommand, frozen=True, tag="lose"):
    """Drop messages from each source to each target with `probability`, and back unless `one_way`."""

    probability: float
    one_way: bool = False
    kinds: tuple[str, ...] = ()


class DuplicateOnLink(LinksCommand, frozen=True, tag="duplicate"):
    """Deliver messages from each source to each target twice with `probability`, and back unless `one_way`."""

    probability: float
    one_way: bool = False
    kinds: tuple[str, ...] = ()


class DropMessages(LinksCommand, frozen=True, tag="drop-messages"):
    """Drop every message of these kinds from each source to each target; no kinds: drop none of them any more."""

    kinds: tuple[str, ...]
    """Names as in `backend.core.messages.MESSAGE_KINDS`."""


class HoldMessages(LinksCommand, frozen=True, tag="hold"):
    """Keep messages of these kinds, or all, from each source to each target, until they are replayed. Simulated only."""

    kinds: tuple[str, ...] = ()


class ReplayMessages(LinksCommand, frozen=True, tag="replay"):
    """Deliver what is held from each source to each target, in the order in which it was sent, and hold no more."""


class MoveMember(MemberCommand, frozen=True, tag="move"):
    """Have `member`, which is down, start at another address from now on. Simulated only."""

    address: str


class SetJoinList(MemberCommand, frozen=True, tag="set-join-list"):
    """Edit the TCP-IP join list through `member`; it reaches every member of its cluster.

    See Split-brain Recovery Improvements, User Interaction.
    """

    addresses: tuple[str, ...]
    """Labels, or addresses as text; an address without a port stands for a few ports."""


class ChangeState(MemberCommand, frozen=True, tag="change-state"):
    """Ask the cluster of `member` to change its state."""

    state: ClusterState


class ExpectMembers(MemberCommand, frozen=True, tag="expect-members"):
    """Note through `member` that an operator accepts `size` members as the size of its cluster: none that left is missed."""

    size: int


class SetProperties(MemberCommand, frozen=True, tag="set"):
    """Change properties of `member` while it runs: all of them, or none. They hold until its process ends."""

    properties: dict[str, PropertyValue]
    """By name, as people write them (`backend.core.properties.PROPERTIES`)."""


class SearchClusters(MemberCommand, frozen=True, tag="search"):
    """Let the master `member` look for other clusters now, instead of at its next turn."""


class Operate(MemberCommand, frozen=True, tag="operate"):
    """Ask `member` for an operation as a client would. Refused while it sees too few members."""


class ArrangePartitions(MemberCommand, frozen=True, tag="arrange"):
    """Ask the cluster of `member` for the first arrangement of partitions now, instead of at the first use of data."""


class CallMap(MemberCommand, frozen=True, tag="call"):
    """Ask `member` for an operation on a distributed map, as a client would. Events say how it ends."""

    operation: Operation


class KillAt(MemberCommand, frozen=True, tag="kill-at"):
    """Kill `member` as soon as it records an event of the kind `event`, once: a crash at a named point of a protocol.

    What it was about to do besides in that instant (the messages that follow the event) is done only if `after` is set.
    """

    event: str
    """A name as in `backend.core.events.EVENT_KINDS`."""
    after: bool = False


class Heal(Struct, frozen=True, tag_field="do", tag="heal"):
    """Remove every link condition."""


class HealLink(LinksCommand, frozen=True, tag="heal-link"):
    """Remove the conditions of the links between these members, both ways; with `only`, those that these faults have made."""

    only: tuple[LinkFault, ...] = ()


MemberOrder = (
    StopMember | StopCluster | SuspectMember | SetJoinList | ChangeState | SetProperties | SearchClusters | Operate |
    ArrangePartitions | PromoteMember | DemoteMember
)  # fmt: skip
"""The commands that a member carries out itself. They name other members by addresses only, not by labels."""

LinkCommand = Partition | CutLink | DelayLink | LoseOnLink | DuplicateOnLink | DropMessages | Heal | HealLink

Command = (
    MemberOrder | LinkCommand | StartMember | Diagnose | KillMember | PauseMember | ResumeMember | HoldMessages |
    ReplayMessages | MoveMember | CallMap | KillAt | ExpectMembers
)  # fmt: skip


class CommandRefused(Exception):
    """The command cannot be done as things stand; the message says why, and nothing was changed."""
