"""The belief of one member in one incarnation: list, suspicions, hindrances of healing, partitions and work."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field
from typing import Annotated, Literal, NamedTuple

from msgspec import Meta, Struct

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.causes import ObstacleCause, UnreachableCause
from quarterdeck.backend.core.cluster_profile import ClusterState
from quarterdeck.backend.core.membership.split_brain.merge_decision import MergeDirection
from quarterdeck.backend.core.membership.views.identity import Member
from quarterdeck.backend.core.partitions.events import MigrationAccepted
from quarterdeck.backend.core.witnessed.events import Aspect, ConnectionState, MemberMeasured, Source
from quarterdeck.backend.picture.fold.member_data import MemberData
from quarterdeck.backend.picture.fold.migrations import MigrationsLed
from quarterdeck.backend.picture.fold.table_belief import TableBelief

Status = Literal["joining", "member", "paused", "stopped", "killed"]


class Suspected(Struct, frozen=True):
    """A member that this one suspects, why, and since when on the run's clock."""

    suspect: Address
    uuid: Annotated[str, Meta(description="The incarnation that is suspected.")]
    reason: str
    since_us: int


class Silence(NamedTuple):
    """When a member last heard another whose heartbeat is late, and after how long a silence it will suspect it."""

    heard_us: int
    timeout_us: int
    """0 where that is not known."""

    def left_us(self, now_us: int) -> int | None:
        """Return in how long it will suspect the other one."""
        return max(0, self.heard_us + self.timeout_us - now_us) if self.timeout_us else None


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


class VerdictOn(Struct, frozen=True):
    """A master's finding about the cluster of `remote`, and since when the finding has not changed."""

    remote: Address
    decision: MergeDirection
    rule: str
    why: str
    since_us: int


class Obstacle(Struct, frozen=True):
    """Why a master is not merging: with the cluster of `remote`, or with any when that is null."""

    remote: Address | None
    reason: str
    cause: ObstacleCause
    silent: Annotated[tuple[Address, ...], Meta(description="Addresses at which nothing answers.")] = ()


