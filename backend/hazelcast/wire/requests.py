"""What a client asks of a member: one type for each request of the protocol that this project sends."""

from __future__ import annotations

from msgspec import Struct

from quarterdeck.backend.core.cluster_profile import ClusterState


class NameOnly(Struct, frozen=True):
    """A cluster without security: its name is all that a client has to know."""


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
    """Introduces the client. It has to be the first request of a connection."""

    cluster_name: str
    credentials: Credentials
    client_uuid: str
    client_name: str
    client_version: str


class Ping(Struct, frozen=True):
    """Asks for a sign of life."""


class AddClusterViewListener(Struct, frozen=True):
    """Wants to be told the member's list and the owners of partitions, now and whenever they change."""


class AddMigrationListener(Struct, frozen=True):
    """Wants to be told when a replica has been migrated."""

    local_only: bool = False


class RemoveMigrationListener(Struct, frozen=True):
    """Wants to be told no longer."""

    registration_uuid: str


class AddPartitionLostListener(Struct, frozen=True):
    """Wants to be told when a partition is lost."""

    local_only: bool = False


class ReadMetrics(Struct, frozen=True):
    """Asks for the metrics that the member with this uuid has collected since a sequence; -1 is the oldest that it has kept."""

    member_uuid: str
    from_sequence: int


class GetClusterMetadata(Struct, frozen=True):
    """Asks for the state of the cluster, its time and the member's version."""


class GetMemberConfig(Struct, frozen=True):
    """Asks for the configuration as it runs."""


class GetSystemProperties(Struct, frozen=True):
    """Asks for the properties of the process."""


class GetTimedMemberState(Struct, frozen=True):
    """Asks for what the member keeps for the management centre."""


class ChangeClusterState(Struct, frozen=True):
    """Wants the whole cluster in another state."""

    state: ClusterState


class ShutDownMember(Struct, frozen=True):
    """Wants this member to leave gracefully. It closes the connection before it answers."""


class PromoteLiteMember(Struct, frozen=True):
    """Wants this lite member to hold data."""


class ShutDownCluster(Struct, frozen=True):
    """Wants all members to leave gracefully."""


Question = Ping | ReadMetrics | GetClusterMetadata | GetMemberConfig | GetSystemProperties | GetTimedMemberState
"""What changes nothing at the member."""

Command = ChangeClusterState | ShutDownMember | PromoteLiteMember | ShutDownCluster
"""What an operator may want done."""

Listening = AddClusterViewListener | AddMigrationListener | RemoveMigrationListener | AddPartitionLostListener

Request = Authenticate | Listening | Question | Command
