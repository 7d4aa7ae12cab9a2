"""An episode: an incident with all its consequences, in one line; and the search for the episode of a record."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Generic, Literal, TypeVar

from msgspec import Struct, field

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.causes import RecordId
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.picture.events.event_row import EpisodePart
from quarterdeck.backend.picture.network.fault_shapes import LinkRows
from quarterdeck.backend.picture.text.formatting import NameOf, duration_text, with_names

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
"""The number of kept records of frequent kinds."""


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
    """The episode's number, counted from 1, by which it is known."""
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
        """Add a record. Return whether it is kept. Later background records do not end the episode."""
        if part != "background" or not self.count:
            self.end_us = max(self.end_us, record.at)
        self.count += 1
        self.tellers[record.member] = None
        self.kinds.add(kind)
        if self.forgets or len(self.records) >= (MOST_FREQUENT if part == "frequent" else MOST_RECORDS):
            return False
        self.records.append(record)
        return True


MOST_EPISODES = 2_000
"""How many of the latest are remembered."""

MOST_RECORDS_KEPT = 50_000
"""How many records all episodes keep together; the oldest episodes drop theirs first."""

REMEMBERED = 20_000
"""For how many records, lists and migrations the episode is known."""

MOMENT_US = 1_000_000
"""Things that are done within this time of each other are one thing."""

START_US = 3_000_000
"""The same for starts of members, each of which takes a while."""

QUIET_US = 10_000_000
"""The length of a silence after which an episode of background work, such as calls of clients, is over."""

FORGIVEN_US = 60_000_000
"""A suspicion that led to nothing for this time has nothing to do with a new one."""

MOST_LETTERS = 60
"""A reason that is longer is put in fewer words."""

ListKey = tuple[str, int]
"""A list: its lineage and version."""


Key = TypeVar("Key")
Value = TypeVar("Value")


