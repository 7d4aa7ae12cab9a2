"""What a message of the product can say, as far as our events have a word for it. Everything else it says is only `NoEvent`."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.cluster_profile import ClusterState

Subject = Literal[
    "life", "joining", "membership", "suspicion", "claim", "disconnection", "merge", "state", "partitions", "connections",
    "clock", "other",
]  # fmt: skip


class MemberMention(Struct, frozen=True):
    """A member as a message names it; without a uuid where the message gives none."""

    address: Address
    uuid: str = ""
    lite: bool = False
    this: bool = False


class NoEvent(Struct, frozen=True):
    """A message that is understood and makes no event."""


class ProcessStarting(Struct, frozen=True):
    """The first that a process says."""


class LifecycleReached(Struct, frozen=True):
    state: str
    """STARTING, STARTED, SHUTTING_DOWN, SHUTDOWN, MERGING, MERGED, MERGE_FAILED and whatever else there may be."""


class ShutdownBegun(Struct, frozen=True):
    """The process is going to end; it may not live to say SHUTDOWN."""

    reason: str


class JoinGivenUp(Struct, frozen=True):
    reason: str


class JoinAsked(Struct, frozen=True):
    master: Address


class UuidReset(Struct, frozen=True):
    previous: str
    next: str


class ListPrinted(Struct, frozen=True):
    """A block ``Members {size:3, ver:3} […]``; the text of before 3.9 has no version."""

    version: int | None
    members: tuple[MemberMention, ...]


class ListRefused(Struct, frozen=True):
    sender: Address
    reason: str


class Removing(Struct, frozen=True):
    member: MemberMention
    reason: str = ""


class DetectorFired(Struct, frozen=True):
    suspect: MemberMention
    reason: str


class Suspected(Struct, frozen=True):
    suspect: MemberMention
    reason: str


class SuspicionLifted(Struct, frozen=True):
    suspect: MemberMention
    reason: str


class SuspicionAsked(Struct, frozen=True):
    """Somebody asks to be suspected: it does not know us."""

    sender: Address


class SuspectsReported(Struct, frozen=True):
    reporter: MemberMention
    suspects: tuple[MemberMention, ...]


class ClaimBegun(Struct, frozen=True):
    pass


class ClaimAsking(Struct, frozen=True):
    version: int
    members: tuple[MemberMention, ...]
    suspected: tuple[MemberMention, ...]
    asked: tuple[MemberMention, ...]


class Claimed(Struct, frozen=True):
    version: int
    members: tuple[MemberMention, ...]


class MastershipAccepted(Struct, frozen=True):
    claimant: Address


class MergeJudged(Struct, frozen=True):
    remote: Address
    decision: Literal["local-merges", "remote-merges", "cannot-merge"]
    rule: str
    why: str


class MergeBegun(Struct, frozen=True):
    """The losing master sets out."""

    target: Address


class MergeOrdered(Struct, frozen=True):
    """This member is told to merge."""

    target: Address


class MergeGivenUp(Struct, frozen=True):
    reason: str


class StateChanging(Struct, frozen=True):
    state: ClusterState
    reason: str


class HeartbeatsReset(Struct, frozen=True):
    gap_us: int


class PartitionGone(Struct, frozen=True):
    partition: int


ParsedMessage = (
    NoEvent | ProcessStarting | LifecycleReached | ShutdownBegun | JoinGivenUp | JoinAsked | UuidReset | ListPrinted | ListRefused
    | Removing | DetectorFired | Suspected | SuspicionLifted | SuspicionAsked | SuspectsReported | ClaimBegun | ClaimAsking
    | Claimed | MastershipAccepted | MergeJudged | MergeBegun | MergeOrdered | MergeGivenUp | StateChanging | HeartbeatsReset
    | PartitionGone
)  # fmt: skip
