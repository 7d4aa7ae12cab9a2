"""Tables that Spark's tasks make are those of one process: anew, updated, with parts of a run in several places."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from quarterdeck.backend.pipeline.spark.engine import Engine
from quarterdeck.backend.pipeline.tables import fold
from quarterdeck.backend.pipeline.tables.store import update_store
from tests.pipeline.journal_builder import clean_story, line, write
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
