"""One cluster as the console follows it: its records, what they add up to, and the moment that is shown."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, NamedTuple

from quarterdeck.app.shown_clock import ShownClock
from quarterdeck.backend.clusters.cluster import Cluster
from quarterdeck.backend.clusters.follower import Follower
from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.properties import SECOND_US
from quarterdeck.backend.judgement.health.cluster_health import ClusterHealth
from quarterdeck.backend.judgement.judge import Judge
from quarterdeck.backend.picture.explain.episodes.episodes import Episodes
from quarterdeck.backend.picture.fold.picture import Picture
from quarterdeck.backend.picture.replay.tape import Playhead, ReorderBuffer, Tape

if TYPE_CHECKING:
    from quarterdeck.backend.clusters.invariant_monitor import InvariantMonitor, Violation
    from quarterdeck.backend.clusters.traffic import Traffic
    from quarterdeck.backend.judgement.observations.story import LogStory

STORM_POLLS = 5
"""Polls in a row with records from which on they are a storm, which need not be shown at each poll."""

EPISODE_RECORDS = 20_000
"""Records before a moment of the past that its episodes are folded from."""

RECORDS_A_TICK = 4_000
"""Records folded at once; the rest of a burst waits for the next tick, so that keys are answered in time."""

RECENT = 10_000
"""Records that a screen begins with when it is opened late."""

JUDGED_ALWAYS = 50
"""With more members the health of the cluster is judged, and members are put in order, once a second at most."""

FOLLOWED_ALWAYS = 30
"""In a cluster of more members a detail is updated once a second at most."""

TAPE_CAPACITY = 60_000
"""Records of a running cluster that the operator can go back through; the journal has all of them."""

RECORDED_TAPE_CAPACITY = 1_000_000
"""The same for a recorded run, which is opened for nothing else."""


class _PastEpisodes(NamedTuple):
    """Episodes up to a moment of an epoch."""

    episodes: Episodes
    epoch: int
    shown_us: int


class ConsoleSession:
    """Follows one cluster. Screens ask it again each time they paint."""

    def __init__(
        self,
        cluster: Cluster,
        starting: Future[None] | None = None,
        *,
        owned: bool = False,
        past: Tape | None = None,
        is_copy: bool = False,
    ) -> None:
        """Follow `cluster`. `starting` is done when it has started its members. An `owned` cluster is closed with its session.

        `past` is what happened before, to a cluster that goes on from a moment of another one, of which it `is_copy`.
        """
        self.is_copy = is_copy
        self.cluster = cluster
        self.starting = starting
        self.owned = owned
        self.clock = ShownClock(cluster.source)
        self.tape = past or Tape(RECORDED_TAPE_CAPACITY if cluster.source == "recorded" else TAPE_CAPACITY)
        self.playhead = Playhead(self.tape)
        self.arrived: Sequence[Record] = ()
        """The records that the last `poll` folded, whatever moment is shown."""
        self._busy_polls = 0
        """How many times in a row `poll` has found records."""
        self._reported_us, self._reported_epoch = self.playhead.shown_us, self.playhead.jumps
        """Up to when the last `poll` has returned records, and in which epoch."""
        self._follower = Follower(cluster, self.tape.picture_at(self.tape.end_us).copy())
        self._invariant_monitor: InvariantMonitor | None = None
        self._order = ReorderBuffer(RECENT)
        self._episodes = Episodes(self._follower.picture.label_of)
        self._episodes.extend(self.tape.last(EPISODE_RECORDS))
        self._past: _PastEpisodes | None = None
        self._health: tuple[object, ClusterHealth] | None = None
        self._ordered: tuple[object, tuple[str, ...]] | None = None
        self.traffic: Traffic | None = None
        """The last load that was started here."""
        self.load_ended: Traffic | None = None
        """The load that was found to be over by the last `poll`."""

    @property
    def episodes(self) -> Episodes:
        """The episodes up to the moment that is shown. Each call may return another object."""
        if self.live:
            return self._episodes
        if self._past is None or self._past.epoch != self.epoch:
            shown_us = self.playhead.shown_us if self._reported_epoch != self.epoch else self._reported_us
            self._past = _PastEpisodes(Episodes(self._follower.picture.label_of), self.epoch, shown_us)
            self._past.episodes.extend(self.tape.last(EPISODE_RECORDS, shown_us))
        return self._past.episodes

    @property
    def picture(self) -> Picture:
        """The picture that is shown. Each call may return another object."""
        return self._follower.picture if self.playhead.live else self.tape.picture_at(self.playhead.shown_us)

    @property
    def health(self) -> ClusterHealth:
        """Whether the cluster that is shown is whole, and its data safe."""
        judge = self.judge
        news = judge.picture.at if len(judge.picture.members) <= JUDGED_ALWAYS else 0
        subject = (self.epoch, judge.now_us // SECOND_US, news, judge.watcher)
        if self._health is None or self._health[0] != subject:
            self._health = subject, judge.health
        return self._health[1]

    @property
    def judge(self) -> Judge:
        """The judge of what is shown: the same one until a record comes, or a second has passed."""
        if self.live:
            return self._follower.judge(self.epoch)
        picture = self.picture
        return self._follower.judge_of_past(picture, self.now_us(), (self.epoch, picture.at))

    @property
    def story(self) -> LogStory | None:
        """What is observed of members of Hazelcast; None of members that keep journals of their own."""
        return self._follower.story

    @property
    def detail_beat(self) -> tuple[int, int, int]:
        """Changes whenever a detail of what is shown is to be made again."""
        picture = self.picture
        news = picture.at if len(picture.members) <= FOLLOWED_ALWAYS else 0
        return self.epoch, self.now_us() // SECOND_US, news

    @property
    def running(self) -> int:
        """The number of members that run at present."""
        return sum(belief.running for belief in self._follower.picture.members.values())

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels of all members by age, the order of all tables."""
        labels = tuple(self.cluster.labels)
        if len(labels) <= JUDGED_ALWAYS:
            return self.judge.agreement.by_age(labels)
        subject = (self.epoch, self.now_us() // SECOND_US, len(self.picture.members), labels)
        if self._ordered is None or self._ordered[0] != subject:
            self._ordered = subject, self.judge.agreement.by_age(labels)
        return self._ordered[1]

    @property
    def live(self) -> bool:
        """Whether the present is shown."""
        return self.playhead.live

    @property
    def in_storm(self) -> bool:
        """Whether the present is shown and records have been arriving without a pause."""
        return self.live and self._busy_polls > STORM_POLLS

    @property
    def epoch(self) -> int:
        """A number that changes when what was shown before is not the past of what is shown now."""
        return self.playhead.jumps

    @property
    def recent(self) -> Sequence[Record]:
        """The latest records up to the moment that is shown, oldest first."""
        return self.tape.last(RECENT, None if self.live else self.playhead.shown_us)

    @property
    def violations(self) -> Sequence[Violation]:
        """The broken invariants found while following, the first found first."""
        return () if self._invariant_monitor is None else self._invariant_monitor.violations

    @property
    def monitored(self) -> bool:
        """Whether the invariants are watched.

        They are not for members that run elsewhere, whose events may arrive too late or in part, nor for a copy, whose past
        may be known in part only: that can look like a violation.
        """
        return self.cluster.source not in ("remote", "hazelcast", "copy")

    def accept_size(self, expected_members: int | None) -> None:
        """Judge the cluster by a size that the operator accepts, whatever its records say; None for what they say."""
        self._follower.expected_members = expected_members

    def label_of(self, address: Address) -> str:
        """Return the label of the member at `address`, in the picture that is shown."""
        return self.picture.label_of(address)

    def now_us(self) -> int:
        """Return the moment that is shown, on the run's clock."""
        return self.cluster.now_us() if self.playhead.live else self.playhead.shown_us

    def poll(self) -> Sequence[Record]:
        """Fold the records since the last call, or as many as one tick allows, and let the playhead move on.

        Returns:
            The records that are shown now and were not before.
        """
        self._step_load()
        self.arrived = fresh = self._follower.follow(RECORDS_A_TICK)
        self._busy_polls = self._busy_polls + 1 if fresh else 0
        if fresh:
            self.clock.learn(fresh[-1])
        self.tape.append(fresh, self._follower.picture)
        self._order.take(fresh)
        self._episodes.extend(self._order.release())
        if self.monitored and (self._invariant_monitor or fresh or self.cluster.source == "recorded"):
            self._invariant_monitor = self._invariant_monitor or self._new_invariant_monitor()
            self._invariant_monitor.take(fresh, self.cluster.now_us())
            if not fresh and self.cluster.source == "recorded":  # read to its end
                self._invariant_monitor.finish()
        was_live, jumped = self.playhead.live, self.playhead.jumps != self._reported_epoch
        before_us = self.playhead.shown_us if jumped else self._reported_us
        self.playhead.tick(time.monotonic_ns() // 1_000, self.cluster.now_us())
        self._reported_us, self._reported_epoch = self.playhead.shown_us, self.playhead.jumps
        if was_live and self.playhead.live:
            return fresh
        shown = self.tape.records(before_us + 1, self._reported_us)
        self._play_episodes(shown, before_us)
        return shown

    def _step_load(self) -> None:
        self.load_ended = None
        if self.traffic is not None and not self.traffic.over:
            members = self._follower.picture.members.items()
            running = [label for label, belief in members if belief.running]
            self.traffic.step(self.cluster.now_us(), running)
            self.load_ended = self.traffic if self.traffic.over else None

    def _play_episodes(self, shown: Sequence[Record], before_us: int) -> None:
        past = self._past
        if self.live or past is None or past.epoch != self.epoch or past.shown_us != before_us:
            self._past = None
        else:
            past.episodes.extend(shown)
            self._past = past._replace(shown_us=self._reported_us)

    def _new_invariant_monitor(self) -> InvariantMonitor:
        # Imported with the first records: the first picture is painted sooner without the invariants.
        from quarterdeck.backend.clusters.invariant_monitor import HOLD_US, InvariantMonitor

        return InvariantMonitor(0 if self.cluster.source == "simulated" else HOLD_US)

    def close(self) -> None:
        """Close the cluster if this session owns it, and wait until that is done."""
        if self.owned:
            self.cluster.close()
