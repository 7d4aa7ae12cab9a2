from __future__ import annotations

from decimal import Decimal
from math import log10
from statistics import fmean, pstdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.backend.core.membership.failure_detection.failure_detector import (
    DeadlineDetector,
    FailureDetector,
    PhiAccrualDetector,
    detector,
)
from quarterdeck.backend.core.properties import SECOND_US, Settings

PREFIX = "hazelcast.heartbeat.phiaccrual.failuredetector"
KINDS = ("deadline", "phi-accrual")
INTERVAL_US = 5 * SECOND_US
PAUSE_US = 60 * SECOND_US
YEAR_US = 365 * 24 * 3600 * SECOND_US


def made(kind: str, now: int = 0, **others: float) -> FailureDetector:
    """A detector with the documented defaults, and `others` under the prefix of phi-accrual."""
    properties = {f"{PREFIX}.{name.replace('_', '.')}": value for name, value in others.items()}
    return detector(Settings.of({"hazelcast.heartbeat.failuredetector.type": kind, **properties}), now)


def beaten(one: FailureDetector, intervals: list[int], start: int = 0) -> int:
    """Heartbeats after `start` at these intervals; the time of the last one."""
    now = start
    one.heard(now)
    for interval in intervals:
        now += interval
        one.heard(now)
    return now


def silence_that_kills(one: FailureDetector, last: int) -> int:
    """The shortest silence after `last` for which the member is not alive any more."""
    least, most = 0, 100 * PAUSE_US
    assert one.alive(last + least) and not one.alive(last + most)
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (middle, most) if one.alive(last + middle) else (least, middle)
    return most


def documented_phi(silence: int, history: list[int]) -> float:
    """The formula as it is written down, in decimals, whose exponential does not overflow. Its two branches, for more
    and for less than the mean, are the same fraction."""
    y = Decimal((silence - fmean(history) - PAUSE_US) / max(pstdev(history), 100_000))
    e = (-y * (Decimal("1.5976") + Decimal("0.070566") * y * y)).exp()
    return float(-(e / (1 + e)).log10())


