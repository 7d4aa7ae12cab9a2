"""Spans of time against counting them moment by moment."""

import random
from itertools import pairwise

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from quarterdeck.backend.pipeline.metrics.spans import concurrent_sums, merge_adjacent, subtract

MOMENTS = 12
CASES = 60

Span = tuple[int, int]


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


def frame(spark: SparkSession, cases: list[list[Span]]) -> DataFrame:
    rows = [(case, *span) for case, spans in enumerate(cases) for span in spans]
    return spark.createDataFrame(rows, "case int, from_at bigint, to_at bigint")


def test_how_many_there_are_at_once(spark: SparkSession, cases: list[tuple[list[Span], list[Span]]]) -> None:
    spans = frame(spark, [one for one, _ in cases]).withColumn("n", F.lit(1))
    counted = concurrent_sums(spans, ["case"], "n").collect()
    for case, (own, _) in enumerate(cases):
        told = {moment: row.n for row in counted if row.case == case for moment in range(row.from_at, row.to_at)}
        assert [told.get(moment, 0) for moment in range(MOMENTS)] == [covered(own, moment) for moment in range(MOMENTS)]
    longest = merge_adjacent(concurrent_sums(spans, ["case"], "n"), ["case"], F.expr("n > 1")).collect()
    for case, (own, _) in enumerate(cases):
        ends = sorted((row.from_at, row.to_at) for row in longest if row.case == case)
        assert [covered(own, moment) > 1 for moment in range(MOMENTS)] == [
            covered(ends, moment) == 1 for moment in range(MOMENTS)
        ]
        assert all(before[1] < after[0] for before, after in pairwise(ends))


def test_what_is_left_without_the_holes(spark: SparkSession, cases: list[tuple[list[Span], list[Span]]]) -> None:
    spans = (
        frame(spark, [one for one, _ in cases]).withColumn("which", F.monotonically_increasing_id()).localCheckpoint()
    )
    left = subtract(
        spans.where("from_at < to_at"), frame(spark, [holes for _, holes in cases]), ["case"], ["case", "which"]
    )
    kept, whole = left.collect(), spans.collect()
    for case, (_, holes) in enumerate(cases):
        for one in (row for row in whole if row.case == case):
            parts = [(row.from_at, row.to_at) for row in kept if row.which == one.which]
            assert [covered(parts, moment) for moment in range(MOMENTS)] == [
                int(one.from_at <= moment < one.to_at and not covered(holes, moment)) for moment in range(MOMENTS)
            ]
