"""Failure detectors: is a member alive, judged by the heartbeats that came from it (behaviour 3.6).

One detector watches one member. Its birth counts like a heartbeat for the silence that follows, so that a member that never
sends one is found out too.
"""

from __future__ import annotations

from math import exp, log, log1p, sqrt
from typing import Protocol

from quarterdeck.backend.core.properties import Settings

INTERVALS_MISSED = 3
"""A heartbeat is not late before so many intervals, however short the timeout is: one that got lost is no reason to talk."""


class FailureDetector(Protocol):
    """What the chapters need of a detector. All times are microseconds on the run's clock and never go back."""

    last_heard_us: int

    def heard(self, now: int) -> None:
        """A heartbeat came."""

    def restart(self, now: int) -> None:
        """The observer itself stood still: the silence until now says nothing of the member."""

    def adopt(self, settings: Settings) -> None:
        """Judge by the times of these settings from now on."""

    def alive(self, now: int) -> bool:
        """Whether the member need not be suspected yet."""

    def silence_us(self, now: int) -> int:
        """How long nothing was heard."""

    def silent_from_us(self) -> int:
        """When at the earliest the member may have to be suspected if nothing more is heard; 0 when that is not known."""


class Peer:
    """Another member of the list: its incarnation, and what came from it."""

    __slots__ = ("behind_since_us", "confirmed_us", "detector", "faults", "late", "uuid", "version")

    def __init__(self, uuid: str, detector: FailureDetector, now: int) -> None:
        self.uuid = uuid
        self.detector = detector
        self.confirmed_us = now
        """When it last confirmed that it follows this master (chapter `master_confirmation`)."""
        self.version = 0
        """While it is behind this master: the version of its list, and since when (chapter `publishing`)."""
        self.behind_since_us = 0
        self.faults = 0
        """Connection faults in a row (chapter `connection_loss`)."""
        self.late = False
        """Whether its heartbeat was said to be late (chapter `heartbeat_lateness`)."""


def detector(settings: Settings, now: int) -> FailureDetector:
    """A new detector of the kind that `settings` ask for."""
    if settings.failure_detector == "phi-accrual":
        return PhiAccrualDetector(now, settings)
    return DeadlineDetector(now, settings.max_no_heartbeat_us)


def late_after_us(settings: Settings) -> int:
    """The silence for which a member is said to be late: half of what makes it a suspect. Never more than all of that."""
    half_us = settings.max_no_heartbeat_us // 2
    return min(max(half_us, INTERVALS_MISSED * settings.heartbeat_interval_us), settings.max_no_heartbeat_us)


class DeadlineDetector:
    """Alive as long as the last heartbeat is not older than the timeout."""

    __slots__ = ("last_heard_us", "timeout_us")

    def __init__(self, now: int, timeout_us: int) -> None:
        self.last_heard_us = now
        self.timeout_us = timeout_us

    def heard(self, now: int) -> None:
        self.last_heard_us = now

    def restart(self, now: int) -> None:
        self.last_heard_us = now

    def adopt(self, settings: Settings) -> None:
        self.timeout_us = settings.max_no_heartbeat_us

    def alive(self, now: int) -> bool:
        return self.last_heard_us + self.timeout_us > now

    def silence_us(self, now: int) -> int:
        return now - self.last_heard_us

    def silent_from_us(self) -> int:
        return self.last_heard_us + self.timeout_us


class PhiAccrualDetector:
    """Alive as long as the silence is not too unlikely, given the intervals between the last heartbeats.

    The level is phi: -log10 of the probability that a living member stays silent for so long, if the intervals are
    distributed normally and a pause of `hazelcast.max.no.heartbeat.seconds` is acceptable on top. The history starts
    with two intervals around the configured one, so that the first heartbeats do not count for too much.
    """

    __slots__ = (
        "_beaten",
        "_intervals_us",
        "_least_deviation_us",
        "_oldest",
        "_pause_us",
        "_sample_size",
        "_square_sum",
        "_sum_us",
        "_threshold",
        "last_heard_us",
    )

    def __init__(self, now: int, settings: Settings) -> None:
        self.last_heard_us = now
        self._threshold = settings.phi_threshold
        self._pause_us = settings.max_no_heartbeat_us
        self._least_deviation_us = settings.phi_min_std_dev_us
        self._sample_size = settings.phi_sample_size
        quarter = settings.heartbeat_interval_us // 4
        self._intervals_us = [settings.heartbeat_interval_us - quarter, settings.heartbeat_interval_us + quarter]
        self._oldest = 0
        """Place in the ring that is overwritten next, once it is full."""
        self._sum_us = sum(self._intervals_us)
        self._square_sum = sum(interval * interval for interval in self._intervals_us)
        self._beaten = False
        """Whether `last_heard_us` is the time of a heartbeat: only between two of them lies an interval."""

    def heard(self, now: int) -> None:
        # A silence for which the member was already suspected must not teach that such silences are normal. (The
        # product means to skip it too, but asks after it has moved the stamp.)
        if self._beaten and self.alive(now):
            self._learn(now - self.last_heard_us)
        self._beaten = True
        self.last_heard_us = now

    def restart(self, now: int) -> None:
        self._beaten = False
        self.last_heard_us = now

    def adopt(self, settings: Settings) -> None:
        self._pause_us = settings.max_no_heartbeat_us

    def alive(self, now: int) -> bool:
        return self.level(now) < self._threshold

    def silence_us(self, now: int) -> int:
        return now - self.last_heard_us

    def silent_from_us(self) -> int:
        return 0

    def level(self, now: int) -> float:
        """How unlikely the present silence is, as the accrual detector counts it."""
        count = len(self._intervals_us)
        expected_us = self._sum_us / count + self._pause_us
        # Sums of whole numbers are exact, so the variance neither drifts nor turns negative.
        deviation_us = sqrt(count * self._square_sum - self._sum_us * self._sum_us) / count
        y = (now - self.last_heard_us - expected_us) / max(deviation_us, self._least_deviation_us)
        # The tail of the normal distribution in its logistic approximation is 1 / (1 + exp(odds)). The exponential is
        # taken of what is negative only, so that no silence is too long for it.
        odds = y * (1.5976 + 0.070566 * y * y)
        return (max(odds, 0.0) + log1p(exp(-abs(odds)))) / LOG_10

    def _learn(self, interval_us: int) -> None:
        """Take one interval into the ring, and the running sums with it: as quick for a long history as for a short one."""
        self._sum_us += interval_us
        self._square_sum += interval_us * interval_us
        if len(self._intervals_us) < self._sample_size:
            self._intervals_us.append(interval_us)
            return
        forgotten_us = self._intervals_us[self._oldest]
        self._sum_us -= forgotten_us
        self._square_sum -= forgotten_us * forgotten_us
        self._intervals_us[self._oldest] = interval_us
        self._oldest = (self._oldest + 1) % self._sample_size


LOG_10 = log(10)
