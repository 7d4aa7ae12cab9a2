"""An episode: something that happened, with all that came of it, as one line would report it."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.picture.events.event_row import EpisodePart
from quarterdeck.backend.picture.network.fault_shapes import LinkRows

EpisodeKind = Literal[
    "start", "watch", "join", "stop", "kill", "pause", "resume", "late", "suspicion", "disconnection", "links",
    "merge", "not-merging", "state", "table", "calls", "backups", "join-list", "settings", "request", "refusal",
    "connection", "other",
]  # fmt: skip
"""What an episode began with. ``watch``: a witness begins to observe members that keep no journal; ``connection``: how
the witness reaches them. ``late`` are heartbeats that are missed; a ``suspicion`` goes on to a removal or to a claim of
mastership; ``table`` are migrations that are a matter of their own."""

MOST_RECORDS = 1_000
"""Records that an episode keeps, to be unfolded."""

MOST_FREQUENT = 500
"""Of those that come by the thousand, so many."""


class MigrationProgress(Struct):
    """Migrations of an episode."""

    planned: int = 0
    begun: int = 0
    committed: int = 0
    rolled_back: int = 0
    bytes: int = 0
    from_us: int | None = None
    to_us: int = 0

    @property
    def running(self) -> int:
        """Begun, and without an end so far."""
        return self.begun - self.committed - self.rolled_back


class Episode(Struct, eq=False):
    """What happened, from its first record on. It changes for as long as more comes of it; `count` grows with each change.

    Names are labels, in the order in which they came.
    """

    number: int
    """Counts from 1; what it is known by."""
    kind: EpisodeKind
    first: Record
    """The record that it began with."""
    at_us: int
    utc_us: int
    note: str = ""
    """Further words, where the kind does not say enough."""
    end_us: int = 0
    count: int = 0
    """Records that belong to it."""
    records: list[Record] = []
    """The first of them, decisions before all others; see `MOST_RECORDS`."""
    forgets: bool = False
    """Whether its records were dropped."""
    tellers: dict[str, None] = {}
    """Labels of the members that recorded them."""
    kinds: set[str] = set()
    """Kinds of these events."""
    subjects: dict[str, None] = {}
    """The members that it befalls."""

    # What came of it
    observers: dict[str, int] = {}
    """The members that suspect any of the subjects, and since when."""
    late_at: dict[str, int] = {}
    """The members that miss heartbeats of any of the subjects, and since when."""
    trusted_by: dict[str, None] = {}
    """The members that have heard any of them again."""
    evidence: str = ""
    """The first reason for a suspicion or a removal."""
    remover: str = ""
    removed: dict[str, int] = {}
    """The members that the remover took off its list, and when."""
    claimant: str = ""
    claim_ended: Literal["", "leads", "abandoned"] = ""
    lists: dict[str, tuple[int, int]] = {}
    """By master, the version and the size of the latest list that came of it."""
    arrived: dict[str, None] = {}
    """The members that were admitted."""
    held_back: dict[str, None] = {}
    target: str = ""
    """The winner of a merge; the wanted state of the cluster; the condition of links; the author of a join list."""
    failure: str = ""
    """Why it failed."""
    progress: MigrationProgress = field(default_factory=MigrationProgress)
    lost: int = 0
    """Partitions of which no replica is left."""
    promoted: int = 0
    """Partitions that lost their owner, and have a backup in its place."""
    out_of_step: set[int] = set()
    """Partitions with a backup that is not as its owner."""
    in_step: int = 0
    refusing: dict[str, None] = {}
    """The members that refuse operations because they see too few others."""
    calls: int = 0
    failed_calls: int = 0
    offered: int = 0
    taken: int = 0
    """Entries that were brought into a merge, and those of them that were taken over."""
    links: LinkRows = {}
    places: dict[str, int] = {}
    """The members at the ends of the links, by their bit in the rows."""
    again: bool = False
    """Whether the members that start had run before."""
    since_us: int | None = None
    """When the state began that this episode ends."""

    def add(self, record: Record, kind: str, part: EpisodePart) -> bool:
        """Add a record. Return whether it is kept. What comes in the background, at any time later, is not its end."""
        if part != "background" or not self.count:
            self.end_us = max(self.end_us, record.at)
        self.count += 1
        self.tellers[record.member] = None
        self.kinds.add(kind)
        if self.forgets or len(self.records) >= (MOST_FREQUENT if part == "frequent" else MOST_RECORDS):
            return False
        self.records.append(record)
        return True
