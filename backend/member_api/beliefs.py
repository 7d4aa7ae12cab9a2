"""Who a member is, who else is there, and what it believes (docs/reference/http-api.md)."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from msgspec import Meta, Struct

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.cluster_profile import ClusterState
from quarterdeck.backend.core.membership.split_brain.merge_decision import MergeDirection
from quarterdeck.backend.picture.fold.belief import Status

NodeState = Literal["STARTING", "ACTIVE", "PASSIVE", "SHUT_DOWN"]
"""How far a member's process is, in the operators' words."""


class MemberEntry(Struct, frozen=True):
    """One entry of the member list, which is in order of age."""

    address: Address
    uuid: str
    lite: bool
    zone: str
    join_version: int


class ThisMember(Struct, frozen=True):
    """This member: who it is, whom it follows, and what it was told to be."""

    label: str
    address: Address
    uuid: Annotated[str, Meta(description="Of its present incarnation.")]
    run: str
    cluster_name: str
    node_state: NodeState
    version: Annotated[str, Meta(description="Of the software.")]
    started_utc: Annotated[datetime, Meta(description="When its process began, in ISO 8601.")]
    now_us: int
    utc_us: Annotated[int, Meta(description="The same instant in UTC, since 1970.")]
    cluster_state: ClusterState
    master: Address | None
    is_master: bool
    list_version: Annotated[int, Meta(description="0 before the first list.")]
    lineage: str
    members: tuple[MemberEntry, ...]
    join_list: tuple[Address, ...]
    remembered: Annotated[
        tuple[Address, ...],
        Meta(description="Who has been on a list of this incarnation, and is on the present one no more."),
    ]
    table_version: Annotated[int, Meta(description="0 before the first arrangement.")]
    table_digest: str
    allow_faults: bool
    read_only: bool


class MemberRow(MemberEntry, frozen=True):
    """One entry of the member list, with what this member holds of it."""

    this: bool
    master: bool
    suspected: bool
    owned: Annotated[int, Meta(description="Partitions.")]
    backed_up: int


class Members(Struct, frozen=True):
    """The member list, with what each member holds of the partitions."""

    list_version: int
    lineage: str
    master: Address | None
    members: tuple[MemberRow, ...]


class Suspected(Struct, frozen=True):
    """A member that this one suspects."""

    suspect: Address
    uuid: Annotated[str, Meta(description="The incarnation that is suspected; empty when it is on no list.")]
    reason: str
    since_us: int


class HeldBack(Struct, frozen=True):
    """Somebody who has to prove its links to `missing` before it is let in again."""

    address: Address
    missing: tuple[Address, ...]


class Report(Struct, frozen=True):
    """Whom a slave has reported to be out of its reach."""

    reporter: Address
    suspects: tuple[Address, ...]


class Suspicions(Struct, frozen=True):
    """Whom this member suspects; on a master also what slaves report, and who is held back."""

    suspicions: tuple[Suspected, ...]
    reports: tuple[Report, ...]
    held_back: tuple[HeldBack, ...]


class Obstacle(Struct, frozen=True):
    """Why this master is not merging: with the cluster of `remote`, or with any when that is null."""

    remote: Address | None
    reason: str


class VerdictOn(Struct, frozen=True):
    """What this master found about the cluster of `remote`."""

    remote: Address
    decision: MergeDirection
    rule: str
    why: str
    since_us: int


class WaitsForLinks(Struct, frozen=True):
    """The master keeps this member waiting until its links to `missing` are proven."""

    master: Address
    missing: tuple[Address, ...]
    until_us: int


class Resolved(Struct, frozen=True):
    """How this master settled a partial disconnection last."""

    keep: tuple[Address, ...]
    remove: tuple[Address, ...]
    exact: bool
    why: str
    at_us: int


class TableSummary(Struct, frozen=True):
    """Which partition table this member has, and what changed it last."""

    version: int
    digest: str
    partitions: int
    cause: str
    since_us: int


class BackupBehind(Struct, frozen=True):
    """A backup at this member that does not have what its owner has."""

    partition: int
    owner: Address
    reason: str


class Belief(Struct, frozen=True):
    """All that this member believes in its present incarnation; nothing here was asked of anybody else."""

    label: str
    address: Address
    uuid: str
    status: Status
    node_state: NodeState
    now_us: int
    at_us: Annotated[int, Meta(description="When it learnt something new last.")]
    merged_from: str
    master: Address | None
    is_master: bool
    list_version: int
    lineage: str
    list_since_us: int
    members: tuple[MemberEntry, ...]
    cluster_state: ClusterState
    operating: Annotated[bool, Meta(description="Whether it sees enough members to serve clients.")]
    needed: int
    suspicions: tuple[Suspected, ...]
    claiming: bool
    merging: Address | None
    not_merging: tuple[Obstacle, ...]
    verdicts: tuple[VerdictOn, ...]
    delay: WaitsForLinks | None
    held_back: tuple[HeldBack, ...]
    reports: tuple[Report, ...]
    resolution: Resolved | None
    table: TableSummary | None
    out_of_step: tuple[BackupBehind, ...]


class WhyNotMerging(Struct, frozen=True):
    """Why the clusters that this member could meet do not become one."""

    sentence: str
    master: Address | None
    is_master: bool
    merging: Address | None
    obstacles: tuple[Obstacle, ...]
    verdicts: tuple[VerdictOn, ...]
    delay: WaitsForLinks | None
    held_back: tuple[HeldBack, ...]
    join_list: tuple[Address, ...]
    remembered: tuple[Address, ...]
