"""Spans of time, and how many of them there are at once. A span goes from its first moment to its second, excluded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

Span = tuple[int, int]
"""The moments at which it begins and ends."""

Stretch = tuple[int, int, tuple[int, ...]]
"""A span with the sums of the weights in it."""


def concurrent_sums(spans: Iterable[Stretch]) -> Iterator[Stretch]:
    """Sum the weights of the spans that overlap: one stretch for each time in which nothing changes.

    Stretches without spans are left out only at both ends. Spans without length do not count.
    """
    changes: dict[int, list[int]] = {}
    for from_at, to_at, weights in spans:
        for at, sign in ((from_at, 1), (to_at, -1)):
            change = changes.setdefault(at, [0] * len(weights))
            for place, weight in enumerate(weights):
                change[place] += sign * weight
    sums: list[int] = []
    for (from_at, change), (to_at, _) in pairwise(sorted(changes.items())):
        sums = [before + new for before, new in zip(sums or [0] * len(change), change, strict=True)]
        yield from_at, to_at, tuple(sums)


def counted(spans: Iterable[Span]) -> Iterator[tuple[int, int, int]]:
    """Count the spans that overlap, in stretches as `concurrent_sums` yields them."""
    return ((from_at, to_at, count) for from_at, to_at, (count,) in concurrent_sums((*span, (1,)) for span in spans))


def merged(stretches: Iterable[Span]) -> list[Span]:
    """Return the longest spans of stretches that follow each other in time."""
    spans: list[Span] = []
    for from_at, to_at in stretches:
        if spans and spans[-1][1] == from_at:
            spans[-1] = spans[-1][0], to_at
        else:
            spans.append((from_at, to_at))
    return spans


def subtracted(spans: Iterable[Span], holes: Iterable[Span]) -> list[Span]:
    """Return what is left of `spans` where no hole covers them; spans that touch are one."""
    weighed = [*((*span, (1, 0)) for span in spans), *((*hole, (0, 1)) for hole in holes)]
    left = concurrent_sums(weighed)
    return merged((from_at, to_at) for from_at, to_at, (there, covered) in left if there > 0 and covered == 0)
