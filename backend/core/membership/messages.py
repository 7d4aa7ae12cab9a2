"""What members say to one another about membership: joining, lists, heartbeats, claims, merges, and the cluster's state.

Part of the union in `backend.core.messages`.
"""

from __future__ import annotations

from msgspec import Struct

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.causes import OwnSuspicionCause
from quarterdeck.backend.core.cluster_profile import ClusterProfile, ClusterStanding, ClusterState
from quarterdeck.backend.core.membership.views.identity import ListMetadata
from quarterdeck.backend.core.membership.views.member_list import MemberList

# Joining (Hazelcast: joining)


class WhoIsMaster(Struct, frozen=True, gc=False, tag="who-is-master", array_like=True):
    """A joiner asks every address it knows for the master. `token` names its search, here and in its other questions."""

    uuid: str
    token: str = ""


class MasterIs(Struct, frozen=True, gc=False, tag="master-is", array_like=True):
    """The answer; `master` is None when the one asked has not joined either and knows none.

    `token` is that of the joiner's question, empty in the answer to another question.
    """

    master: Address | None
    token: str = ""


class FormationBid(Struct, frozen=True, tag="formation-bid", array_like=True):
    """There is no master yet: the lowest address asks the others to let it form the cluster (Hazelcast: first start).

    `number` counts the bids of one search.
    """

    uuid: str
    token: str = ""
    number: int = 0


class FormationVote(Struct, frozen=True, tag="formation-vote", array_like=True):
    """Whether the bid with that token and number is granted."""

    granted: bool
    token: str = ""
    number: int = 0


class JoinRequest(Struct, frozen=True, gc=False, tag="join-request", array_like=True):
    """A joiner asks the master to admit it; sent again every second until answered.

    `partitioning` says how many partitions and backups there are to be, and in what groups; all members must agree. Empty: it
    does not matter. `proven` are the incarnations to which the joiner has lately proven its link both ways, when the master
    asked for that. A process that merges has seen `seen_version` in its last incarnation: no list that it installs may have a
    lesser one.
    """

    uuid: str
    lite: bool
    proven: tuple[str, ...] = ()
    seen_version: int = 0
    zone: str = ""
    partitioning: str = ""
    token: str = ""


class JoinRefused(Struct, frozen=True, tag="join-refused", array_like=True):
    """The master will not admit this joiner, and says why. `token` is that of the request."""

    reason: str
    token: str = ""


class JoinHeld(Struct, frozen=True, tag="join-held", array_like=True):
    """The master admits this joiner only when its links to `missing` are proven both ways (Decisions: Readmission)."""

    missing: tuple[tuple[Address, str], ...]
    """Address and uuid of each."""
    token: str = ""
    """That of the request."""


class FinalizeJoin(Struct, frozen=True, gc=False, tag="finalize-join", array_like=True):
    """The joiner is admitted: the list that holds it, and the state of the cluster."""

    to_uuid: str
    members: MemberList
    standing: ClusterStanding = ClusterStanding()


class Leave(Struct, frozen=True, tag="leave", array_like=True):
    """A member that stops gracefully says goodbye, so that no member has to wait for a timeout."""

    uuid: str
    all_stop: bool = False
    """An operator stops the whole cluster: a member that gets this stops as well."""


# Publishing (Cluster Service Consistency Improvements, Membership Update Process; Emergent Leader, results collector)


class MembersUpdate(Struct, frozen=True, gc=False, tag="members-update", array_like=True):
    """The master's list. `wants_ack` while a join response waits for the others.

    `held_back` are members that have to prove their links before they come back: the next master goes on asking for that.
    """

    members: MemberList
    wants_ack: bool
    standing: ClusterStanding = ClusterStanding()
    held_back: tuple[Address, ...] = ()


class MembersUpdateAck(Struct, frozen=True, gc=False, tag="members-update-ack", array_like=True):
    """The sender stands at `version` or later."""

    version: int


