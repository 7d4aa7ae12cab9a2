"""Tables that Spark's tasks make are those of one process: anew, updated, with parts of a run in several places."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from quarterdeck.backend.pipeline.audit_input import Group
from quarterdeck.backend.pipeline.spark.engine import Engine
from quarterdeck.backend.pipeline.tables import fold
from quarterdeck.backend.pipeline.tables.store import update_store
from tests.pipeline.journal_builder import clean_story, line, write
from tests.pipeline.tables.test_delta_store import tables as delta_tables
from tests.pipeline.tables.test_store import tables

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SPARK = Engine("spark")


def test_tables_of_tasks_are_those_of_one_process(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fold, "LEAST_BYTES_A_TASK", 1)
    root = write(tmp_path / "journal", clean_story("one"), clean_story("two"), clean_story("three"))
    here, there = tmp_path / "here", tmp_path / "there"
    assert update_store([root], there, "", SPARK) == update_store([root], here)
    assert tables(there) == tables(here)
    records = clean_story("four").records
    (root / "run=four").mkdir()
    (root / "run=four" / "a-000001.jsonl").write_bytes(b"".join(map(line, records[:7])) + b"no json\n")
    (root / "loose-000001.jsonl").write_bytes(b"".join(map(line, records[5:])))
    (root / "run=one" / "more-000001.jsonl").write_bytes(line(clean_story("one").records[3]) + b"{}\n")
    assert update_store([root], there, "", SPARK) == update_store([root], here)
    assert tables(there) == tables(here)


def test_rows_of_delta_are_made_in_tasks(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fold, "LEAST_BYTES_A_TASK", 1)
    jobs = list[int]()
    on_spark = fold._on_spark

    def counted(spark: SparkSession, kept: fold.OpenKept, groups: Sequence[Group], *rest: Any) -> list[fold.Folded]:
        jobs.append(len(groups))
        return on_spark(spark, kept, groups, *rest)

    monkeypatch.setattr(fold, "_on_spark", counted)
    root = write(tmp_path / "journal", clean_story("one"), clean_story("two"))
    here, there = tmp_path / "here", tmp_path / "there"
    assert update_store([root], there, "delta", SPARK) == update_store([root], here, "delta")
    (root / "run=one" / "more-000001.jsonl").write_bytes(line(clean_story("one").records[3]) + b"{}\n")
    assert update_store([root], there, engine=SPARK) == update_store([root], here)
    assert delta_tables(there) == delta_tables(here)
    assert jobs == [2, 1]
    assert not list(there.glob(".*"))  # no folder of the tasks stays
    update_store([root], there, engine=SPARK)
    assert jobs == [2, 1]  # nothing is new
