"""Compares settings: the same seeds under each of them, with confidence intervals.

Shares have Wilson intervals. Means, percentiles and differences have percentile bootstrap intervals over runs, not over single
measurements, because those of one run are correlated. As the seeds are the same, differences are taken seed by seed. All are
95 %.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import sqrt
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from quarterdeck.backend.pipeline.campaign.plan import VERDICTS, Campaign, VerdictRow

Z95 = 1.959964
RESAMPLES = 1_000
RESAMPLING_SEED = 20_000_731
"""A fixed seed: equal rows give equal intervals."""

PERCENTILES = (50, 95, 99)

Interval = tuple[float, float]


class RunShare(Struct, frozen=True):
    """`runs` and their share of all runs; `interval` is Wilson's."""

    runs: int
    share: float
    interval: Interval


class Estimate(Struct, frozen=True):
    """A number with its 95 % confidence interval."""

    value: float
    interval: Interval


class Measure(Struct, frozen=True):
    """One measure over the runs of one variant; None where there is nothing to measure.

    `minus_first` is the mean difference to the first variant over the seeds that have a value under both.
    """

    runs: int
    values: int
    mean: Estimate | None
    percentiles: dict[str, Estimate]
    minus_first: Estimate | None


class VariantResult(Struct, frozen=True):
    """One variant: how its runs ended, and its measures by name."""

    settings: dict[str, Any]
    runs: int
    verdicts: dict[str, RunShare]
    measures: dict[str, Measure]


MEASURES: dict[str, Callable[[VerdictRow], Sequence[float]]] = {
    # For each kill or pause, seconds until another member suspects or removes the member.
    "detection_seconds": lambda row: row.detections,
    "convergence_seconds": lambda row: () if row.converged_seconds is None else (row.converged_seconds,),
    # Messages delivered and timers fired, for each member and virtual second.
    "events_per_member_second": lambda row: _per_member_second(row, row.events),
    # Messages sent, whether they arrived or not.
    "messages_per_member_second": lambda row: _per_member_second(row, row.messages),
}


def _per_member_second(row: VerdictRow, count: int | None) -> Sequence[float]:
    member_seconds = row.members * row.virtual_seconds
    return () if count is None or not member_seconds else (count / member_seconds,)


def compare_variants(campaign: Campaign, rows: Iterable[VerdictRow]) -> tuple[VariantResult, ...]:
    """Compare all variants of the campaign; return them in its order."""
    by_variant: list[dict[int, VerdictRow]] = [{} for _ in campaign.variants]
    for row in rows:
        by_variant[row.variant][row.seed] = row
    first = by_variant[0]
    return tuple(
        VariantResult(
            settings=dict(settings),
            runs=len(runs),
            verdicts={
                verdict: share(sum(row.verdict == verdict for row in runs.values()), len(runs)) for verdict in VERDICTS
            },
            measures={
                name: _measured(runs, first, values_of, is_first=runs is first) for name, values_of in MEASURES.items()
            },
        )
        for settings, runs in zip(campaign.variants, by_variant, strict=True)
    )


def share(part: int, whole: int) -> RunShare:
    """Return a share with its Wilson interval, which is right for rare events too."""
    if not whole:
        return RunShare(0, 0.0, (0.0, 1.0))
    found = part / whole
    middle = (found + Z95**2 / (2 * whole)) / (1 + Z95**2 / whole)
    half = Z95 / (1 + Z95**2 / whole) * sqrt(found * (1 - found) / whole + Z95**2 / (4 * whole**2))
    return RunShare(part, _rounded(found), (_rounded(max(0.0, middle - half)), _rounded(min(1.0, middle + half))))


def _measured(
    runs: dict[int, VerdictRow],
    first: dict[int, VerdictRow],
    values_of: Callable[[VerdictRow], Sequence[float]],
    *,
    is_first: bool,
) -> Measure:
    ordered = [runs[seed] for seed in sorted(runs)]
    groups = [np.asarray(values, dtype=float) for row in ordered if len(values := values_of(row))]
    if not groups:
        return Measure(0, 0, None, {}, None)
    flat = np.concatenate(groups)
    samples = _resampled(groups)
    statistics = [np.concatenate(([sample.mean()], np.percentile(sample, PERCENTILES))) for sample in samples]
    whole = [flat.mean(), *np.percentile(flat, PERCENTILES)]
    mean, *percentiles = map(_estimate, whole, np.asarray(statistics).T)
    return Measure(
        runs=len(groups),
        values=len(flat),
        mean=mean,
        percentiles={f"p{number}": estimate for number, estimate in zip(PERCENTILES, percentiles, strict=True)},
        minus_first=None if is_first else _difference(runs, first, values_of),
    )


def _difference(
    runs: dict[int, VerdictRow], first: dict[int, VerdictRow], values_of: Callable[[VerdictRow], Sequence[float]]
) -> Estimate | None:
    pairs = [
        float(np.mean(here) - np.mean(there))
        for seed in sorted(runs.keys() & first.keys())
        if len(here := values_of(runs[seed])) and len(there := values_of(first[seed]))
    ]
    if not pairs:
        return None
    samples = _resampled([np.array([pair]) for pair in pairs])
    return _estimate(np.mean(pairs), np.array([sample.mean() for sample in samples]))


def _estimate(value: float | np.floating[Any], resampled: NDArray[np.float64]) -> Estimate:
    low, high = np.percentile(resampled, (2.5, 97.5))
    return Estimate(_rounded(value), (_rounded(low), _rounded(high)))


def _resampled(groups: Sequence[NDArray[np.float64]]) -> Iterable[NDArray[np.float64]]:
    draws = np.random.default_rng(RESAMPLING_SEED)
    if all(len(group) == 1 for group in groups):  # by far the quicker way for what is measured once a run
        flat = np.concatenate(groups)
        for _ in range(RESAMPLES):
            yield flat[draws.integers(0, len(flat), len(flat))]
    else:
        for _ in range(RESAMPLES):
            yield np.concatenate([groups[place] for place in draws.integers(0, len(groups), len(groups))])


def _rounded(value: float | np.floating[Any]) -> float:
    return round(float(value), 6)
