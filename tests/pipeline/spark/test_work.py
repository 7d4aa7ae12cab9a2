"""Work in tasks of Spark's: the same results from RDDs and from rows, in workers that begin with what they need."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from quarterdeck.backend.pipeline.spark.arrow import carry_out_in_rows
from quarterdeck.backend.pipeline.spark.session import _PlainValues
from quarterdeck.backend.pipeline.spark.work import carry_out_by_rdd

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REPOSITORY = Path(__file__).parents[3]
TASKS = [[(2, b"ccc"), (0, b"a")], [], [(1, b"bb")]]


def test_results_come_with_their_places_from_rdds_and_from_rows(spark: SparkSession) -> None:
    by_rdd = carry_out_by_rdd(spark, TASKS, len)
    by_rows = carry_out_in_rows(spark, TASKS, len)
    assert sorted(by_rdd) == sorted(by_rows) == [(0, 1), (1, 2), (2, 3)]
    assert carry_out_by_rdd(spark, [], len) == []


def test_workers_are_forked_of_a_process_that_has_imported_what_is_installed(spark: SparkSession) -> None:
    def probe(_: bytes) -> tuple[str, bool]:
        return sys.modules["pyspark.worker"].__file__ or "", gc.get_freeze_count() > 0

    ((_, (file, is_frozen)),) = carry_out_by_rdd(spark, [[(0, b"")]], probe)
    assert is_frozen and Path(file).is_file(), f"{file} is compiled anew for each session"


def test_only_plain_values_are_passed_on_as_they_are() -> None:
    plain = _PlainValues()
    assert all(map(plain.can_convert, ("a", 1, 1.5, True, None, b"a", {"a": 1}, [1])))
    assert not any(map(plain.can_convert, (np.float64(1.5), np.str_("a"), np.array([1]), object())))


@pytest.mark.long
@pytest.mark.timeout(300)
def test_neither_a_session_nor_its_workers_import_pandas() -> None:
    program = """
import sys
from quarterdeck.backend.pipeline.spark.session import spark_session
from quarterdeck.backend.pipeline.spark.work import carry_out_by_rdd
with spark_session("local[2]") as spark:
    print(carry_out_by_rdd(spark, [[(0, 0)]], lambda _: "pandas" in sys.modules), "pandas" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=REPOSITORY, check=False)
    assert (done.returncode, done.stdout) == (0, "[(0, False)] False\n"), done.stderr