# Heartbeats and suspicion (Cluster Service Consistency Improvements and Partial Member Disconnection Resolution)


class Heartbeat(Struct, frozen=True, gc=False, tag="heartbeat", array_like=True):
    """Sent every interval to every member that is not suspected.

    `uuid` and `to_uuid` are the incarnations of sender and receiver; `master` and `version` are what the sender believes;
    `suspects` rides only from a slave to its master (Partial Member Disconnection Resolution, Propagating Suspicions).
    """

    uuid: str
    to_uuid: str
    master: Address
    version: int
    suspects: tuple[Address, ...] = ()


class MasterConfirmation(Struct, frozen=True, tag="master-confirmation", array_like=True):
    """A slave confirms to its master that it still follows it (Cluster Service Consistency Improvements, Terminology)."""

    about: ListMetadata
    to_uuid: str


class FailureReport(Struct, frozen=True, tag="failure-report", array_like=True):
    """Only in the ring topology: a watcher reports to all others that it suspects a member, or does no more (Emergent Leader)."""

    suspect: Address
    suspect_uuid: str
    withdrawn: bool
    reason: str
    cause: OwnSuspicionCause = "unknown"
    silence: int | None = None
    """Microseconds, where silence is the evidence."""


class LinkProbe(Struct, frozen=True, tag="link-probe", array_like=True):
    """Asks for a reply at once: a reply proves the link in both directions.

    `token` is set when the reply is also to prove that the incarnation that is asked is alive at that address now.
    """

    uuid: str
    to_uuid: str
    token: str = ""


class LinkProbeReply(Struct, frozen=True, tag="link-probe-reply", array_like=True):
    """The answer; `knows_you` when the incarnation that probed is on the list of the one that replies."""

    uuid: str
    to_uuid: str
    knows_you: bool
    token: str = ""
    """That of the probe."""


class HeartbeatComplaint(Struct, frozen=True, tag="heartbeat-complaint", array_like=True):
    """A slave got a heartbeat from a stranger and asks its master to judge between the two."""

    complainer: ListMetadata
    complainee: ListMetadata


class ExplicitSuspicion(Struct, frozen=True, tag="explicit-suspicion", array_like=True):
    """'Assume that I am dead.' `about` describes the receiver as the sender knew it; any difference voids the request."""

    about: ListMetadata


class TriggerExplicitSuspicion(Struct, frozen=True, tag="trigger-explicit-suspicion", array_like=True):
    """The master orders a slave to send an explicit suspicion to the member that `about` describes."""

    version: int
    about: ListMetadata


# Mastership claim (Cluster Service Consistency Improvements, Mastership Claim Process)


class MastershipClaim(Struct, frozen=True, tag="mastership-claim", array_like=True):
    """The claimant asks for the receiver's list and its consent. `token` names the claim."""

    uuid: str
    to_uuid: str
    token: str = ""


class ClaimAccepted(Struct, frozen=True, tag="claim-accepted", array_like=True):
    """The sender follows the claimant; `members` is its list from the claimant on, at its own version.

    `token` and `asked_uuid` are those of the question: the claim, and the incarnation that was asked.
    """

    members: MemberList
    standing: ClusterStanding
    token: str
    asked_uuid: str


class ClaimRefused(Struct, frozen=True, tag="claim-refused", array_like=True):
    """The refusal; `retry` when the sender only does not suspect yet all members older than the claimant."""

    retry: bool
    reason: str
    token: str
    asked_uuid: str


# Split-brain recovery (Split-brain Recovery Improvements; Hazelcast: split brain)


class SplitBrainProbe(Struct, frozen=True, tag="split-brain-probe", array_like=True):
    """The master of one cluster shows it to a member that may belong to another."""

    profile: ClusterProfile


class SplitBrainAnswer(Struct, frozen=True, tag="split-brain-answer", array_like=True):
    """The master of the other cluster shows that one. A member that is no master answers `MasterIs` instead."""

    profile: ClusterProfile


