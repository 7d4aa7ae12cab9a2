"""What the console's interface answers with, and what it is handed (docs/reference/http-api.md): members and beliefs, commands.

Addresses are ``host:port``. Times that end in ``_us`` are microseconds on the member's own clock, unless they say UTC.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from quarterdeck.backend.core.cluster_profile import ClusterState
from quarterdeck.backend.picture.fold.belief import MergeDirection, Status
from quarterdeck.backend.service.http.face import NodeState

EXAMPLE_ADDRESS = "127.0.0.1:5701"


class ResponseModel(BaseModel):
    """A part of an answer. Made from whatever has attributes of these names."""

    model_config = ConfigDict(from_attributes=True, frozen=True, use_attribute_docstrings=True)


class RequestModel(BaseModel):
    """A part of what is handed in: unknown fields are errors, and nothing is converted."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


# Who this is, and who else is there


class MemberEntry(ResponseModel):
    """One entry of the member list, which is in order of age."""

    address: str
    uuid: str
    lite: bool
    zone: str
    join_version: int


class ThisMember(ResponseModel):
    """This member: who it is, whom it follows, and what it was told to be."""

    label: str
    address: str
    uuid: str
    """Of its present life."""
    run: str
    cluster_name: str
    node_state: NodeState
    version: str
    """Of the software."""
    started_utc: str
    """ISO 8601."""
    now_us: int
    utc_us: int
    """The same instant in UTC, since 1970."""
    cluster_state: ClusterState
    master: str | None
    is_master: bool
    list_version: int
    """0 before the first list."""
    lineage: str
    members: tuple[MemberEntry, ...]
    join_list: tuple[str, ...]
    remembered: tuple[str, ...]
    """Who has been on one of this life's lists, and is on the present one no more."""
    table_version: int
    """0 before the first arrangement."""
    table_digest: str
    allow_faults: bool
    read_only: bool


class MemberRow(MemberEntry):
    """One entry of the member list, with what this member holds of it."""

    this: bool
    master: bool
    suspected: bool
    owned: int
    """Partitions."""
    backed_up: int


class Members(ResponseModel):
    list_version: int
    lineage: str
    master: str | None
    members: tuple[MemberRow, ...]


# What it believes


class Suspected(ResponseModel):
    suspect: str
    uuid: str
    """The life that is suspected; empty when it is on no list."""
    reason: str
    since_us: int


class HeldBack(ResponseModel):
    """Somebody who has to prove its links to `missing` before it is let in again."""

    address: str
    missing: tuple[str, ...]


class Report(ResponseModel):
    """Whom a slave has reported to be out of its reach."""

    reporter: str
    suspects: tuple[str, ...]


class Suspicions(ResponseModel):
    suspicions: tuple[Suspected, ...]
    reports: tuple[Report, ...]
    held_back: tuple[HeldBack, ...]


class Obstacle(ResponseModel):
    """Why this master is not merging: with the cluster of `remote`, or with any when that is null."""

    remote: str | None
    reason: str


class VerdictOn(ResponseModel):
    """What this master found about the cluster of `remote`."""

    remote: str
    decision: MergeDirection
    rule: str
    why: str
    since_us: int


class WaitsForLinks(ResponseModel):
    """The master keeps this member waiting until its links to `missing` are proven."""

    master: str
    missing: tuple[str, ...]
    until_us: int


class Resolved(ResponseModel):
    """How this master settled a partial disconnection last."""

    keep: tuple[str, ...]
    remove: tuple[str, ...]
    exact: bool
    why: str
    at_us: int


class TableSummary(ResponseModel):
    version: int
    digest: str
    partitions: int
    cause: str
    since_us: int


class BackupBehind(ResponseModel):
    partition: int
    owner: str
    reason: str


class Belief(ResponseModel):
    """All that this member believes in its present life; nothing here was asked of anybody else."""

    label: str
    address: str
    uuid: str
    status: Status
    node_state: NodeState
    now_us: int
    at_us: int
    """When it learnt something new last."""
    merged_from: str
    master: str | None
    is_master: bool
    list_version: int
    lineage: str
    list_since_us: int
    members: tuple[MemberEntry, ...]
    cluster_state: ClusterState
    operating: bool
    """Whether it sees enough members to serve clients."""
    needed: int
    suspicions: tuple[Suspected, ...]
    claiming: bool
    merging: str | None
    not_merging: tuple[Obstacle, ...]
    verdicts: tuple[VerdictOn, ...]
    delay: WaitsForLinks | None
    held_back: tuple[HeldBack, ...]
    reports: tuple[Report, ...]
    resolution: Resolved | None
    table: TableSummary | None
    out_of_step: tuple[BackupBehind, ...]


class WhyNotMerging(ResponseModel):
    """Why the clusters that this member could meet do not become one."""

    sentence: str
    master: str | None
    is_master: bool
    merging: str | None
    obstacles: tuple[Obstacle, ...]
    verdicts: tuple[VerdictOn, ...]
    delay: WaitsForLinks | None
    held_back: tuple[HeldBack, ...]
    join_list: tuple[str, ...]
    remembered: tuple[str, ...]


# What is asked of it, and what it says to that


class Done(ResponseModel):
    """It was done, or has begun; how it ends is told by events."""

    status: Literal["success"] = "success"
    message: str


class Fail(ResponseModel):
    """It was not done."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"status": "fail", "message": "addresses: is missing", "hint": "write a list of host:port"}]
        }
    )
    status: Literal["fail"] = "fail"
    message: str
    hint: str = ""


class JoinList(ResponseModel):
    addresses: tuple[str, ...] = Field(examples=[[EXAMPLE_ADDRESS, "127.0.0.1:5702"]])


class NewJoinList(RequestModel):
    addresses: tuple[str, ...] = Field(
        max_length=1_000,
        strict=False,
        description="host:port each; one without a port stands for a few ports",
        examples=[[EXAMPLE_ADDRESS, "127.0.0.1:5702"]],
    )


class StateIs(ResponseModel):
    state: ClusterState


class StateWanted(RequestModel):
    state: ClusterState = Field(examples=["FROZEN"])


class StopWanted(RequestModel):
    whole_cluster: bool = Field(False, description="all members, not only this one")


class Properties(ResponseModel):
    properties: dict[str, bool | int | float | str]
    fixed_at_start: tuple[str, ...]
    """Those that cannot be changed while the member runs."""


class NewProperties(RequestModel):
    properties: dict[str, bool | int | float | str] = Field(
        min_length=1, max_length=200, examples=[{"hazelcast.merge.next.run.delay.seconds": 30}]
    )


class LinkCondition(ResponseModel):
    """The condition of the one-way link from `source` to `target`."""

    source: str
    target: str
    blocked: Literal["", "blackhole", "reset"]
    delay: int
    """Microseconds added to each message."""
    loss: float
    duplicate: float
    dropped_kinds: tuple[str, ...]


class Faults(ResponseModel):
    faults: tuple[LinkCondition, ...]
