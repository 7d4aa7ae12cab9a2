"""Clocks that gain, lose and jump: they only go forward, and what they will show is known exactly."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.backend.core.timers import NEVER
from quarterdeck.backend.scenarios.format.clocks import Clock

times = st.integers(0, 10**9)
clocks = st.builds(
    Clock, st.floats(0.5, 2.0, allow_nan=False), st.dictionaries(times, st.integers(0, 10**8), max_size=4)
)


@given(clocks, times)
def test_the_time_at_which_a_clock_shows_something_is_the_first_such_time(clock: Clock, shown: int) -> None:
    at = clock.time_us(shown)
    assert clock.local_us(at) >= shown
    assert at == 0 or clock.local_us(at - 1) < shown


@given(clocks, times, times)
def test_clocks_never_go_backwards(clock: Clock, one: int, other: int) -> None:
    assert clock.local_us(min(one, other)) <= clock.local_us(max(one, other))


def test_a_fast_clock_that_jumps() -> None:
    clock = Clock(1.1, {10_000_000: 2_000_000})
    assert clock.local_us(10_000_000 - 10) == 11_000_000 - 11
    assert clock.local_us(10_000_000) == 13_000_000
    assert clock.local_us(20_000_000) == 24_000_000
    assert clock.time_us(12_000_000) == 10_000_000
    assert clock.time_us(NEVER) == NEVER


def test_clocks_that_cannot_be() -> None:
    with pytest.raises(ValueError, match="does not go"):
        Clock(0.0)
    with pytest.raises(ValueError, match="jumps ahead only"):
        Clock(1.0, {5: -1})
