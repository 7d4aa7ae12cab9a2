"""Failure detectors: is a member alive, judged by the heartbeats that came from it (Hazelcast: failure detectors).

One detector watches one member. Its start counts as a heartbeat for the silence that follows, so that a member that never
sends one is suspected too.
"""

from __future__ import annotations

from math import exp, log, log1p, sqrt

from msgspec import Struct

from quarterdeck.backend.core.causes import RecordId
from quarterdeck.backend.core.properties import Settings

INTERVALS_MISSED = 3
"""A heartbeat is late after so many intervals at the earliest, however short the timeout is: a single lost one does
not matter.
"""


class DeadlineDetector(Struct, gc=False, tag="deadline"):
    """Alive as long as the last heartbeat is not older than the timeout."""

    last_heard_us: int
    timeout_us: int

    def heard(self, now: int) -> None:
        self.last_heard_us = now

    def restart(self, now: int) -> None:
        """Begin anew: the observer itself stood still, so the silence until now says nothing about the member."""
        self.last_heard_us = now

    def adopt(self, settings: Settings) -> None:
        self.timeout_us = settings.max_no_heartbeat_us

    def alive(self, now: int) -> bool:
        """Whether the member need not be suspected yet."""
        return self.last_heard_us + self.timeout_us > now

    def silence_us(self, now: int) -> int:
        return now - self.last_heard_us

    def silent_from_us(self) -> int:
        """When at the earliest the member may have to be suspected if nothing more is heard; 0 when that is not known."""
        return self.last_heard_us + self.timeout_us


class PhiAccrualDetector(Struct, gc=False, tag="phi-accrual"):
    """Alive as long as the silence is not too unlikely, given the intervals between the last heartbeats.

    The level is phi: -log10 of the probability that a living member stays silent for so long, if the intervals are
    distributed normally and a pause of `hazelcast.max.no.heartbeat.seconds` is acceptable on top. The history starts
    with two intervals around the configured one, so that the first heartbeats do not count for too much.
    """

    last_heard_us: int
    threshold: float
    pause_us: int
    least_deviation_us: int
    sample_size: int
    intervals_us: list[int]
    sum_us: int
    square_sum: int
    oldest: int = 0
    """Place in the ring that is overwritten next, once it is full."""
    beaten: bool = False
    """Whether `last_heard_us` is the time of a heartbeat: only between two of them lies an interval."""

    @classmethod
    def of(cls, now: int, settings: Settings) -> PhiAccrualDetector:
        quarter = settings.heartbeat_interval_us // 4
        intervals_us = [settings.heartbeat_interval_us - quarter, settings.heartbeat_interval_us + quarter]
        return cls(
            last_heard_us=now,
            threshold=settings.phi_threshold,
            pause_us=settings.max_no_heartbeat_us,
            least_deviation_us=settings.phi_min_std_dev_us,
            sample_size=settings.phi_sample_size,
            intervals_us=intervals_us,
            sum_us=sum(intervals_us),
            square_sum=sum(interval * interval for interval in intervals_us),
        )

    def heard(self, now: int) -> None:
        # A silence for which the member was already suspected must not teach that such silences are normal. (The
        # product means to skip it too, but asks after it has moved the stamp.)
        if self.beaten and self.alive(now):
            self._learn(now - self.last_heard_us)
        self.beaten = True
        self.last_heard_us = now

    def restart(self, now: int) -> None:
        self.beaten = False
        self.last_heard_us = now

    def adopt(self, settings: Settings) -> None:
        self.pause_us = settings.max_no_heartbeat_us

    def alive(self, now: int) -> bool:
        return self.level(now) < self.threshold

    def silence_us(self, now: int) -> int:
        return now - self.last_heard_us

    def silent_from_us(self) -> int:
        """Return 0: it is not known when the silence will be too unlikely."""
        return 0

    def level(self, now: int) -> float:
        """How unlikely the present silence is, as the accrual detector counts it."""
        count = len(self.intervals_us)
        expected_us = self.sum_us / count + self.pause_us
        # Sums of whole numbers are exact, so the variance neither drifts nor turns negative.
        deviation_us = sqrt(count * self.square_sum - self.sum_us * self.sum_us) / count
        y = (now - self.last_heard_us - expected_us) / max(deviation_us, self.least_deviation_us)
        # The tail of the normal distribution in its logistic approximation is 1 / (1 + exp(odds)). The exponential is
        # taken of what is negative only, so that no silence is too long for it.
        odds = y * (1.5976 + 0.070566 * y * y)
        return (max(odds, 0.0) + log1p(exp(-abs(odds)))) / LOG_10

    def _learn(self, interval_us: int) -> None:
        """Put one interval into the ring and update the running sums: as quick for a long history as for a short one."""
        self.sum_us += interval_us
        self.square_sum += interval_us * interval_us
        if len(self.intervals_us) < self.sample_size:
            self.intervals_us.append(interval_us)
            return
        forgotten_us = self.intervals_us[self.oldest]
        self.sum_us -= forgotten_us
        self.square_sum -= forgotten_us * forgotten_us
        self.intervals_us[self.oldest] = interval_us
        self.oldest = (self.oldest + 1) % self.sample_size


LOG_10 = log(10)

FailureDetector = DeadlineDetector | PhiAccrualDetector
"""Either kind. All times are microseconds on the run's clock and never go back."""


class Peer(Struct, gc=False):
    """Another member of the list: its incarnation, and what came from it.

    A cluster of a thousand simulated members has a million of them, which the garbage collector need not look through.
    """

    uuid: str
    detector: FailureDetector
    confirmed_us: int
    """When it last confirmed that it follows this master (chapter `master_confirmation`)."""
    version: int = 0
    """While it is behind this master: the version of its list, and since when (chapter `publishing`)."""
    behind_since_us: int = 0
    faults: int = 0
    """Connection faults in a row (chapter `connection_loss`)."""
    late: bool = False
    """Whether its heartbeat was recorded as late (chapter `silence`)."""
    lateness: RecordId | None = None
    """The record of that."""


def detector(settings: Settings, now: int) -> FailureDetector:
    """Make a detector of the kind that `settings` ask for."""
    if settings.failure_detector == "phi-accrual":
        return PhiAccrualDetector.of(now, settings)
    return DeadlineDetector(now, settings.max_no_heartbeat_us)


def pause_us(settings: Settings) -> int:
    """Return the time between two rounds of heartbeats after which a member knows that it has stood still."""
    return settings.heartbeat_interval_us + settings.max_no_heartbeat_us // 2


def late_after_us(settings: Settings) -> int:
    """Return the silence after which a member is late: half of what makes it a suspect, and never more than all of that."""
    half_us = settings.max_no_heartbeat_us // 2
    return min(max(half_us, INTERVALS_MISSED * settings.heartbeat_interval_us), settings.max_no_heartbeat_us)
