"""What a member tells a client: one type for each message of the protocol that this project understands.

A uuid is text in its usual form, as everywhere in this project. An address is the canonical text of `backend.core.address`,
as the member names itself: behind NAT nobody outside may reach it under that name.
"""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.cluster_profile import ClusterState

AuthenticationStatus = Literal["authenticated", "credentials failed", "serialization version differs", "not allowed"]
"""What a member says of a client that introduces itself. `not allowed`: this client may not use this cluster."""

AUTHENTICATION_STATUSES: tuple[AuthenticationStatus, ...] = (
    "authenticated",
    "credentials failed",
    "serialization version differs",
    "not allowed",
)
"""By the number that stands for each on the wire."""

ToldState = ClusterState | Literal["IN_TRANSITION", "unknown"]
"""A member may be asked while the state is being changed, and a later version may have another one."""

MetricValue = int | float


class Authenticated(Struct, frozen=True):
    """The answer to a client that introduced itself. Of one that is turned away only the status is sure to be there."""

    status: AuthenticationStatus
    address: Address | None
    """How the member names itself."""
    member_uuid: str | None
    server_version: str
    partition_count: int
    """-1 before the first arrangement, as some versions tell it."""
    cluster_uuid: str | None
    """The same on both sides of a split."""
    serialization_version: int = 1
    failover_supported: bool = False


class ViewMember(Struct, frozen=True):
    """One member on a member's list."""

    uuid: str
    address: Address
    lite: bool
    attributes: dict[str, str] = {}
    version: str = ""
    """As major.minor.patch; empty where it was not told."""


class MembersView(Struct, frozen=True):
    """A member's own list, the oldest first: so the first is its master.

    Versions are not unique. Two halves of a split may both have a version 13, with different content.
    """

    version: int
    members: tuple[ViewMember, ...]

    @property
    def master(self) -> ViewMember | None:
        """The first, which leads as this member believes."""
        return self.members[0] if self.members else None


class PartitionsView(Struct, frozen=True):
    """Who owns each partition, as this member believes. Backups are never told."""

    counter: int
    """The member's own count of views, which means nothing elsewhere: one table was 22, 25, 33 and 37 on four members."""
    holders: tuple[str, ...]
    """The uuids of all owners, in the order of text."""
    owners: tuple[int, ...]
    """By partition: the owner's place among `holders`, or -1 when nobody was told as its owner."""

    def owner_of(self, partition: int) -> str | None:
        """The uuid of the owner of `partition`."""
        place = self.owners[partition] if 0 <= partition < len(self.owners) else -1
        return None if place < 0 else self.holders[place]


class MigrationState(Struct, frozen=True):
    """How far the migrations are that the master has planned together."""

    started_at_ms: int
    """Milliseconds since 1970, by the clock of the master."""
    planned: int
    done: int
    total_ms: int
    """The time that those which are done have taken together."""


class MigrationProcessEvent(Struct, frozen=True):
    """A process of migrations has started or finished."""

    what: Literal["started", "finished"]
    state: MigrationState


class ReplicaMigrationEvent(Struct, frozen=True):
    """One replica has been migrated, or could not be. Its beginning is never told."""

    partition: int
    replica_index: int
    source_uuid: str | None
    destination_uuid: str | None
    succeeded: bool
    took_ms: int
    state: MigrationState


class PartitionLostEvent(Struct, frozen=True):
    """A partition has lost its owner and `lost_backups` backups with it."""

    partition: int
    lost_backups: int
    source_uuid: str | None
    """Who found it out."""


class ClusterMetadata(Struct, frozen=True):
    """What a member says of its cluster when it is asked."""

    state: ToldState
    cluster_time_ms: int
    member_version: str
    cluster_uuid: str | None = None
    """Not told by 4.2."""


class MemberConfig(Struct, frozen=True):
    """The member's configuration as it runs, with the join list of this moment. Secrets are masked by the member."""

    xml: str


class SystemProperties(Struct, frozen=True):
    """The properties of the member's process, in its order."""

    properties: dict[str, str]


class TimedMemberState(Struct, frozen=True):
    """What the member keeps for the management centre, as JSON text."""

    json: str


class MetricSample(Struct, frozen=True):
    """One metric at one moment: ``partitions.stateStamp`` is the name ``partitions.stateStamp`` without tags."""

    name: str
    """Prefix and metric, with a point between them."""
    value: MetricValue
    unit: int | None = None
    discriminator: tuple[str, str] | None = None
    """What this sample is of, when there are several of the name: key and value."""
    tags: tuple[tuple[str, str], ...] = ()


class MetricSet(Struct, frozen=True):
    """All metrics that were collected at one moment."""

    at_ms: int
    """Milliseconds since 1970, by the member's clock."""
    samples: tuple[MetricSample, ...]

    def value_of(self, name: str) -> MetricValue | None:
        """The value of the first sample of `name`."""
        return next((sample.value for sample in self.samples if sample.name == name), None)


class Metrics(Struct, frozen=True):
    """The sets of metrics since the sequence that was asked for."""

    next_sequence: int
    sets: tuple[MetricSet, ...]


class ListenerAdded(Struct, frozen=True):
    """A listener is in place; `registration_uuid` removes it again. That for cluster views has none."""

    registration_uuid: str | None = None


class ListenerRemoved(Struct, frozen=True):
    """A listener has been removed, or was not there."""

    removed: bool


class RequestDone(Struct, frozen=True):
    """A request without a value has been carried out: a ping, a change of state, a promotion, a shutdown."""


class ErrorAnswer(Struct, frozen=True):
    """A request that failed. `class_name` is the Java class of the exception, `message` its text; causes stay out."""

    code: int
    class_name: str
    message: str

    @property
    def not_ready(self) -> bool:
        """Whether the member says that it is starting or merging: it will be there soon, as a new incarnation."""
        return "not ready" in self.message or self.class_name.endswith("HazelcastInstanceNotActiveException")

    @property
    def access_denied(self) -> bool:
        """Whether security or `trusted-interfaces` keep this client from asking that."""
        return self.class_name.rpartition(".")[2] in ("AccessControlException", "SecurityException")


class UnknownMessage(Struct, frozen=True):
    """A message of a type that this project does not understand, say of a later version. It is skipped."""

    type: int


Event = MembersView | PartitionsView | MigrationProcessEvent | ReplicaMigrationEvent | PartitionLostEvent
"""What a member tells unasked, once a listener is in place."""

Answer = (
    Authenticated
    | ClusterMetadata
    | MemberConfig
    | SystemProperties
    | TimedMemberState
    | Metrics
    | ListenerAdded
    | ListenerRemoved
    | RequestDone
    | ErrorAnswer
)
"""What answers a request."""

Message = Event | Answer | UnknownMessage
