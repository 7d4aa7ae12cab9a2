"""The episodes of a run, and what finds the one that a record belongs to."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.causes import RecordId
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.membership import events
from quarterdeck.backend.picture.events.event_row import EpisodePart
from quarterdeck.backend.picture.explain.episodes.episode import Episode, EpisodeKind
from quarterdeck.backend.picture.text.formatting import NameOf, duration_text, with_names

MOST_EPISODES = 2_000
"""How many of the latest are remembered."""

MOST_RECORDS = 50_000
"""How many records all episodes keep together; the oldest episodes drop theirs first."""

REMEMBERED = 20_000
"""For how many records, lists and migrations the episode is known."""

MOMENT_US = 1_000_000
"""Things that are done within this time of each other are one thing."""

START_US = 3_000_000
"""The same for starts of members, each of which takes a while."""

QUIET_US = 10_000_000
"""An episode of what goes on by itself, such as calls of clients, is over after a silence of this length."""

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
        """Return what was put in under `key`; None when nothing was, or when it is forgotten."""
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
        """How many episodes there were since the beginning."""
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
        """Those that still have their records, oldest first."""

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
            self._let_go(self.episodes.popleft())
        return episode

    def add_subject(self, episode: Episode, label: str) -> None:
        """Add `label` to the members that the episode befalls."""
        if label not in episode.subjects:
            episode.subjects[label] = None
            self._concern(label, episode)

    def recent(self, kind: EpisodeKind, record: Record, within_us: int) -> Episode | None:
        """Return the latest episode of this kind, if it has had a record within so much time."""
        found = self.latest.get(kind)
        return found if found is not None and record.at - found.end_us <= within_us else None

    def named(self, record: Record, within_us: int, *key: object) -> Episode | None:
        """Return the episode of what is named so, if it has had a record within so much time."""
        found = self.keyed.get(key)
        return found if found is not None and record.at - found.end_us <= within_us else None

    def named_or_begun(
        self, record: Record, within_us: int, key: tuple[object, ...], kind: EpisodeKind, note: str = ""
    ) -> Episode:
        """Return the episode of what is named so, or begin one."""
        episode = self.named(record, within_us, *key)
        if episode is None:
            episode = self.keyed[key] = self.begin(kind, record, note=note)
        return episode

    def of(self, record: Record | RecordId) -> Episode | None:
        """Return the episode that a record belongs to, as long as that is known; None for what comes by the thousand."""
        return self._by_record.get((record.uuid, record.seq))

    def cause_of(self, record: Record) -> Episode | None:
        """Return the episode of the record that this one names as its cause. What comes of a late heartbeat is another one."""
        found = self.of(record.because) if record.because is not None else None
        return found if found is not None and found.kind != "late" else None

    def befalling(self, label: str, observer: str = "") -> Episode | None:
        """Return the latest episode that befalls `label`, and not `observer` too: a split is two episodes, one for each side."""
        for episode in reversed(self.about.get(label, ())):
            if observer not in episode.subjects or observer == label:
                return episode
        return None

    def forget(self, label: str) -> None:
        """Forget what befell `label` so far: it begins anew."""
        self.about.pop(label, None)
        self.watching.pop(label, None)

    def keep(self, episode: Episode, record: Record, kind: str, part: EpisodePart) -> None:
        if part != "frequent":
            self._by_record[record.uuid, record.seq] = episode
            self.touched[record.member] = episode
        self._kept += episode.add(record, kind, part)
        while self._kept > MOST_RECORDS and len(self._stripped) > 1:
            self._strip(self._stripped.popleft())

    def _concern(self, label: str, episode: Episode) -> None:
        found = self.about.setdefault(label, [])
        found.append(episode)
        if len(found) > 4:  # both sides of a split, and the fault before
            del found[0]

    def _strip(self, episode: Episode) -> None:
        self._kept -= len(episode.records)
        episode.records.clear()
        episode.forgets = True

    def _let_go(self, episode: Episode) -> None:
        if self._stripped and self._stripped[0] is episode:
            self._strip(self._stripped.popleft())


Rule = Callable[[OpenEpisodes, Record, Any], Episode | None]
"""Returns the episode that a record belongs to; None for that of its cause, or of the latest record of its member."""
