"""What the drawings say, and that it does not lie over one another."""

from __future__ import annotations

from itertools import pairwise

import pytest

from quarterdeck.backend.pipeline.report.drawing import LETTER_WIDTH, histogram, matrix, timeline
from quarterdeck.backend.pipeline.report.run_section import Row
from tests.pipeline.report.handmade_rows import report_of, rows_of


@pytest.fixture
def run() -> Row:
    return report_of(rows_of()).runs[0]


@pytest.mark.parametrize("bins", [1, 5, 21, 40])
def test_the_times_below_a_histogram_do_not_touch(run: Row, bins: int) -> None:
    edges = [round(10 ** (place / 3)) for place in range(bins + 1)]
    metric = Row(run.metrics[0], bins=[Row(from_us=first, to_us=last, times=1) for first, last in pairwise(edges)])
    picture = histogram(metric)
    below = [text for text in picture.texts if text.anchor == "start"]
    assert below[0].x < below[-1].x or bins == 1
    assert all(one.x + len(one.text) * LETTER_WIDTH <= other.x for one, other in pairwise(below))
    assert len(picture.boxes) == bins
    assert picture.width <= 640, "as wide as a narrow window"


def test_the_name_of_a_short_split_is_its_number_or_nothing(run: Row) -> None:
    (split,) = run.splits

    def label(lasted_us: int) -> str:
        (band,) = timeline(Row(run, splits=[Row(split, lasted_us=lasted_us)])).bands
        return band.label

    whole_us = run.end_us - run.start_us
    assert [label(whole_us), label(whole_us // 50), label(1)] == ["split 1", "1", ""]


def test_members_stand_in_a_matrix_as_in_the_timeline(run: Row) -> None:
    lane = run.lanes[0]
    pairs = [(f"n{place}", f"n{place + 1}") for place in range(8, 11)]
    found = matrix(
        Row(
            run,
            lanes=[Row(lane, member=f"n{place}") for place in range(1, 12)],
            suspicions=[Row(observer=one, suspect=other, times=1, suspected_us=5, open=0) for one, other in pairs],
        )
    )
    assert found.suspects == ["n9", "n10", "n11"]
    assert [name for name, _ in found.rows] == ["n8", "n9", "n10"]