class ProveLinks(Struct, frozen=True, tag="prove-links", array_like=True):
    """A master asks its member to prove the links to all of `targets` before their clusters merge."""

    token: str
    targets: tuple[tuple[Address, str], ...]


class LinksReport(Struct, frozen=True, tag="links-report", array_like=True):
    """The outcome: the targets whose replies did not come; empty when all links are proven."""

    token: str
    missing: tuple[Address, ...]


class MergeOffer(Struct, frozen=True, tag="merge-offer", array_like=True):
    """The frozen loser is ready.

    `seen_version` is that of the winner's list to whose members the loser's links were proven.
    """

    token: str
    profile: ClusterProfile
    seen_version: int


class MergeReply(Struct, frozen=True, tag="merge-reply", array_like=True):
    """The winner's answer to the offer; `refusal` is empty when it agrees."""

    token: str
    refusal: str


class MergeClusters(Struct, frozen=True, tag="merge-clusters", array_like=True):
    """The losing master orders its member, the incarnation `to_uuid`, to join the cluster of `target`."""

    token: str
    to_uuid: str
    target: Address


class MergeClustersAck(Struct, frozen=True, tag="merge-clusters-ack", array_like=True):
    """The answer to `MergeClusters`."""

    token: str


# Runtime changes of the join list and of the cluster state (Split-brain Recovery Improvements, User Interaction; Hazelcast:
# runtime join lists)


class JoinListUpdate(Struct, frozen=True, tag="join-list-update", array_like=True):
    """The join list of all members is this from now on. The greater (edition, author) wins."""

    edition: int
    author: Address
    addresses: tuple[Address, ...]


class JoinListUpdateAck(Struct, frozen=True, tag="join-list-update-ack", array_like=True):
    """The answer to `JoinListUpdate`: this member has the edition, or a later one."""

    edition: int
    author: Address


class StateRequest(Struct, frozen=True, tag="state-request", array_like=True):
    """A slave passes on to its master that an operator wants another cluster state. `token` names the operator's request."""

    wanted: ClusterState
    token: str


class StateRefusal(Struct, frozen=True, tag="state-refusal", array_like=True):
    """The master will not begin the change that a slave has passed on with that token."""

    wanted: ClusterState
    reason: str
    token: str


class StateLock(Struct, frozen=True, tag="state-lock", array_like=True):
    """First phase: hold still for this change until it is decided, for at most the lease."""

    token: str
    wanted: ClusterState
    version: int
    lease_us: int


class StateLockAnswer(Struct, frozen=True, tag="state-lock-answer", array_like=True):
    """The answer; `refusal` is empty when this slave holds still."""

    token: str
    refusal: str


class StateDecision(Struct, frozen=True, tag="state-decision", array_like=True):
    """Second phase: what holds from now on, or what held before if the change was given up."""

    token: str
    standing: ClusterStanding


class StateDecisionAck(Struct, frozen=True, tag="state-decision-ack", array_like=True):
    """The answer to `StateDecision`."""

    token: str


MembershipMessage = (
    WhoIsMaster | MasterIs | FormationBid | FormationVote | JoinRequest | JoinRefused | FinalizeJoin | Leave |
    MembersUpdate | MembersUpdateAck | Heartbeat | HeartbeatComplaint | ExplicitSuspicion | TriggerExplicitSuspicion |
    MastershipClaim | ClaimAccepted | ClaimRefused | JoinHeld | MasterConfirmation | FailureReport | LinkProbe |
    LinkProbeReply | SplitBrainProbe | SplitBrainAnswer | ProveLinks | LinksReport | MergeOffer | MergeReply |
    MergeClusters | MergeClustersAck | JoinListUpdate | JoinListUpdateAck | StateRequest | StateRefusal | StateLock |
    StateLockAnswer | StateDecision | StateDecisionAck
)  # fmt: skip
