"""Members that keep no journal: what somebody outside can know of them, as events of the union in `backend.core.events`.

Members of Hazelcast are such. A console that listens to them, or reads their logs, writes one for them, and says with
`MemberWitnessed` which aspects of a member it can know. Everything else of that member is *not told*: neither none nor well.
"""

from __future__ import annotations

from typing import Literal, get_args

from msgspec import Struct

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.partitions.events import Holder

Aspect = Literal[
    "heartbeats",
    "suspicions",
    "claims",
    "merge-verdicts",
    "owners",
    "backups",
    "table-version",
    "migration-queue",
    "migration-ends",
    "losses",
    "join-list",
    "cluster-state",
    "settings",
    "links",
    "data",
]
"""A part of what a member knows and does. The member list is told of every member."""

ASPECTS: frozenset[Aspect] = frozenset(get_args(Aspect))

Source = Literal["logs", "client-protocol"]
"""Where a witness has it from: what the member logs, or what it tells its clients."""

ConnectionState = Literal["connected", "merging", "silent", "refused", "gone"]
"""How the witness reaches a member: it answers; it says that it is not ready yet, as members that merge do; it says nothing
although the connection stands; it turns the witness away; nobody is there."""


class MemberWitnessed(Struct, frozen=True, tag_field="kind", tag="member-witnessed"):
    """From here on a witness tells of this incarnation, by these `sources`, and only of the aspects in `tells`.

    It is the first event of an incarnation, and comes again when the aspects become more or fewer.
    """

    sources: tuple[Source, ...]
    tells: tuple[Aspect, ...]


class OwnersTold(Struct, frozen=True, tag_field="kind", tag="owners-told"):
    """Who owns which partition, as this member tells its clients; of backups and versions nothing is told.

    `owners` has for every partition the place of its owner in `holders`, -1 for nobody. Tables are compared by `digest`, which
    the witness makes of the owners, and by `state_stamp`, the member's own digest of its whole table, where it was told.
    """

    holders: tuple[Holder, ...]
    owners: tuple[int, ...]
    digest: str
    state_stamp: int | None = None


class ReplicaMigrated(Struct, frozen=True, tag_field="kind", tag="replica-migrated"):
    """A replica has moved, or was to; its beginning was told to nobody. `took` is in microseconds.

    `planned_count` and `done_count` are of the migrations of the round that it belongs to.
    """

    partition: int
    index: int
    source: Address | None
    destination: Address | None
    succeeded: bool
    took: int
    planned_count: int
    done_count: int


class ConnectionChanged(Struct, frozen=True, tag_field="kind", tag="connection-changed"):
    """How the witness reaches the member from now on, and why."""

    state: ConnectionState
    reason: str = ""


WitnessEvent = MemberWitnessed | OwnersTold | ReplicaMigrated | ConnectionChanged