class SearchPlan(NamedTuple):
    """When a master first looks for other clusters, and every how many microseconds it does so from then on."""

    first_us: int
    every_us: int

    def next_us(self, now_us: int) -> int:
        """When it looks next, seen from `now_us`."""
        if now_us <= self.first_us or self.every_us <= 0:
            return self.first_us
        return self.first_us + -((self.first_us - now_us) // self.every_us) * self.every_us


class BackupBehind(Struct, frozen=True):
    """A backup at this member that lacks writes of its owner."""

    partition: int
    owner: Address
    reason: str


class Unusable(NamedTuple):
    """Why a member looks for others at an address in vain, as a cause and in words."""

    cause: UnreachableCause
    reason: str


class WitnessConnection(NamedTuple):
    """How the witness of a member reaches it, why, and since when."""

    state: ConnectionState
    reason: str
    since_us: int


@dataclass(slots=True)
class MemberBelief:
    """The belief of one member in its present incarnation; the last belief, once that incarnation is over."""

    label: str
    address: Address
    uuid: str
    status: Status = "joining"
    version: int = 0
    """Version of the installed list; 0 before the first."""
    lineage: str = ""
    master: Address | None = None
    members: tuple[Member, ...] = ()
    suspicions: dict[Address, Suspected] = field(default_factory=dict)
    silences: dict[Address, Silence] = field(default_factory=dict)
    """Whose heartbeats it said to be late, as long as it does not suspect them yet."""
    ever_listed: frozenset[Address] = frozenset()
    """Every address that stood on one of this incarnation's lists."""
    claiming: bool = False
    started_us: int = 0
    """When this incarnation was first seen."""
    runs_since_us: int = 0
    """When its process was first seen: incarnations that ended in a merge ran in the same one."""
    seen_from_start: bool = False
    """Whether the beginning of this incarnation was seen."""
    list_since_us: int = 0
    lineage_since_us: int | None = None
    """Since when it follows its lineage; None where it did so already when it was first seen."""
    at: int = 0
    """Time of the latest event of this incarnation."""
    listed: frozenset[Address] = frozenset()
    """The addresses in `members`, for quick questions."""
    merged_from: str = ""
    """The uuid of the incarnation before, when that one ended in a merge."""
    settings: Mapping[str, str] | None = None
    """Its properties that are not the documented defaults, as text by name; None while they are not known. Always a new one."""
    join_list: tuple[Address, ...] = ()
    """Where it looks for its cluster, and for others."""
    join_list_edition: int = 0
    """How often the join list was edited while its cluster ran; 0 while it is as configured."""
    join_list_author: Address | None = None
    """The member that the present edition was handed to."""
    remembered: dict[Address, int] = field(default_factory=dict)
    """Where else it looks: addresses off its list that it remembers, and since when it does without them."""
    unusable: dict[Address, Unusable] = field(default_factory=dict)
    """Where it looks in vain, and not for silence, as it found last."""
    search: SearchPlan | None = None
    """On a master: when it looks for other clusters, as far as it has said so."""
    cluster_state: ClusterState = "ACTIVE"
    cluster_state_since_us: int = 0
    """Since when it is seen to be in this state."""
    operating: bool = True
    """Whether it sees enough members to serve clients."""
    needed: int = 0
    """How many members that takes; 0 as long as it was never said."""
    reports: dict[Address, tuple[Address, ...]] = field(default_factory=dict)
    """On a master: whom each slave reports to be out of its reach, until that is settled or withdrawn."""
    resolution: Resolved | None = None
    """The last partial disconnection that it settled as a master."""
    held_back: dict[Address, tuple[Address, ...]] = field(default_factory=dict)
    """On a master: who has to prove its links before it is let in again, and to whom they are missing as far as that is known."""
    delay: WaitsForLinks | None = None
    """Why it is not let in, while it waits for that."""
    verdicts: dict[Address, VerdictOn] = field(default_factory=dict)
    """On a master: its last finding about each other master that it met."""
    obstacles: dict[Address | None, Obstacle] = field(default_factory=dict)
    """On a master: why it is not merging, for each cluster that it met, the latest last; under None why it meets none."""
    merging: Address | None = None
    """On a master that leads its cluster into another one: the master of that."""
    table: TableBelief | None = None
    """Its partition table; None until it has one."""
    taking_part: dict[str, MigrationAccepted] = field(default_factory=dict)
    """The migrations, by id, that it takes part in and whose end it does not know."""
    journal_failure: str = ""
    """Why the journal of its process cannot be written; empty as long as it can."""
    out_of_step: dict[int, BackupBehind] = field(default_factory=dict)
    """By partition, its backups that lack writes of their owners."""
    data: MemberData | None = None
    """What it stores and what is asked of it; None until it reports, which it does when there is something. Always a new one."""
    leading: MigrationsLed = field(default_factory=MigrationsLed)
    """On a master: the migrations that it leads."""
    witnessed_by: tuple[Source, ...] = ()
    """Where all this is known from, if not from the member itself."""
    untold: frozenset[Aspect] = frozenset()
    """The aspects that no source reports; none for a member that keeps a journal of its own."""
    connection: WitnessConnection | None = None
    """How its witness reaches it; None where no client listens to it over the network."""
    state_stamp: int | None = None
    """Its own digest of its partition table, where a witness received it."""
    stamp_since_us: int = 0
    """Since when `state_stamp` has its present value."""
    metrics: MemberMeasured | None = None
    """The facts of its work and its process from its metrics, where a witness heard them."""
    metrics_us: int = 0
    """Since when they are much the same."""
    writer: object = field(default=None, compare=False, repr=False)
    """The one picture that may change this belief; for all others that show it, it is as good as frozen."""

    def fork(self, writer: object) -> MemberBelief:
        """Return the same belief for `writer` to change; the table is shared until it changes."""
        twin = copy(self)
        twin.writer = writer
        twin.suspicions, twin.silences = dict(self.suspicions), dict(self.silences)
        twin.reports, twin.held_back = dict(self.reports), dict(self.held_back)
        twin.verdicts, twin.obstacles = dict(self.verdicts), dict(self.obstacles)
        twin.taking_part, twin.out_of_step = dict(self.taking_part), dict(self.out_of_step)
        twin.remembered, twin.unusable = dict(self.remembered), dict(self.unusable)
        twin.leading = self.leading.fork()
        return twin

    def shows(self, aspect: Aspect) -> bool:
        """Whether `aspect` of this member is known. If not, show that it is not known: neither none nor well."""
        return aspect not in self.untold

    @property
    def search_addresses(self) -> tuple[Address, ...]:
        """Where it looks for clusters other than its own: its join list, then what it remembers; none that is on its list."""
        found = dict.fromkeys((*self.join_list, *self.remembered))
        return tuple(address for address in found if address not in self.listed and address != self.address)

    @property
    def not_merging(self) -> str:
        """The reason given last; empty without one."""
        return next((obstacle.reason for obstacle in reversed(self.obstacles.values())), "")

    @property
    def running(self) -> bool:
        """Whether the member takes part, as far as is known: it has joined, and is neither frozen nor gone nor out of reach."""
        return self.status == "member" and (self.connection is None or self.connection.state == "connected")

    @property
    def left_to_merge(self) -> bool:
        """Whether it has left its cluster to merge into another one, as it says itself."""
        return self.status == "joining" and self.merging is not None

    @property
    def reached(self) -> bool:
        """Whether the known belief is recent. The last belief of a member out of reach may be over."""
        return self.connection is None or self.connection.state == "connected"

    @property
    def is_master(self) -> bool:
        """Whether it leads or claims to, in its own belief."""
        return self.master is not None and self.master == self.address

    @property
    def leads(self) -> bool:
        """Whether it is master with full powers: of a list that it leads, not while its own mastership claim is running."""
        return self.is_master and not self.claiming and (not self.members or self.members[0].address == self.address)


Unsafety = Literal[
    "no-table", "several-masters", "recovering", "migrating", "draining", "out-of-step", "other-table",
    "replica-missing",
]  # fmt: skip
"""The conditions that the data of a cluster lacks to be safe."""

WORDS: dict[Unsafety, str] = {
    "recovering": "the latest table is being searched for",
    "migrating": "migrations are under way",
    "draining": "a member waits to leave",
    "out-of-step": "a backup does not have what its owner has",
}
"""The work of a member itself, for people."""


def unsafety_of(belief: MemberBelief) -> Unsafety | None:
    """Return the member's own work, the gravest first; None when its belief shows none of the kind."""
    leading = belief.leading
    if leading.recovering is not None:
        return "recovering"
    if leading.running or leading.waiting or belief.taking_part:
        return "migrating"
    if leading.draining:
        return "draining"
    return "out-of-step" if belief.out_of_step else None
