"""Everything members say to one another. One class per kind; the union `Message` is what crosses a wire."""

from __future__ import annotations

from msgspec import Struct

from backend.core.address import Address
from backend.core.membership.identity import ListMetadata
from backend.core.membership.member_list import MemberList

# Joining (behaviour 1.3 to 1.10)


class WhoIsMaster(Struct, frozen=True, tag="who-is-master", array_like=True):
    """A joiner asks whoever it can reach for the master."""

    uuid: str


class MasterIs(Struct, frozen=True, tag="master-is", array_like=True):
    """The answer; `master` is None when the one asked has not joined either and knows none."""

    master: Address | None


class FormationBid(Struct, frozen=True, tag="formation-bid", array_like=True):
    """Nobody is master yet: the lowest address asks the others to let it form the cluster (behaviour 1.5)."""

    uuid: str


class FormationVote(Struct, frozen=True, tag="formation-vote", array_like=True):
    """Whether the bid is granted."""

    granted: bool


class JoinRequest(Struct, frozen=True, tag="join-request", array_like=True):
    """A joiner asks the master to be let in; sent again every second until answered."""

    uuid: str
    lite: bool


class JoinRefused(Struct, frozen=True, tag="join-refused", array_like=True):
    """The master will not let this joiner in, and says why."""

    reason: str


class FinalizeJoin(Struct, frozen=True, tag="finalize-join", array_like=True):
    """The joiner is in: the list that holds it."""

    to_uuid: str
    members: MemberList


class Leave(Struct, frozen=True, tag="leave", array_like=True):
    """A member that stops gracefully says goodbye, so that nobody has to wait for a timeout."""

    uuid: str


# Publishing (seed 000, Membership Update Process; seed 003, results collector)


class MembersUpdate(Struct, frozen=True, tag="members-update", array_like=True):
    """The master's list. `wants_ack` while a join response waits for the others."""

    members: MemberList
    wants_ack: bool


class MembersUpdateAck(Struct, frozen=True, tag="members-update-ack", array_like=True):
    """The sender stands at `version` or later."""

    version: int


# Heartbeats and suspicion (seeds 000 and 001)


class Heartbeat(Struct, frozen=True, tag="heartbeat", array_like=True):
    """Sent every interval to every member that is not suspected.

    `uuid` and `to_uuid` are the lives of sender and receiver; `master` and `version` are what the sender believes;
    `suspects` rides only from a slave to its master (seed 001, Propagating Suspicions).
    """

    uuid: str
    to_uuid: str
    master: Address
    version: int
    suspects: tuple[Address, ...] = ()


class HeartbeatComplaint(Struct, frozen=True, tag="heartbeat-complaint", array_like=True):
    """A slave got a heartbeat from a stranger and asks its master to judge between the two."""

    complainer: ListMetadata
    complainee: ListMetadata


class ExplicitSuspicion(Struct, frozen=True, tag="explicit-suspicion", array_like=True):
    """'Assume that I am dead.' `about` describes the receiver as the sender knew it; any difference voids the request."""

    about: ListMetadata


class TriggerExplicitSuspicion(Struct, frozen=True, tag="trigger-explicit-suspicion", array_like=True):
    """The master tells a slave to send an explicit suspicion to the member that `about` describes."""

    version: int
    about: ListMetadata


# Mastership claim (seed 000, Mastership Claim Process)


class MastershipClaim(Struct, frozen=True, tag="mastership-claim", array_like=True):
    """The claimant asks for the receiver's list and its consent."""

    uuid: str
    to_uuid: str


class ClaimAccepted(Struct, frozen=True, tag="claim-accepted", array_like=True):
    """The sender follows the claimant; `members` is its list from the claimant on, at its own version."""

    members: MemberList


class ClaimRefused(Struct, frozen=True, tag="claim-refused", array_like=True):
    """`retry` when the sender does not yet suspect all who are older than the claimant."""

    retry: bool
    reason: str


Message = (
    WhoIsMaster
    | MasterIs
    | FormationBid
    | FormationVote
    | JoinRequest
    | JoinRefused
    | FinalizeJoin
    | Leave
    | MembersUpdate
    | MembersUpdateAck
    | Heartbeat
    | HeartbeatComplaint
    | ExplicitSuspicion
    | TriggerExplicitSuspicion
    | MastershipClaim
    | ClaimAccepted
    | ClaimRefused
)
