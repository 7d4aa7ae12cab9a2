"""The numbers that settings are compared by, against values worked out elsewhere."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from quarterdeck.backend.pipeline.campaign.comparison import compare_variants, share
from quarterdeck.backend.pipeline.campaign.plan import Campaign, VerdictRow

TWO = Campaign(variants=({"a": 1}, {"a": 2}))


def row(variant: int, seed: int, converged: float | None, detections: tuple[float, ...] = ()) -> VerdictRow:
    return VerdictRow(
        variant, seed, 4, "ok", virtual_seconds=10, events=400, converged_seconds=converged, detections=detections
    )


@pytest.mark.parametrize(
    ("part", "whole", "low", "high"),
    # Newcombe 1998, table I, method 3.
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_shares_have_wilsons_interval(part: int, whole: int, low: float, high: float) -> None:
    found = share(part, whole)
    assert found.interval == pytest.approx((low, high), abs=1e-4)


@given(st.integers(0, 1000), st.integers(1, 1000))
def test_a_share_lies_within_its_interval(part: int, whole: int) -> None:
    found = share(min(part, whole), whole)
    assert 0 <= found.interval[0] <= found.share + 1e-6
    assert found.share - 1e-6 <= found.interval[1] <= 1


def test_what_is_the_same_for_all_has_no_doubt() -> None:
    first, second = compare_variants(
        TWO, [row(variant, seed, 3.0 + variant) for variant in (0, 1) for seed in range(20)]
    )
    convergence = second.measures["convergence_seconds"]
    assert convergence.mean is not None and convergence.mean.interval == (4.0, 4.0)
    assert convergence.minus_first is not None
    assert (convergence.minus_first.value, convergence.minus_first.interval) == (1.0, (1.0, 1.0))
    assert first.measures["convergence_seconds"].minus_first is None
    assert first.measures["events_per_member_second"].percentiles["p95"].value == 10.0
    assert first.measures["detection_seconds"].mean is None


def test_rows_in_which_no_messages_were_counted_are_left_out() -> None:
    counted = [replace(row(variant, 1, None), messages=400 * (variant + 1)) for variant in (0, 1)]
    uncounted = [row(variant, 2, None) for variant in (0, 1)]
    measure = compare_variants(TWO, [*counted, *uncounted])[1].measures["messages_per_member_second"]
    assert measure.mean is not None and measure.minus_first is not None
    assert (measure.runs, measure.mean.value, measure.minus_first.value) == (1, 20.0, 10.0)


def test_differences_are_taken_seed_by_seed() -> None:
    """Seeds differ by far more than the settings do: only pairs can tell that the second is slower."""
    rows = [row(variant, seed, 10.0 * seed + 0.5 * variant) for variant in (0, 1) for seed in range(30)]
    measure = compare_variants(TWO, rows)[1].measures["convergence_seconds"]
    assert measure.mean is not None and measure.minus_first is not None
    assert measure.mean.interval[1] - measure.mean.interval[0] > 50
    assert measure.minus_first.interval == pytest.approx((0.5, 0.5))


def test_measurements_of_one_run_are_drawn_together() -> None:
    """Ten runs with a hundred equal measurements each are ten, not a thousand."""
    rows = [row(0, seed, None, (float(seed),) * 100) for seed in range(10)]
    mean = compare_variants(Campaign(variants=({}, {})), rows)[0].measures["detection_seconds"].mean
    assert mean is not None and mean.value == 4.5
    assert mean.interval[1] - mean.interval[0] > 2


def test_equal_rows_give_equal_intervals_in_any_order() -> None:
    rows = [row(variant, seed, seed % 7 + variant) for variant in (0, 1) for seed in range(50)]
    assert compare_variants(TWO, rows) == compare_variants(TWO, reversed(rows))


@pytest.mark.long
def test_the_interval_of_a_mean_covers_it_about_as_often_as_it_says() -> None:
    """60 samples of 40 from an even spread between 0 and 1, whose mean is a half."""
    from random import Random

    draws = Random(5)
    covered = 0
    for _ in range(60):
        rows = [row(0, seed, draws.random()) for seed in range(40)]
        mean = compare_variants(Campaign(), rows)[0].measures["convergence_seconds"].mean
        assert mean is not None
        covered += mean.interval[0] <= 0.5 <= mean.interval[1]
    assert covered >= 51
