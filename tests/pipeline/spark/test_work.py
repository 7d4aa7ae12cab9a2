"""Work in tasks of Spark's: each result with its place, in workers that begin with what they need."""

from __future__ import annotations

import gc
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from quarterdeck.backend.pipeline.spark.arrow import carry_out_in_rows
from quarterdeck.backend.pipeline.spark.session import _PlainValues

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TASKS = [[(2, b"ccc"), (0, b"a")], [], [(1, b"bb")]]


def test_results_come_with_their_places(spark: SparkSession) -> None:
    assert sorted(carry_out_in_rows(spark, TASKS, len)) == [(0, 1), (1, 2), (2, 3)]
    assert carry_out_in_rows(spark, [], len) == []


def test_workers_are_forked_of_a_process_that_has_imported_what_is_installed(spark: SparkSession) -> None:
    def probe(_: bytes) -> tuple[str, bool]:
        return sys.modules["pyspark.worker"].__file__ or "", gc.get_freeze_count() > 0

    ((_, (file, is_frozen)),) = carry_out_in_rows(spark, [[(0, b"")]], probe)
    assert is_frozen and Path(file).is_file(), f"{file} is compiled anew for each session"


def test_only_plain_values_are_passed_on_as_they_are() -> None:
    plain = _PlainValues()
    assert all(map(plain.can_convert, ("a", 1, 1.5, True, None, b"a", {"a": 1}, [1])))
    assert not any(map(plain.can_convert, (np.float64(1.5), np.str_("a"), np.array([1]), object())))
