"""The identity of a member, its list, its beliefs, and its partition table (docs/reference/http-api.md)."""

from __future__ import annotations

from datetime import datetime
from itertools import starmap
from typing import Annotated, Literal, TypeVar

from msgspec import Meta, Struct, convert, field

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.cluster_profile import ClusterState
from quarterdeck.backend.core.membership.views.identity import Member
from quarterdeck.backend.core.partitions.events import Holder, MigrationAccepted, PlannedMigration
from quarterdeck.backend.core.partitions.migration.migration import Kind
from quarterdeck.backend.judgement.merging.why_not_merging import unusable_text
from quarterdeck.backend.picture.fold.belief import (
    BackupBehind,
    MemberBelief,
    Obstacle,
    Resolved,
    Status,
    Suspected,
    VerdictOn,
    WaitsForLinks,
)
from quarterdeck.backend.picture.fold.migrations import Phase, Recovery

NO_LIST = "it has no member list yet: it is still looking for a cluster"
KNOWS_NO_OTHER = "every address that it knows is a member already; edit the join list to name others"
MEETS_NO_OTHER = "it has met no other cluster; nothing on its join list or among those it remembers has answered as one"

Shape = TypeVar("Shape", bound=Struct)

NodeState = Literal["STARTING", "ACTIVE", "PASSIVE", "SHUT_DOWN"]
"""How far a member's process is, in the operators' words."""


class ThisMember(Struct, frozen=True):
    """This member: its identity, the master that it follows, and its configuration."""

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
    members: tuple[Member, ...]
    join_list: tuple[Address, ...]
    remembered: Annotated[
        tuple[Address, ...],
        Meta(description="Who has been on a list of this incarnation, and is on the present one no more."),
    ]
    table_version: Annotated[int, Meta(description="0 before the first arrangement.")]
    table_digest: str
    allow_faults: bool
    read_only: bool


class MemberRow(Member, frozen=True, kw_only=True):
    """One entry of the member list, with the replicas that this member holds of it."""

    this: bool
    master: bool
    suspected: bool
    owned: Annotated[int, Meta(description="Partitions.")]
    backed_up: int


class Members(Struct, frozen=True):
    """The member list, with the number of replicas that each member holds."""

    list_version: int
    lineage: str
    master: Address | None
    members: tuple[MemberRow, ...]


class HeldBack(Struct, frozen=True):
    """A member that has to prove its links to `missing` before it is let in again."""

    address: Address
    missing: tuple[Address, ...]


class Report(Struct, frozen=True):
    """Whom a slave has reported to be out of its reach."""

    reporter: Address
    suspects: tuple[Address, ...]


class Suspicions(Struct, frozen=True):
    """The suspected members; on a master also the suspicions that slaves report, and the joiners that are held back."""

    suspicions: tuple[Suspected, ...]
    reports: tuple[Report, ...]
    held_back: tuple[HeldBack, ...]


class TableSummary(Struct, frozen=True):
    """The version of this member's partition table, and the change that led to it."""

    version: int
    digest: str
    partitions: int
    cause: str
    since_us: int


class Belief(Struct, frozen=True):
    """All that this member believes in its present incarnation; nothing here was asked of any other member.

    A field has the name that it has in `MemberBelief`, of which it is made, and is encoded under the name of the contract.
    """

    label: str
    address: Address
    uuid: str
    status: Status
    node_state: NodeState
    now_us: int
    at: Annotated[int, Meta(description="When it learnt something new last.")] = field(name="at_us")
    merged_from: str
    master: Address | None
    is_master: bool
    version: int = field(name="list_version")
    lineage: str
    list_since_us: int
    members: tuple[Member, ...]
    cluster_state: ClusterState
    operating: Annotated[bool, Meta(description="Whether it sees enough members to serve clients.")]
    needed: int
    suspicions: tuple[Suspected, ...]
    claiming: bool
    merging: Address | None
    obstacles: tuple[Obstacle, ...] = field(name="not_merging")
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


def suspicions_of(belief: MemberBelief) -> Suspicions:
    """Return the suspicions of a member, the suspicions reported to it, and the joiners that it holds back."""
    return _of(belief, Suspicions)


