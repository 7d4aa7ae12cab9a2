"""What a message of the product means, as far as our events have a word for it; everything else is `NoEvent`.

Each class is named after the event that it becomes. `incarnation_state` and `event_reconstruction` make these events.
"""

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


class LoggedStart(Struct, frozen=True):
    """The first message of a process: a member starts."""


class LoggedLifecycle(Struct, frozen=True):
    """The member has reached a state of its life."""

    state: str
    """STARTING, STARTED, SHUTTING_DOWN, SHUTDOWN, MERGING, MERGED, MERGE_FAILED and whatever else there may be."""


class LoggedShutdown(Struct, frozen=True):
    """The process is going to end; it may not live to log SHUTDOWN."""

    reason: str


class LoggedJoinFailure(Struct, frozen=True):
    """The member gives up to join."""

    reason: str


class LoggedJoinRequest(Struct, frozen=True):
    """The member asks a master to let it in."""

    master: Address


class LoggedUuidReset(Struct, frozen=True):
    """The member takes a new uuid: it merges, or its data was thrown away."""

    previous: str
    next: str


class LoggedMemberList(Struct, frozen=True):
    """A block ``Members {size:3, ver:3} […]``; the text of before 3.9 has no version."""

    version: int | None
    members: tuple[MemberMention, ...]


class LoggedListRejection(Struct, frozen=True):
    """The member does not accept a member list."""

    sender: Address
    reason: str


class LoggedRemoval(Struct, frozen=True):
    """The master removes a member; with a reason, it is going to."""

    member: MemberMention
    reason: str = ""


class LoggedDetection(Struct, frozen=True):
    """The failure detector of the master suspects a member."""

    suspect: MemberMention
    reason: str


class LoggedSuspicion(Struct, frozen=True):
    """A member is suspected."""

    suspect: MemberMention
    reason: str


class LoggedSuspicionCleared(Struct, frozen=True):
    """A member is not suspected any more."""

    suspect: MemberMention
    reason: str


class LoggedExplicitSuspicion(Struct, frozen=True):
    """A member asks to be suspected: it does not know this one."""

    sender: Address


class LoggedDisconnectionReport(Struct, frozen=True):
    """A member reports to the master whom it cannot reach."""

    reporter: MemberMention
    suspects: tuple[MemberMention, ...]


class LoggedClaimStart(Struct, frozen=True):
    """The member claims the mastership."""


class LoggedClaimRequest(Struct, frozen=True):
    """The claimant asks the others for their lists."""

    version: int
    members: tuple[MemberMention, ...]
    suspected: tuple[MemberMention, ...]
    asked: tuple[MemberMention, ...]


class LoggedClaimFinish(Struct, frozen=True):
    """The claimant has become master."""

    version: int
    members: tuple[MemberMention, ...]


class LoggedClaimRefusal(Struct, frozen=True):
    """The member does not accept another one's claim."""

    claimant: Address
    reason: str


class LoggedClaimAcceptance(Struct, frozen=True):
    """The member accepts another one's claim."""

    claimant: Address


class LoggedMergeVerdict(Struct, frozen=True):
    """The decision which of two clusters merges into the other."""

    remote: Address
    decision: Literal["local-merges", "remote-merges", "cannot-merge"]
    rule: str
    why: str


class LoggedSearchRedirected(Struct, frozen=True):
    """A master of another cluster asked this member, which is none, and is told where this cluster's master is."""

    searcher: Address


class LoggedMergeStart(Struct, frozen=True):
    """The master of the smaller cluster begins to merge it."""

    target: Address


class LoggedMergeOrder(Struct, frozen=True):
    """This member is told to merge."""

    target: Address


class LoggedMergeAbandonment(Struct, frozen=True):
    """The merge is given up."""

    reason: str


class LoggedStateChange(Struct, frozen=True):
    """The cluster changes its state."""

    state: ClusterState
    reason: str


class LoggedClockJump(Struct, frozen=True):
    """The clock jumped, so that heartbeats count from now."""

    gap_us: int
    is_backwards: bool = False


class LoggedConnectionFailure(Struct, frozen=True):
    """The member gives up its connection to another one."""

    endpoint: Address
    reason: str


class LoggedMigrationPlan(Struct, frozen=True):
    """The master has planned so many migrations."""

    planned: int


class LoggedMigrationsDone(Struct, frozen=True):
    """All migrations that the master had planned have ended; 0 of each where it does not say how many."""

    planned: int = 0
    completed: int = 0


class LoggedPartitionLoss(Struct, frozen=True):
    """All replicas of a partition are lost."""

    partition: int


ParsedMessage = (
    NoEvent | LoggedStart | LoggedLifecycle | LoggedShutdown | LoggedJoinFailure | LoggedJoinRequest | LoggedUuidReset
    | LoggedMemberList | LoggedListRejection | LoggedRemoval | LoggedDetection | LoggedSuspicion
    | LoggedSuspicionCleared | LoggedExplicitSuspicion | LoggedDisconnectionReport | LoggedClaimStart
    | LoggedClaimRequest | LoggedClaimFinish | LoggedClaimAcceptance | LoggedMergeVerdict | LoggedMergeStart
    | LoggedMergeOrder | LoggedMergeAbandonment | LoggedStateChange | LoggedClockJump | LoggedPartitionLoss
    | LoggedClaimRefusal | LoggedSearchRedirected | LoggedConnectionFailure | LoggedMigrationPlan | LoggedMigrationsDone
)  # fmt: skip
