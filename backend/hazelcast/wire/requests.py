"""Requests of a client to a member: one type for each that this project sends."""

from __future__ import annotations

from msgspec import Struct

from quarterdeck.backend.core.cluster_profile import ClusterState


class NameOnly(Struct, frozen=True):
    """A cluster without security: a client only has to know its name."""


class UserAndPassword(Struct, frozen=True):
    """A cluster whose clients have names and passwords."""

    user: str
    password: str

    def __repr__(self) -> str:
        return f"UserAndPassword(user={self.user!r})"


class RequestToken(Struct, frozen=True):
    """A cluster whose clients show a token, as bytes."""

    token: bytes

    def __repr__(self) -> str:
        return "Token()"


Credentials = NameOnly | UserAndPassword | RequestToken


class Authenticate(Struct, frozen=True):
    """Introduces the client. It must be the first request of a connection."""

    cluster_name: str
    credentials: Credentials
    client_uuid: str
    client_name: str
    client_version: str


class Ping(Struct, frozen=True):
    """Asks for an empty answer, to see that it is alive."""


class AddClusterViewListener(Struct, frozen=True):
    """Subscribes to the member's list and the owners of partitions."""


class AddMigrationListener(Struct, frozen=True):
    """Subscribes to migrations of replicas."""


class RemoveMigrationListener(Struct, frozen=True):
    """Ends the subscription to migrations."""

    registration_uuid: str


class AddPartitionLostListener(Struct, frozen=True):
    """Subscribes to losses of partitions."""


class ReadMetrics(Struct, frozen=True):
    """Asks for the metrics that the member with this uuid has collected since a sequence; -1 is the oldest it has kept."""

    member_uuid: str
    from_sequence: int


class GetClusterMetadata(Struct, frozen=True):
    """Asks for the state of the cluster, its time and the member's version."""


class GetMemberConfig(Struct, frozen=True):
    """Asks for the configuration as it runs."""


class GetSystemProperties(Struct, frozen=True):
    """Asks for the properties of the process."""


class ChangeClusterState(Struct, frozen=True):
    """Changes the state of the whole cluster."""

    state: ClusterState


class ShutDownMember(Struct, frozen=True):
    """Shuts this member down gracefully. It closes the connection before it answers."""


class PromoteLiteMember(Struct, frozen=True):
    """Makes this lite member a data member."""


class ShutDownCluster(Struct, frozen=True):
    """Shuts all members down gracefully."""


class SetDiagnostics(Struct, frozen=True):
    """Has every member of the cluster write these diagnostics to its standard output, for so many minutes; 0 ends it."""

    minutes: int
    plugins: dict[str, str]


Question = Ping | ReadMetrics | GetClusterMetadata | GetMemberConfig | GetSystemProperties
"""Requests that change nothing at the member."""
Command = ChangeClusterState | ShutDownMember | PromoteLiteMember | ShutDownCluster | SetDiagnostics
"""Requests that an operator may send."""
Listening = AddClusterViewListener | AddMigrationListener | RemoveMigrationListener | AddPartitionLostListener
Request = Authenticate | Listening | Question | Command
