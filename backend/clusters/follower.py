"""The follower of a cluster: takes its records, folds them, observes and judges, for the console and for every command.

It is the one way from a cluster to what is known of it. Each moment is judged once, however many surfaces ask.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Literal

from msgspec.structs import replace

from quarterdeck.backend.clusters.cluster import Cluster, ClusterWithStory, ConnectionStatusSource, watcher_of
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.judgement.health.copy_counts import CopyCounts
from quarterdeck.backend.judgement.judge import Judge
from quarterdeck.backend.judgement.watcher import Watcher, recorded_watcher, watched_since
from quarterdeck.backend.picture.fold.picture import Picture

if TYPE_CHECKING:
    from quarterdeck.backend.judgement.observations.story import LogStory, RecordObservers

OBSERVED: dict[str, Literal["recording", "live"]] = {"hazelcast": "live", "recorded": "recording"}
"""The sources of records in which something is observed, and whether what lasts to the end of these goes on."""


class Follower:
    """Follows one cluster. For one thread."""

    def __init__(self, cluster: Cluster, picture: Picture | None = None, expected_members: int | None = None) -> None:
        """Follow `cluster` on from `picture`, by default from the beginning.

        `expected_members` is the size of the cluster that the operator has accepted.
        """
        self.cluster, self.expected_members = cluster, expected_members
        self.picture = Picture() if picture is None else picture
        """What the members believe after the records that were folded. Each call of `follow` changes it."""
        self._backlog: deque[Record] = deque()
        self._observers = _observers_of(cluster)
        self._copy_counts = CopyCounts()
        self._judged: tuple[object, Judge] | None = None
        self._watched: tuple[object, Watcher] | None = None
        self._folded = 0
        """How many records were folded."""

    def follow(self, most: int | None = None) -> list[Record]:
        """Fold the records that came since the last call, or `most` of them, and return these."""
        self._backlog.extend(self.cluster.drain())
        count = len(self._backlog) if most is None else min(most, len(self._backlog))
        fresh = [self._backlog.popleft() for _ in range(count)]
        self.fold(fresh)
        return fresh

    def fold(self, records: Iterable[Record]) -> None:
        """Fold `records`, which the cluster gave in another way."""
        apply, observers = self.picture.apply, self._observers
        for record in records:
            self._folded += 1
            apply(record)
            if observers is not None:
                observers.add(record)

    @property
    def story(self) -> LogStory | None:
        """What is observed of members of Hazelcast; None of members that keep journals of their own."""
        if isinstance(self.cluster, ClusterWithStory):
            return self.cluster.story
        return None if self._observers is None else self._observers.story(self.cluster.now_us(), self.judge().losses)

    @property
    def watcher(self) -> Watcher:
        """What is known of the watching at this moment: the same object until that changes."""
        if isinstance(self.cluster, ConnectionStatusSource):
            status = self.cluster.connection_status()
            since_us, expected = watched_since(self.picture), self.picture.expected_members
            return self._watching((status, since_us, expected), lambda: watcher_of(status, since_us, expected))
        return self._watching(self._folded, lambda: recorded_watcher(self.picture))

    def _watching(self, known: object, watcher_now: Callable[[], Watcher]) -> Watcher:
        known = known, self.expected_members
        if self._watched is None or self._watched[0] != known:
            watcher = watcher_now()
            if self.expected_members is not None:
                watcher = replace(watcher, expected_members=self.expected_members)
            self._watched = known, watcher
        return self._watched[1]

    def judge(self, epoch: object = None) -> Judge:
        """Return the judge of the cluster as it is now: the same one until a record comes, or a second has passed."""
        return self._judge(self.picture, self.watcher, self.cluster.now_us(), (epoch, self._folded))

    def judge_of_past(self, picture: Picture, now_us: int, moment: object) -> Judge:
        """Return the judge of a `picture` of the cluster's past, which changes with the `moment`."""
        return self._judge(picture, self._watching(moment, lambda: recorded_watcher(picture)), now_us, moment)

    def _judge(self, picture: Picture, watcher: Watcher, now_us: int, moment: object) -> Judge:
        subject = (moment, now_us // SECOND_US, watcher)
        if self._judged is None or self._judged[0] != subject:
            self._judged = subject, Judge(picture, watcher, now_us, self._copy_counts)
        return self._judged[1]


def _observers_of(cluster: Cluster) -> RecordObservers | None:
    ends = OBSERVED.get(cluster.source)
    if ends is None or isinstance(cluster, ClusterWithStory):
        return None
    # Imported where it is needed: the members of most consoles keep journals of their own.
    from quarterdeck.backend.judgement.observations.story import RecordObservers

    return RecordObservers(cluster.name, ends)
