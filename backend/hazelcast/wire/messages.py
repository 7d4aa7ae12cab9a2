"""What a member reports to a client, and what following a member yields.

There is one type for each message of the protocol that is understood here, and one for each change of the connection.
A uuid is text in its usual form, as everywhere in this project. An address is the canonical text of `backend.core.address`, as
the member names itself: behind NAT it may not be reachable under that name.
"""

from __future__ import annotations

from typing import Literal, get_args

from msgspec import Struct

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.cluster_profile import ClusterState
from quarterdeck.backend.core.witnessed.events import ConnectionState

AuthenticationStatus = Literal["authenticated", "credentials failed", "serialization version differs", "not allowed"]
"""A member's answer to a client that introduces itself. `not allowed`: this client may not use this cluster."""
AUTHENTICATION_STATUSES: tuple[AuthenticationStatus, ...] = get_args(AuthenticationStatus)
"""By the number that stands for each on the wire."""
ReportedState = ClusterState | Literal["IN_TRANSITION", "unknown"]
"""A member may be asked while the state is being changed, and a later version may have another one."""
MetricValue = int | float
MOST_MILLISECONDS = 1 << 53
"""More than a member can mean; in microseconds it still has 64 bits."""


class Authenticated(Struct, frozen=True):
    """The answer to a client that introduced itself. If it is refused, only the status is certain."""

    status: AuthenticationStatus
    address: Address | None
    """How the member names itself."""
    member_uuid: str | None
    server_version: str


class ViewMember(Struct, frozen=True):
    """One member on a member's list."""

    uuid: str
    address: Address
    lite: bool
    version: str = ""
    """As major.minor.patch; empty if not reported."""


class MembersView(Struct, frozen=True):
    """A member's own list, the oldest first: so the first is its master.

    Versions are not unique. Two halves of a split may both have a version 13, with different content.
    """

    version: int
    members: tuple[ViewMember, ...]

    @property
    def master(self) -> ViewMember | None:
        """The first member, which leads as this member believes."""
        return self.members[0] if self.members else None


class PartitionsView(Struct, frozen=True):
    """The owner of each partition, as this member believes. Backups are never reported."""

    holders: tuple[str, ...]
    """The uuids of all owners, in the order of text."""
    owners: tuple[int, ...]
    """By partition: the owner's place among `holders`, or -1 if none was reported."""


class MigrationState(Struct, frozen=True):
    """How far the migrations are that the master has planned together."""

    planned: int
    done: int


class MigrationProcessEvent(Struct, frozen=True):
    """A process of migrations has started or finished."""

    what: Literal["started", "finished"]
    state: MigrationState


class ReplicaMigrationEvent(Struct, frozen=True):
    """One replica has been migrated, or could not be. The beginning of a migration is never reported."""

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


class ClusterMetadata(Struct, frozen=True):
    """What a member says of its cluster when asked."""

    state: ReportedState


class MemberConfig(Struct, frozen=True):
    """The member's configuration as it runs, with the join list of this moment. Secrets are masked by the member."""

    xml: str


class SystemProperties(Struct, frozen=True):
    """The properties of the member's process, in its order."""

    properties: dict[str, str]


class MetricSample(Struct, frozen=True):
    """One metric at one moment, such as ``partitions.stateStamp``."""

    name: str
    """Prefix and metric, with a point between them."""
    value: MetricValue
    discriminator: tuple[str, str] | None = None
    """Which of several samples of the same name it is: key and value."""


class MetricSet(Struct, frozen=True):
    """All metrics that were collected at one moment."""

    at_ms: int
    """Milliseconds since 1970, by the member's clock."""
    samples: tuple[MetricSample, ...]

    def value_of(self, name: str) -> MetricValue | None:
        return next((sample.value for sample in self.samples if sample.name == name), None)


class Metrics(Struct, frozen=True):
    """The sets of metrics since the requested sequence."""

    next_sequence: int
    sets: tuple[MetricSet, ...]


class ListenerAdded(Struct, frozen=True):
    """A listener is in place; `registration_uuid` removes it again. That for cluster views has none."""

    registration_uuid: str | None = None


class ListenerRemoved(Struct, frozen=True):
    """A listener has been removed, or was not there."""

    removed: bool


class RequestDone(Struct, frozen=True):
    """The answer to a request without a value: a ping, a change of state, a promotion, a shutdown."""


class ErrorAnswer(Struct, frozen=True):
    """A request that failed. `class_name` is the Java class of the exception, `message` its text. Causes are left out."""

    code: int
    class_name: str
    message: str

    @property
    def not_ready(self) -> bool:
        """Whether the member is starting or merging: it will soon be ready, as a new incarnation."""
        return "not ready" in self.message or self.class_name.endswith("HazelcastInstanceNotActiveException")

    @property
    def access_denied(self) -> bool:
        """Whether security or `trusted-interfaces` forbid this client that request."""
        return self.class_name.rpartition(".")[2] in ("AccessControlException", "SecurityException")


class UnknownMessage(Struct, frozen=True):
    """A message of a type that is not understood here, say of a later version. It is skipped."""

    type: int


Event = MembersView | PartitionsView | MigrationProcessEvent | ReplicaMigrationEvent | PartitionLostEvent
"""What a member reports unasked, once a listener is in place."""

Answer = (
    Authenticated | ClusterMetadata | MemberConfig | SystemProperties | Metrics | ListenerAdded | ListenerRemoved | RequestDone
    | ErrorAnswer
)  # fmt: skip
"""The answers to requests."""

Message = Event | Answer | UnknownMessage
Topic = Literal["cluster-state", "metrics", "config", "properties", "migrations", "losses"]
"""What a member may refuse to report while it reports the rest."""


class Heard(Struct, frozen=True):
    """A member reported something, asked or unasked."""

    at_us: int
    address: Address
    """How the member names itself."""
    member_uuid: str
    """The incarnation that reported it."""
    message: Message


class ConnectionReport(Struct, frozen=True):
    """The connection state of a member has changed."""

    at_us: int
    address: Address
    state: ConnectionState
    reason: str
    """A sentence for people: why it is refused or gone, since when silent. Empty when connected."""
    since_us: int
    """When it began, which is before `at_us` for a silence."""


class TopicRefused(Struct, frozen=True):
    """A member refuses requests of one topic, while it answers the others."""

    at_us: int
    address: Address
    topic: Topic
    reason: str


class RequestAnswered(Struct, frozen=True):
    """The answer to `Followers.ask`. None: the connection ended before it arrived."""

    at_us: int
    address: Address
    ticket: int
    answer: Answer | None


class Renamed(Struct, frozen=True):
    """The dialled address leads to a member that names itself otherwise. From now on its own name is used."""

    at_us: int
    dialled: Address
    address: Address


class NotFollowed(Struct, frozen=True):
    """An address was found but is not followed, because as many are followed as allowed."""

    at_us: int
    address: Address
    limit: int


class Forgotten(Struct, frozen=True):
    """An address is looked for no more: no member is reached there for long, and it is on no list."""

    at_us: int
    address: Address


class NameResolved(Struct, frozen=True):
    """A name stands for these addresses, each of which is followed instead of the name."""

    at_us: int
    name: Address
    addresses: tuple[Address, ...]


Observation = (
    Heard | ConnectionReport | TopicRefused | RequestAnswered | Renamed | NotFollowed | Forgotten | NameResolved
)  # fmt: skip
