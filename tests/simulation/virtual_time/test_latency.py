"""Latency models stay within their bounds, and the heavy tail really has one."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.backend.scenarios.format.clocks import Latency, LatencyModel

MODELS: tuple[LatencyModel, ...] = ("uniform", "exponential", "heavy-tail")


@pytest.mark.parametrize("model", MODELS)
@given(draw=st.floats(0, 1, exclude_max=True))
def test_samples_stay_within_the_bounds(model: LatencyModel, draw: float) -> None:
    assert 200 <= Latency(model, 200, 5_000, 40_000).sample_us(draw) <= 40_000


def test_a_few_messages_of_the_heavy_tail_take_very_long() -> None:
    draws = Random(1)
    latency = Latency("heavy-tail", 200, 1_000, 10_000_000)
    samples = sorted(latency.sample_us(draws.random()) for _ in range(10_000))
    assert 700 < samples[5_000] < 2_500
    assert samples[-1] > 100 * samples[5_000]


def test_latencies_that_cannot_be() -> None:
    with pytest.raises(ValueError, match="take some time"):
        Latency("uniform", 2_000, 0, 1_000)
