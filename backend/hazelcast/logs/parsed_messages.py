"""What a message of the product means, as far as our events have a word for it; everything else is `NoEvent`.

A message that says all that an event needs is parsed to that event. The others have classes here, named after the event that
`incarnation_state` or `event_reconstruction` makes of them.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.core.partitions.events import PartitionLost
from quarterdeck.backend.core.witnessed import events as witnessed

Subject = Literal[
    "life", "joining", "membership", "suspicion", "claim", "disconnection", "merge", "state", "partitions", "connections",
    "clock", "other",
]  # fmt: skip


class MemberMention(Struct, frozen=True, gc=False):
    """A member as a message names it; without a uuid where the message gives none."""

    address: Address
    uuid: str = ""
    lite: bool = False
    this: bool = False


class _Meaning(Struct, frozen=True, gc=False, tag_field="kind", tag=True):
    """A meaning of messages that is no event yet. Processes pass them on among events, so each has its kind."""


class NoEvent(_Meaning, frozen=True):
    """A message that is understood and makes no event."""


class LoggedStart(_Meaning, frozen=True):
    """The first message of a process: a member starts."""


class LoggedLifecycle(_Meaning, frozen=True):
    """The member has reached a state of its lifecycle."""

    state: str
    """STARTING, STARTED, SHUTTING_DOWN, SHUTDOWN, MERGING, MERGED, MERGE_FAILED and others."""


class LoggedShutdown(_Meaning, frozen=True):
    """The process is going to end; it may end before it logs SHUTDOWN."""

    reason: str


class LoggedShutdownRequest(_Meaning, frozen=True):
    """A member asked this one, its master, to let it leave; the master begins to move its partitions."""

    member: MemberMention


class LoggedJoinFailure(_Meaning, frozen=True):
    """The member gives up joining."""

    reason: str


class LoggedJoinRequest(_Meaning, frozen=True):
    """The member asks a master to let it in."""

    master: Address


class LoggedUuidReset(_Meaning, frozen=True):
    """The member gets a new uuid: it merges, or its data was discarded."""

    previous: str
    next: str


class LoggedMemberList(_Meaning, frozen=True):
    """A block ``Members {size:3, ver:3} […]``; before 3.9 it has no version."""

    version: int | None
    members: tuple[MemberMention, ...]


class LoggedRemoval(_Meaning, frozen=True):
    """The master removes a member, or, if a reason is given, is going to."""

    member: MemberMention
    reason: str = ""


class LoggedSuspicion(_Meaning, frozen=True):
    """A member is suspected; `is_detection`: by the failure detector, after which all but the master log the suspicion itself."""

    suspect: MemberMention
    reason: str
    is_detection: bool = False


class LoggedSuspicionCleared(_Meaning, frozen=True):
    """A member is no longer suspected."""

    suspect: MemberMention
    reason: str


class LoggedExplicitSuspicion(_Meaning, frozen=True):
    """A member asks this one to suspect it, because it does not know this one."""

    sender: Address


class LoggedClaimStart(_Meaning, frozen=True):
    """The member claims the mastership."""


class LoggedClaimRequest(_Meaning, frozen=True):
    """The claimant asks the others for their lists."""

    version: int
    members: tuple[MemberMention, ...]
    suspected: tuple[MemberMention, ...]
    asked: tuple[MemberMention, ...]


class LoggedClaimFinish(_Meaning, frozen=True):
    """The claimant has become master. A cut line has neither version nor members."""

    version: int | None
    members: tuple[MemberMention, ...]


class LoggedClaimRefusal(_Meaning, frozen=True):
    """The member refuses the claim of another one."""

    claimant: Address
    reason: str


class LoggedClaimAcceptance(_Meaning, frozen=True):
    """The member accepts the claim of another one."""

    claimant: Address


class LoggedCutList(_Meaning, frozen=True):
    """A member list was printed whose lines are not there: from now on the member's list is unknown."""


class LoggedSearchRedirected(_Meaning, frozen=True):
    """The master of another cluster asked this member, which is no master and answers with the address of its own."""


class LoggedJoiner(_Meaning, frozen=True):
    """How the member finds others: tcp-ip, or a way of discovery."""

    joiner: str


class LoggedMergeStart(_Meaning, frozen=True):
    """The master of the smaller cluster begins to merge it."""

    target: Address


class LoggedMergeOrder(_Meaning, frozen=True):
    """The master orders this member to merge."""

    target: Address


class LoggedMergeAbandonment(_Meaning, frozen=True):
    """The merge is given up."""

    reason: str


class LoggedLateHeartbeats(_Meaning, frozen=True):
    """The members whose heartbeats are late, and for how many microseconds nothing was heard of each."""

    silences: tuple[tuple[Address, int], ...]


class LoggedInvocations(_Meaning, frozen=True):
    """The invocations that have waited for long: the operation, where it was sent, and for how many microseconds."""

    waiting: tuple[tuple[str, Address | None, int], ...]


class LoggedClockJump(_Meaning, frozen=True):
    """The clock jumped, so the failure detector counts from now on."""

    gap_us: int
    is_backwards: bool = False


class LoggedConnectionFailure(_Meaning, frozen=True):
    """The member closes its connection to another one."""

    endpoint: Address
    reason: str


class LoggedMigrationPlan(_Meaning, frozen=True):
    """The master has planned so many migrations."""

    planned: int


class LoggedMigrationsDone(_Meaning, frozen=True):
    """All migrations that the master had planned have ended; 0 of each if it does not say how many."""

    planned: int = 0
    completed: int = 0


ParsedMessage = (
    NoEvent | LoggedCutList | LoggedStart | LoggedLifecycle | LoggedShutdown | LoggedShutdownRequest | LoggedJoinFailure
    | LoggedJoinRequest | LoggedUuidReset | LoggedMemberList | events.ListRejected | LoggedRemoval | LoggedSuspicion
    | LoggedSuspicionCleared | LoggedExplicitSuspicion | events.DisconnectionReported | LoggedClaimStart
    | LoggedClaimRequest | LoggedClaimFinish | LoggedClaimAcceptance | LoggedClaimRefusal | events.MergeVerdict
    | LoggedMergeStart | LoggedMergeOrder | LoggedMergeAbandonment | LoggedSearchRedirected | events.ClusterStateChanged
    | LoggedClockJump | PartitionLost | LoggedConnectionFailure | LoggedMigrationPlan | LoggedMigrationsDone
    | events.AddressUnusable | LoggedJoiner | LoggedLateHeartbeats | LoggedInvocations | witnessed.JoinerRefused
    | witnessed.MigrationFailed | witnessed.MigrationsRemaining | witnessed.ReplicaMigrated
)  # fmt: skip
