"""Spans of time against counting them moment by moment."""

import random
from itertools import pairwise

import pytest

from quarterdeck.backend.pipeline.metrics.run_tables import Span, concurrent_sums, counted, merged, subtracted

MOMENTS = 12
CASES = 60


def drawn(generator: random.Random, most: int) -> list[Span]:
    spans = []
    for _ in range(generator.randint(0, most)):
        begin = generator.randrange(MOMENTS)
        spans.append((begin, generator.randint(begin, MOMENTS)))
    return spans


def covered(spans: list[Span], moment: int) -> int:
    return sum(begin <= moment < end for begin, end in spans)


@pytest.fixture(scope="module")
def cases() -> list[tuple[list[Span], list[Span]]]:
    generator = random.Random(7)
    return [(drawn(generator, 6), drawn(generator, 3)) for _ in range(CASES)]


def test_how_many_there_are_at_once(cases: list[tuple[list[Span], list[Span]]]) -> None:
    for spans, _ in cases:
        stretches = list(counted(spans))
        there = {moment: many for begin, end, many in stretches for moment in range(begin, end)}
        assert [there.get(moment, 0) for moment in range(MOMENTS)] == [
            covered(spans, moment) for moment in range(MOMENTS)
        ]
        ends = merged((begin, end) for begin, end, many in stretches if many > 1)
        assert [covered(spans, moment) > 1 for moment in range(MOMENTS)] == [
            covered(ends, moment) == 1 for moment in range(MOMENTS)
        ]
        assert all(before[1] < after[0] for before, after in pairwise(ends))


def test_weights_are_summed_each_for_itself() -> None:
    assert list(concurrent_sums([(0, 4, (1, 5)), (2, 6, (1, -2)), (3, 3, (9, 9))])) == [
        (0, 2, (1, 5)),
        (2, 3, (2, 3)),
        (3, 4, (2, 3)),
        (4, 6, (1, -2)),
    ]


def test_what_is_left_without_the_holes(cases: list[tuple[list[Span], list[Span]]]) -> None:
    for spans, holes in cases:
        left = subtracted(spans, holes)
        assert [covered(left, moment) for moment in range(MOMENTS)] == [
            int(covered(spans, moment) > 0 and not covered(holes, moment)) for moment in range(MOMENTS)
        ]