class BoundedMap(Generic[Key, Value]):
    """Knows at least the latest `size` entries that were put in, and at most twice as many."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._young: dict[Key, Value] = {}
        self._old: dict[Key, Value] = {}

    def __setitem__(self, key: Key, value: Value) -> None:
        if len(self._young) >= self._size:
            self._young, self._old = {}, self._young
        self._young[key] = value

    def get(self, key: Key) -> Value | None:
        """Return the value under `key`; None when no value was put in, or it is forgotten."""
        found = self._young.get(key)
        return found if found is not None else self._old.get(key)

    def pop(self, key: Key) -> Value | None:
        found, older = self._young.pop(key, None), self._old.pop(key, None)
        return found if found is not None else older


class OpenEpisodes:
    """All episodes that are remembered, oldest first, and the ways to find one."""

    def __init__(self, name_of: NameOf) -> None:
        self.episodes: deque[Episode] = deque()
        self.begun = 0
        """The number of episodes since the beginning."""
        self.latest: dict[EpisodeKind, Episode] = {}
        """The latest of each kind."""
        self.about: dict[str, list[Episode]] = {}
        """By member, the episodes that may still be going on and that befall it."""
        self.watching: dict[str, Episode] = {}
        """By member, the latest episode in which it missed or suspected another one."""
        self.arriving: dict[str, Episode] = {}
        """By member, the start or the merge with which it came."""
        self.claims: dict[str, Episode] = {}
        """By claimant, the episode of its latest claim."""
        self.witnessed: set[str] = set()
        """Incarnations of which a witness records."""
        self.incarnations: dict[str, str] = {}
        """By member, its latest incarnation."""
        self.touched: dict[str, Episode] = {}
        """By member, the episode that its latest record belongs to."""
        self.plans: dict[str, Episode] = {}
        """By incarnation, the episode of the migrations that it has planned as master."""
        self.work: dict[str, Episode] = {}
        """By incarnation, the episode for which it changes the partition table as master."""
        self.keyed: BoundedMap[tuple[object, ...], Episode] = BoundedMap(REMEMBERED)
        """Episodes of things that can be named: a list, a migration, a request, a pair of clusters."""
        self.members_of: BoundedMap[ListKey, frozenset[Address]] = BoundedMap(1_000)
        """Who is on a list."""
        self.list_of: dict[str, ListKey] = {}
        """By member, its latest list."""
        self._by_record: BoundedMap[tuple[str, int], Episode] = BoundedMap(REMEMBERED)
        self._labels: dict[Address, str] = {}
        self._name_of = name_of
        self._kept = 0
        self._stripped: deque[Episode] = deque()
        """The episodes that still have their records, oldest first."""

    # Names

    def call(self, address: Address, label: str) -> None:
        """Label the member at `address` from now on."""
        self._labels[address] = label

    def label_of(self, address: Address) -> str:
        return self._labels.get(address) or self._name_of(address)

    def evidence(self, event: events.SuspicionRaised | events.MemberRemoved) -> str:
        """Return why a member is suspected or removed, in the words of the record if they are few."""
        if len(event.reason) <= MOST_LETTERS:
            return self.words(event.reason)
        if event.cause == "unknown":
            return f"{self.words(event.reason)[: MOST_LETTERS - 1]}…"
        silence = f" for {duration_text(event.silence)}" if event.silence is not None else ""
        return f"{event.cause.replace('-', ' ')}{silence}"

    def words(self, text: str) -> str:
        """Return `text` with names in place of addresses."""
        return with_names(text, self.label_of)

    # Episodes

    def begin(self, kind: EpisodeKind, record: Record, subjects: Iterable[str] = (), note: str = "") -> Episode:
        self.begun += 1
        episode = Episode(
            self.begun, kind, record, record.at, record.utc, note, record.at, subjects=dict.fromkeys(subjects)
        )
        self.episodes.append(episode)
        self._stripped.append(episode)
        self.latest[kind] = episode
        for label in episode.subjects:
            self._concern(label, episode)
        if len(self.episodes) > MOST_EPISODES:
            gone = self.episodes.popleft()
            if gone is self._stripped[0]:
                self._strip_oldest()
        return episode

    def add_subject(self, episode: Episode, label: str) -> None:
        """Add `label` to the members that the episode befalls."""
        if label not in episode.subjects:
            episode.subjects[label] = None
            self._concern(label, episode)

    def recent(self, kind: EpisodeKind, record: Record, within_us: int) -> Episode | None:
        """Return the latest episode of this kind, if it has had a record within this time."""
        found = self.latest.get(kind)
        return found if found is not None and record.at - found.end_us <= within_us else None

    def named(self, record: Record, within_us: int, *key: object) -> Episode | None:
        """Return the episode of this name, if it has had a record within this time."""
        found = self.keyed.get(key)
        return found if found is not None and record.at - found.end_us <= within_us else None

    def named_or_begun(
        self, record: Record, within_us: int, key: tuple[object, ...], kind: EpisodeKind, note: str = ""
    ) -> Episode:
        """Return the episode of this name, or begin one."""
        episode = self.named(record, within_us, *key)
        if episode is None:
            episode = self.keyed[key] = self.begin(kind, record, note=note)
        return episode

    def of(self, record: Record | RecordId) -> Episode | None:
        """Return the episode that a record belongs to, as long as it is known; None for frequent kinds."""
        return self._by_record.get((record.uuid, record.seq))

    def cause_of(self, record: Record) -> Episode | None:
        """Return the episode of the record's named cause. A late heartbeat's consequences are another episode."""
        found = self.of(record.because) if record.because is not None else None
        return found if found is not None and found.kind != "late" else None

    def befalling(self, label: str, observer: str = "") -> Episode | None:
        """Return the latest episode that befalls `label`, and not `observer` too: a split is two episodes, one for each side."""
        for episode in reversed(self.about.get(label, ())):
            if observer not in episode.subjects or observer == label:
                return episode
        return None

    def forget(self, label: str) -> None:
        """Forget the earlier episodes of `label`: the member begins anew."""
        self.about.pop(label, None)
        self.watching.pop(label, None)

    def keep(self, episode: Episode, record: Record, kind: str, part: EpisodePart) -> None:
        if part != "frequent":
            self._by_record[record.uuid, record.seq] = episode
            self.touched[record.member] = episode
        self._kept += episode.add(record, kind, part)
        while self._kept > MOST_RECORDS_KEPT and len(self._stripped) > 1:
            self._strip_oldest()

    def _concern(self, label: str, episode: Episode) -> None:
        found = self.about.setdefault(label, [])
        found.append(episode)
        if len(found) > 4:  # both sides of a split, and the fault before
            del found[0]

    def _strip_oldest(self) -> None:
        episode = self._stripped.popleft()
        self._kept -= len(episode.records)
        episode.records.clear()
        episode.forgets = True


Rule = Callable[[OpenEpisodes, Record, Any], Episode | None]
"""Returns the episode that a record belongs to; None for that of its cause, or of the latest record of its member."""
