"""What a cluster says of itself to another that it meets, and the states that a cluster can be in."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from quarterdeck.backend.core.address import Address

ClusterState = Literal["ACTIVE", "NO_MIGRATION", "FROZEN", "PASSIVE"]

CLUSTER_STATES: tuple[ClusterState, ...] = ("ACTIVE", "NO_MIGRATION", "FROZEN", "PASSIVE")


ShownState = Literal[ClusterState, "IN_TRANSITION"]
"""What a cluster may show of its state: also that it is just changing it."""


def allows_joins(state: ShownState) -> bool:
    """Whether newcomers are let in. In the other states only members that went missing may come back."""
    return state in ("ACTIVE", "NO_MIGRATION")


def allows_migrations(state: ClusterState) -> bool:
    """Whether partitions are arranged anew and data is moved (Hazelcast: cluster states)."""
    return state == "ACTIVE"


def allows_promotions(state: ClusterState) -> bool:
    """Whether backups take the place of owners that are gone (Hazelcast: cluster states)."""
    return state in ("ACTIVE", "NO_MIGRATION")


class ClusterStanding(Struct, frozen=True, array_like=True):
    """The state of a cluster. Of two that reach a member in the wrong order, the greater edition is the later.

    `thawed` is set while the cluster is frozen only for a merge: the state to go back to if that comes to nothing.
    """

    state: ClusterState = "ACTIVE"
    edition: int = 0
    thawed: ClusterState | None = None


class ProfiledMember(Struct, frozen=True, array_like=True):
    """One member of a cluster that shows itself."""

    address: Address
    uuid: str
    lite: bool


class ClusterProfile(Struct, frozen=True, array_like=True):
    """The message that two masters exchange (Hazelcast: split-brain join message).

    `address` is the master's; `members` in order of age.
    """

    address: Address
    uuid: str
    cluster_name: str
    state: ShownState
    members: tuple[ProfiledMember, ...]
    list_version: int
    data_member_count: int
    partition_count: str = ""
    """The configured text, empty when none is configured: unset and an explicit default do not match."""
    joiner: str = "tcp-ip"
    partition_groups: str = ""
    cluster_version: str = "1.0"