SEEDED = [INTERVAL_US - INTERVAL_US // 4, INTERVAL_US + INTERVAL_US // 4]
intervals = st.lists(st.integers(0, 12 * SECOND_US), max_size=30)
kinds = st.sampled_from(KINDS)


def test_the_settings_choose() -> None:
    assert isinstance(made("deadline"), DeadlineDetector)
    assert isinstance(made("phi-accrual"), PhiAccrualDetector)


def test_deadline_to_the_microsecond() -> None:
    one = made("deadline", 7)
    assert one.alive(7 + PAUSE_US - 1)
    assert not one.alive(7 + PAUSE_US)


@given(intervals, st.integers(0, 90 * SECOND_US))
def test_phi_is_the_documented_formula(history: list[int], silence: int) -> None:
    one = made("phi-accrual")
    last = beaten(one, history)
    expected = documented_phi(silence, SEEDED + history)
    assert one.level(last + silence) == pytest.approx(expected, rel=1e-6, abs=1e-12)


@given(intervals, st.integers(2, 40))
def test_only_the_last_intervals_count(history: list[int], sample_size: int) -> None:
    one = made("phi-accrual", sample_size=sample_size)
    last = beaten(one, history)
    silence = PAUSE_US + 3 * SECOND_US
    assert one.level(last + silence) == pytest.approx(
        documented_phi(silence, (SEEDED + history)[-sample_size:]), rel=1e-6, abs=1e-12
    )


@given(kinds, intervals, st.lists(st.integers(0, 3 * PAUSE_US), min_size=2))
def test_suspicion_grows_with_silence(kind: str, history: list[int], silences: list[int]) -> None:
    one = made(kind)
    last = beaten(one, history)
    verdicts = [one.alive(last + silence) for silence in sorted(silences)]
    assert verdicts == sorted(verdicts, reverse=True)
    if isinstance(one, PhiAccrualDetector):
        levels = [one.level(last + silence) for silence in sorted(silences)]
        assert levels == sorted(levels)
    assert all(one.silence_us(last + silence) == silence for silence in silences)


@given(kinds, st.integers(1, 400))
def test_regular_heartbeats_keep_a_member_alive(kind: str, count: int) -> None:
    one = made(kind)
    last = beaten(one, [INTERVAL_US] * count)
    assert one.alive(last + 2 * INTERVAL_US)
    assert not isinstance(one, PhiAccrualDetector) or one.level(last + INTERVAL_US) < 0.01


@given(kinds, st.lists(st.integers(-INTERVAL_US, 8 * INTERVAL_US), min_size=1, max_size=300))
def test_jitter_and_lost_heartbeats_are_tolerated(kind: str, late_by: list[int]) -> None:
    """Whatever comes within the acceptable pause is no reason, before it comes and after."""
    one, now = made(kind), 0
    for late in late_by:
        now += INTERVAL_US + late
        assert one.alive(now)
        one.heard(now)


@given(intervals)
def test_phi_finds_out_later_than_the_deadline_but_within_bounds(history: list[int]) -> None:
    """The default threshold of 10 is passed between five and six deviations after pause and mean."""
    one = made("phi-accrual")
    last = beaten(one, history)
    mean, deviation = fmean(SEEDED + history), max(pstdev(SEEDED + history), 100_000)
    silence = silence_that_kills(one, last)
    assert PAUSE_US + mean + 5 * deviation < silence < PAUSE_US + mean + 6 * deviation


@pytest.mark.parametrize("kind", KINDS)
def test_a_member_that_never_sends_is_found_out(kind: str) -> None:
    one = made(kind, 1_000)
    assert one.alive(1_000) and one.last_heard_us == 1_000
    assert silence_that_kills(one, 1_000) <= PAUSE_US + INTERVAL_US + 6 * INTERVAL_US // 4


def test_a_higher_threshold_is_more_patient() -> None:
    silences = [silence_that_kills(made("phi-accrual", threshold=threshold), 0) for threshold in (1, 5, 10, 20)]
    assert silences == sorted(set(silences))


def test_a_silence_that_raised_suspicion_teaches_nothing() -> None:
    one, other = made("phi-accrual"), made("phi-accrual")
    last = beaten(one, [INTERVAL_US] * 5)
    assert beaten(other, [INTERVAL_US] * 5) == last
    one.heard(last + 100 * PAUSE_US)
    assert one.alive(last + 100 * PAUSE_US)
    for silence in (INTERVAL_US, PAUSE_US + INTERVAL_US, 3 * PAUSE_US):
        assert one.alive(last + 100 * PAUSE_US + silence) == other.alive(last + silence)


@given(kinds, intervals, st.integers(0, 10 * PAUSE_US), st.integers(0, INTERVAL_US))
def test_a_restart_forgets_the_gap(kind: str, history: list[int], gap: int, rest: int) -> None:
    """Neither the gap nor what is left of the interval after it becomes a part of the history."""
    one, other = made(kind), made(kind)
    last = beaten(one, history)
    beaten(other, history)
    one.restart(last + gap)
    assert one.alive(last + gap) and one.silence_us(last + gap) == 0
    one.heard(last + gap + rest)
    for silence in (0, INTERVAL_US, PAUSE_US + INTERVAL_US, 3 * PAUSE_US):
        assert one.alive(last + gap + rest + silence) == other.alive(last + silence)


def test_after_a_restart_intervals_are_learnt_again() -> None:
    one = made("phi-accrual")
    one.restart(0)
    last = beaten(one, [INTERVAL_US] * 100)
    assert silence_that_kills(one, last) < PAUSE_US + INTERVAL_US + 6 * INTERVAL_US // 10


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("silence", [YEAR_US, 2**63 - 1, 2**80])
def test_no_silence_is_too_long(kind: str, silence: int) -> None:
    one = made(kind, threshold=1e30)
    assert not isinstance(one, PhiAccrualDetector) or one.level(silence) >= 1
    one.heard(silence)
    assert one.alive(silence + 1)


@given(st.lists(st.integers(0, 10**12), max_size=50))
def test_the_sums_of_equal_intervals_leave_no_deviation(strange: list[int]) -> None:
    """Whatever was in the ring, once it is overwritten nothing of it is left in the sums."""
    one = made("phi-accrual", sample_size=10, threshold=1e300)
    last = beaten(one, [*strange, *[INTERVAL_US] * 10])
    assert one.level(last + PAUSE_US + INTERVAL_US) == pytest.approx(log10(2))


@pytest.mark.parametrize("kind", ["deadline", "phi-accrual"])
def test_a_detector_judges_by_new_times_from_now_on(kind: str) -> None:
    times = {"hazelcast.heartbeat.interval.seconds": 1, "hazelcast.heartbeat.failuredetector.type": kind}
    slow = Settings.of({**times, "hazelcast.max.no.heartbeat.seconds": 60})
    one = detector(slow, 0)
    for second in range(1, 11):
        one.heard(second * SECOND_US)
    assert one.alive(40 * SECOND_US)
    one.adopt(Settings.of({**times, "hazelcast.max.no.heartbeat.seconds": 5}))
    assert one.alive(14 * SECOND_US) and not one.alive(40 * SECOND_US)
