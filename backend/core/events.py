"""Everything that happens, as events: the journal is nothing but these, and so is all that a console knows (design section 2).

A `Record` is the envelope: whose event it is, its place in that life's gap-free numbering, and when. The event itself is one
of the classes below, told apart by its ``kind``. Schemas of tables are derived from these classes.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from backend.core.address import Address
from backend.core.membership.identity import Member

# The life of a member


class MemberStarted(Struct, frozen=True, tag_field="kind", tag="member-started"):
    """A life begins: the address it is bound to and where it will look for its cluster."""

    address: Address
    lite: bool
    join_list: tuple[Address, ...]


class JoinRequested(Struct, frozen=True, tag_field="kind", tag="join-requested"):
    master: Address
    attempt: int


class JoinFailed(Struct, frozen=True, tag_field="kind", tag="join-failed"):
    """The member gives up; `reasons` names every address tried and why it did not help."""

    reasons: dict[Address, str]


class MemberStopped(Struct, frozen=True, tag_field="kind", tag="member-stopped"):
    """A life ends by its own decision: asked to stop, or unable to join."""

    reason: str


# Member lists


class ListInstalled(Struct, frozen=True, tag_field="kind", tag="list-installed"):
    """The member now believes in this list. `author` sent it (itself on a master); `cause` says what changed it."""

    version: int
    lineage: str
    master: Address
    members: tuple[Member, ...]
    author: Address
    cause: str


class ListRejected(Struct, frozen=True, tag_field="kind", tag="list-rejected"):
    """A list that may not be installed: not from the member's master, or without the member itself."""

    version: int
    sender: Address
    reason: str


class MasterChanged(Struct, frozen=True, tag_field="kind", tag="master-changed"):
    """The member now follows `master` (possibly before it installs that master's list)."""

    master: Address
    reason: str


class MemberAdmitted(Struct, frozen=True, tag_field="kind", tag="member-admitted"):
    """The master answered a join request. `acknowledged` of `expected` others had the new list by then."""

    address: Address
    joined_uuid: str
    version: int
    acknowledged: int
    expected: int


class MemberRemoved(Struct, frozen=True, tag_field="kind", tag="member-removed"):
    """The master took a member off the list."""

    address: Address
    removed_uuid: str
    reason: str


# Suspicion


class SuspicionRaised(Struct, frozen=True, tag_field="kind", tag="suspicion-raised"):
    suspect: Address
    suspect_uuid: str
    reason: str


class SuspicionCleared(Struct, frozen=True, tag_field="kind", tag="suspicion-cleared"):
    suspect: Address
    suspect_uuid: str
    reason: str


class ExplicitSuspicionSent(Struct, frozen=True, tag_field="kind", tag="explicit-suspicion-sent"):
    to: Address
    reason: str


class ExplicitSuspicionReceived(Struct, frozen=True, tag_field="kind", tag="explicit-suspicion-received"):
    sender: Address
    heeded: bool
    reason: str


class ComplaintSent(Struct, frozen=True, tag_field="kind", tag="complaint-sent"):
    master: Address
    stranger: Address


class ObserverPaused(Struct, frozen=True, tag_field="kind", tag="observer-paused"):
    """The member itself stood still for so long that its own clockwork accuses nobody: all heartbeat stamps start anew."""

    gap: int
    """Microseconds since its last heartbeat round."""


# Mastership claims


class ClaimStarted(Struct, frozen=True, tag_field="kind", tag="claim-started"):
    version: int
    suspected: tuple[Address, ...]
    asked: tuple[Address, ...]


class ClaimAnswered(Struct, frozen=True, tag_field="kind", tag="claim-answered"):
    """What one member said to the claimant: accepted, retry or refused."""

    by: Address
    answer: Literal["accepted", "retry", "refused"]
    version: int
    reason: str


class ClaimFinished(Struct, frozen=True, tag_field="kind", tag="claim-finished"):
    version: int
    lineage: str
    accepted: tuple[Address, ...]
    left_out: tuple[Address, ...]


class ClaimAbandoned(Struct, frozen=True, tag_field="kind", tag="claim-abandoned"):
    reason: str


# What the operator and the network did; recorded under the name of the cluster, not of a member


class ProcessKilled(Struct, frozen=True, tag_field="kind", tag="process-killed"):
    """A member's process was ended without a chance to say goodbye."""

    target: str


class ProcessPaused(Struct, frozen=True, tag_field="kind", tag="process-paused"):
    target: str


class ProcessResumed(Struct, frozen=True, tag_field="kind", tag="process-resumed"):
    target: str


class LinkChanged(Struct, frozen=True, tag_field="kind", tag="link-changed"):
    """The condition of the one-way link from `source` to `target`, whole; all defaults means: as if nothing was there."""

    source: str
    target: str
    blocked: Literal["", "blackhole", "reset"] = ""
    delay: int = 0
    """Microseconds added to each frame."""
    loss: float = 0.0
    """Probability that a message is dropped."""


class StrangerRefused(Struct, frozen=True, tag_field="kind", tag="stranger-refused"):
    """Somebody on the member port who is not one of us."""

    remote: str
    reason: str


Event = (
    MemberStarted
    | JoinRequested
    | JoinFailed
    | MemberStopped
    | ListInstalled
    | ListRejected
    | MasterChanged
    | MemberAdmitted
    | MemberRemoved
    | SuspicionRaised
    | SuspicionCleared
    | ExplicitSuspicionSent
    | ExplicitSuspicionReceived
    | ComplaintSent
    | ObserverPaused
    | ClaimStarted
    | ClaimAnswered
    | ClaimFinished
    | ClaimAbandoned
    | ProcessKilled
    | ProcessPaused
    | ProcessResumed
    | LinkChanged
    | StrangerRefused
)


class Record(Struct, frozen=True):
    """One event of one life. (`uuid`, `seq`) is its identity: `seq` counts from 1 without gaps within a uuid."""

    run: str
    member: str
    """The label of the member: what people call it."""
    uuid: str
    seq: int
    at: int
    """Microseconds on the run's monotonic clock."""
    utc: int
    """Microseconds since 1970, UTC."""
    event: Event