def whole_belief(belief: MemberBelief, node_state: NodeState, now_us: int) -> Belief:
    """Return everything that a member believes of its cluster at `now_us`."""
    table = convert(belief.table, TableSummary, from_attributes=True) if belief.table is not None else None
    behind = tuple(belief.out_of_step[partition] for partition in sorted(belief.out_of_step))
    return _of(belief, Belief, node_state=node_state, now_us=now_us, table=table, out_of_step=behind)


def _of(belief: MemberBelief, shape: type[Shape], **given: object) -> Shape:
    """Return the fields of `shape` that a belief has, the `given` ones aside. Fields held by address become lists."""
    given["reports"] = tuple(starmap(Report, belief.reports.items()))
    given["held_back"] = tuple(starmap(HeldBack, belief.held_back.items()))
    names = shape.__struct_fields__
    own = {name: getattr(belief, name) for name in names if name not in given}
    listed = {name: tuple(value.values()) if isinstance(value, dict) else value for name, value in own.items()}
    return shape(**listed, **{name: value for name, value in given.items() if name in names})


def remembered_by(belief: MemberBelief) -> tuple[Address, ...]:
    """Return the addresses that were on a list of this member once, and are not on its present one."""
    return tuple(sorted(belief.ever_listed - belief.listed - {belief.address}))


def why_not_merging_of(belief: MemberBelief) -> WhyNotMerging:
    """Return the reasons that keep a member's cluster from merging with another one, as the member has them."""
    return _of(belief, WhyNotMerging, sentence=_why(belief), is_master=belief.leads, remembered=remembered_by(belief))


def _why(belief: MemberBelief) -> str:
    if belief.delay is not None:
        return f"{belief.delay.master} lets it in when its links to {', '.join(belief.delay.missing)} are proven"
    if not belief.version:
        unusable = unusable_text(belief)
        return f"{NO_LIST}; {unusable}" if unusable else NO_LIST
    if not belief.leads:
        return f"it follows {belief.master}, and only a master merges; ask that one"
    if belief.merging:
        return f"it is merging into the cluster of {belief.merging}"
    return belief.not_merging or (MEETS_NO_OTHER if belief.search_addresses else KNOWS_NO_OTHER)


class Table(Struct, frozen=True):
    """Rows of the partition table.

    Each row is the partition, its version, and for every replica index the place of its holder in `holders`, -1 for none.
    `next` is where to go on, null after the last row.
    """

    table_version: int
    digest: str
    partitions: int
    replicas: Annotated[int, Meta(description="How many replica indices there are.")]
    holders: tuple[Holder, ...]
    rows: tuple[tuple[int, ...], ...]
    next: int | None


class Migration(Struct, frozen=True):
    """A migration that was begun: of which partition, from where to where."""

    migration_id: str
    partition: int
    type: Kind
    source: Address | None
    source_current: int
    source_new: int
    destination: Address
    destination_current: int
    destination_new: int
    owner: Address
    unavoidable: bool


class Running(Migration, frozen=True):
    """A migration under way, and how far it is."""

    phase: Phase
    since_us: int


class Finished(Migration, frozen=True):
    """A migration that ended, and how."""

    committed: bool
    reason: str
    at_us: int
    took_us: int


class LostPartition(Struct, frozen=True):
    """A partition that lost all its replicas, and when."""

    partition: int
    at_us: int


class Draining(Struct, frozen=True):
    """A member that gives its data away before it leaves."""

    address: Address
    since_us: int


class Migrations(Struct, frozen=True):
    """The migrations that this member leads as a master, or takes part in. Long lists are shortened at one end."""

    leading: bool
    recovering: Recovery | None
    draining: tuple[Draining, ...]
    moves: int
    lower_bound: int
    why: str
    cancelled: int
    queued: int
    running_count: int
    done: int
    failed: int
    lost: int
    planned: tuple[PlannedMigration, ...]
    running: tuple[Running, ...]
    taking_part: Annotated[
        tuple[MigrationAccepted, ...], Meta(description="Those that it takes part in, and whose end it does not know.")
    ]
    ended: Annotated[tuple[Finished, ...], Meta(description="The latest first.")]
    lost_partitions: tuple[LostPartition, ...]
