"""What members record of lists, suspicions, claims and merges, as events. Part of the union in `backend.core.events`."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from quarterdeck.backend.core import causes
from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.causes import Int64
from quarterdeck.backend.core.cluster_profile import ClusterState
from quarterdeck.backend.core.membership.views.identity import Member

# Incarnations


class MemberStarted(Struct, frozen=True, tag_field="kind", tag="member-started"):
    """An incarnation begins. After a merge it goes on in the same process; then `merged_from` is the uuid of the one before."""

    address: Address
    lite: bool
    join_list: tuple[Address, ...]
    merged_from: str = ""
    settings: dict[str, str] | None = None
    """Its properties that are not the documented defaults, as text by name; null where they are not known."""


class JoinRequested(Struct, frozen=True, tag_field="kind", tag="join-requested"):
    """The member asks `master` to let it join; `attempt` counts how often it began to search."""

    master: Address
    attempt: Int64


class JoinFailed(Struct, frozen=True, tag_field="kind", tag="join-failed"):
    """The member gives up joining; `reasons` names every address that it tried and why it did not help."""

    reasons: dict[Address, str]


class AddressUnusable(Struct, frozen=True, tag_field="kind", tag="address-unusable"):
    """The member looks for others at `address` in vain: the host does not resolve, refuses it, or is not a member."""

    address: Address
    reason: str
    cause: causes.UnreachableCause


class MemberStopped(Struct, frozen=True, tag_field="kind", tag="member-stopped"):
    """An incarnation ends by its own decision: asked to stop, or unable to join."""

    reason: str
    cause: causes.StopCause = "unknown"


# Member lists


class ListInstalled(Struct, frozen=True, tag_field="kind", tag="list-installed"):
    """The member installs this list. `author` sent it (a master is its own author); `cause` says what changed it.

    `reason` is the sentence of a foreign log, where the list was read from one.
    """

    version: Int64
    lineage: str
    master: Address
    members: tuple[Member, ...]
    author: Address
    cause: causes.ListCause
    reason: str = ""


class ListRejected(Struct, frozen=True, tag_field="kind", tag="list-rejected"):
    """The member rejects a list: it is not from its master, or does not contain the member itself."""

    version: Int64
    sender: Address
    reason: str
    cause: causes.ListRejectionCause = "unknown"


class MasterChanged(Struct, frozen=True, tag_field="kind", tag="master-changed"):
    """The member now follows `master`, which `named_by` named to it. A list of that master may come later."""

    master: Address
    reason: str
    cause: causes.MasterCause = "unknown"
    named_by: Address | None = None


class MemberAdmitted(Struct, frozen=True, tag_field="kind", tag="member-admitted"):
    """The master answered a join request. `acknowledged` of the `expected` other members had the new list by then."""

    address: Address
    joined_uuid: str
    version: Int64
    acknowledged: Int64
    expected: Int64


class MemberRemoved(Struct, frozen=True, tag_field="kind", tag="member-removed"):
    """The master took a member off the list. The evidence has the same fields as in `SuspicionRaised`."""

    address: Address
    removed_uuid: str
    reason: str
    cause: causes.SuspicionCause = "unknown"
    silence: Int64 | None = None
    reporter: Address | None = None


# Suspicion


class SuspicionRaised(Struct, frozen=True, tag_field="kind", tag="suspicion-raised"):
    """The member suspects that `suspect` is dead, by its own evidence or by that of a `reporter`."""

    suspect: Address
    suspect_uuid: str
    reason: str
    cause: causes.SuspicionCause = "unknown"
    silence: Int64 | None = None
    """How long nothing had arrived, in microseconds, where that is the evidence."""
    reporter: Address | None = None


class SuspicionCleared(Struct, frozen=True, tag_field="kind", tag="suspicion-cleared"):
    """The member trusts `suspect` again."""

    suspect: Address
    suspect_uuid: str
    reason: str
    cause: causes.ClearanceCause = "unknown"


class ExplicitSuspicionSent(Struct, frozen=True, tag_field="kind", tag="explicit-suspicion-sent"):
    """The member asks the member `to` to suspect it."""

    to: Address
    reason: str
    cause: causes.SeparationCause = "unknown"


class ExplicitSuspicionReceived(Struct, frozen=True, tag_field="kind", tag="explicit-suspicion-received"):
    """The `sender` asks to be suspected. This is `heeded` unless the request is out of date."""

    sender: Address
    heeded: bool
    reason: str
    cause: causes.SeparationAnswer = "unknown"


class ComplaintSent(Struct, frozen=True, tag_field="kind", tag="complaint-sent"):
    """The member reports to its `master` that it gets heartbeats from a `stranger`, which is not on the list."""

    master: Address
    stranger: Address


class ObserverPaused(Struct, frozen=True, omit_defaults=True, tag_field="kind", tag="observer-paused"):
    """The member itself stood still for so long that it accuses no other member: all its heartbeat stamps start anew.

    A member of Hazelcast reads the time from a clock that can be set: it may not have stood still.
    """

    gap: Int64
    """Microseconds since its last heartbeat round."""
    is_backwards: bool = False
    """Whether its clock went back by `gap`."""
    is_by_clock: bool = False
    """Whether the gap is that of a clock that can be set, so that it may be no pause."""


class HeartbeatLate(Struct, frozen=True, tag_field="kind", tag="heartbeat-late"):
    """No heartbeat of `address` came for half the time after which it will be suspected, or that is `over` again.

    `silence` is how long nothing has been heard so far, `timeout` the silence that makes it a suspect (0: not known), both
    in microseconds. When it is over, a silence of 0 means that nothing came, but the member no longer waits for that
    heartbeat as it did before.
    """

    address: Address
    late_uuid: str
    silence: Int64
    timeout: Int64
    over: bool


# Partial disconnections (Partial Member Disconnection Resolution; Decisions: Readmission)


class DisconnectionReported(Struct, frozen=True, tag_field="kind", tag="disconnection-reported"):
    """The master heard from a slave which members it suspects; none when the slave has withdrawn its report."""

    reporter: Address
    suspects: tuple[Address, ...]


class DisconnectionResolved(Struct, frozen=True, tag_field="kind", tag="disconnection-resolved"):
    """The master decided which members stay. `exact` is false when the search was cut short: this is the best that it found."""

    keep: tuple[Address, ...]
    remove: tuple[Address, ...]
    exact: bool
    why: str


class MemberHeldBack(Struct, frozen=True, tag_field="kind", tag="member-held-back"):
    """The master does not admit `address` again until its links to `missing` are proven both ways."""

    address: Address
    missing: tuple[Address, ...]


class JoinDelayed(Struct, frozen=True, tag_field="kind", tag="join-delayed"):
    """The joining member is held back by `master`: it probes `missing`, the next time after `wait` microseconds."""

    master: Address
    missing: tuple[Address, ...]
    wait: Int64


# Split-brain recovery (Split-brain Recovery Improvements)


class MergeVerdict(Struct, frozen=True, tag_field="kind", tag="merge-verdict"):
    """What a master decided about another cluster that it met. Recorded again only when it has changed."""

    remote: Address
    decision: Literal["local-merges", "remote-merges", "cannot-merge"]
    rule: str
    why: str


class NotMerging(Struct, frozen=True, tag_field="kind", tag="not-merging"):
    """Why this master does not merge into the cluster of `remote`, or into any, now. Recorded again only when it has changed.

    An empty reason: nothing is in the way any more. `silent` are the addresses at which no member answers.
    """

    reason: str
    remote: Address | None = None
    cause: causes.ObstacleCause = "unknown"
    silent: tuple[Address, ...] = ()


class MergeStarted(Struct, frozen=True, tag_field="kind", tag="merge-started"):
    """The losing master begins to bring its whole cluster into that of `target`."""

    target: Address
    merging: tuple[Address, ...]


class MergeAbandoned(Struct, frozen=True, tag_field="kind", tag="merge-abandoned"):
    """The cluster stays separate: it does not get into that of `target`."""

    target: Address
    reason: str
    cause: causes.ObstacleCause = "unknown"


class MemberMerging(Struct, frozen=True, tag_field="kind", tag="member-merging"):
    """The last event of an incarnation that merges: the process goes on as `next_uuid` and joins the cluster of `target`."""

    target: Address
    next_uuid: str
    brings_entries: bool | None = None
    """Whether it has data to offer there, of which `EntriesMerged` says the end; null where that is not known."""


class SearchPlanned(Struct, frozen=True, tag_field="kind", tag="search-planned"):
    """A master looks for other clusters after `wait`, then again and again. Recorded again only when the plan changes."""

    wait: Int64
    """Microseconds, as is `every`."""
    every: Int64


class AddressesRemembered(Struct, frozen=True, tag_field="kind", tag="addresses-remembered"):
    """Where the member looks for clusters besides its join list: at `addresses` from now on, no longer at `forgotten`.

    A member of the list is never among these addresses.
    """

    addresses: tuple[Address, ...]
    forgotten: tuple[Address, ...] = ()


class JoinListChanged(Struct, frozen=True, tag_field="kind", tag="join-list-changed"):
    """The member looks for others at these addresses from its next search on."""

    addresses: tuple[Address, ...]
    edition: Int64
    author: Address


# Cluster state and protection


class ClusterStateChanged(Struct, frozen=True, tag_field="kind", tag="cluster-state-changed"):
    """The member now takes the cluster to be in `state`."""

    state: ClusterState
    reason: str
    cause: causes.StateCause = "unknown"


class ClusterStateRefused(Struct, frozen=True, tag_field="kind", tag="cluster-state-refused"):
    """The master gave up changing the state of the cluster."""

    wanted: ClusterState
    reason: str
    cause: causes.StateRefusalCause = "unknown"


class LiteChangeRefused(Struct, frozen=True, tag_field="kind", tag="lite-change-refused"):
    """The member is not promoted to hold data, or with `lite` not demoted to a lite member, as an operator wants."""

    lite: bool
    reason: str
    cause: causes.LiteRefusalCause = "unknown"


class ProtectionChanged(Struct, frozen=True, tag_field="kind", tag="protection-changed"):
    """Whether the member sees enough members for operations (Emergent Leader, Split Brain Situation)."""

    size: Int64
    needed: Int64
    operating: bool


class SettingsChanged(Struct, frozen=True, tag_field="kind", tag="settings-changed"):
    """Properties of this member have new values, as text by name."""

    properties: dict[str, str]


# Mastership claims


class ClaimStarted(Struct, frozen=True, tag_field="kind", tag="claim-started"):
    """The member claims the mastership: it suspects all older members, and asks the others for their lists and their consent."""

    version: Int64
    suspected: tuple[Address, ...]
    asked: tuple[Address, ...]


class ClaimAnswered(Struct, frozen=True, tag_field="kind", tag="claim-answered"):
    """What one member answered to the claimant: accepted, retry or refused."""

    by: Address
    answer: Literal["accepted", "retry", "refused"]
    version: Int64
    reason: str


class ClaimFinished(Struct, frozen=True, tag_field="kind", tag="claim-finished"):
    """The claim has succeeded: the claimant leads those that accepted, with a list newer than all that it heard of."""

    version: Int64
    lineage: str
    accepted: tuple[Address, ...]
    left_out: tuple[Address, ...]


class ClaimAbandoned(Struct, frozen=True, tag_field="kind", tag="claim-abandoned"):
    """The member no longer claims the mastership."""

    reason: str
    cause: causes.ClaimEndCause = "unknown"


# Messages that no sound member sends


class MessageRefused(Struct, frozen=True, tag_field="kind", tag="message-refused"):
    """A message of a peer cannot be true, so this member does nothing with it. Further ones are recorded once a minute.

    `refused` counts the messages of that sender that this incarnation has refused.
    """

    sender: Address
    message: str
    """The kind of the message."""
    reason: str
    refused: Int64


MembershipEvent = (
    MemberStarted | JoinRequested | JoinFailed | AddressUnusable | MemberStopped | ListInstalled | ListRejected |
    MasterChanged | MemberAdmitted | MemberRemoved | SuspicionRaised | SuspicionCleared | ExplicitSuspicionSent |
    ExplicitSuspicionReceived | ComplaintSent | ObserverPaused | HeartbeatLate | DisconnectionReported |
    DisconnectionResolved | MemberHeldBack | JoinDelayed | MergeVerdict | NotMerging | MergeStarted | MergeAbandoned |
    MemberMerging | SearchPlanned | AddressesRemembered | JoinListChanged | ClusterStateChanged |
    ClusterStateRefused | LiteChangeRefused | ProtectionChanged | SettingsChanged | ClaimStarted | ClaimAnswered |
    ClaimFinished | ClaimAbandoned | MessageRefused
)  # fmt: skip
