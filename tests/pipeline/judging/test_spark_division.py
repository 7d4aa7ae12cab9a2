"""Spark divides a great run among tasks and says of it what one task says, wherever its files are."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from quarterdeck.backend.pipeline.audit import audit
from quarterdeck.backend.pipeline.tables.store import update_store
from tests.pipeline.judging.test_division import damaged

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

SEEDS = range(60, 65)
FEW_BYTES = 30_000


def test_divided_runs_are_judged_as_undivided_ones(tmp_path: Path, spark: SparkSession) -> None:
    root = tmp_path / "journal"
    for seed in SEEDS:
        directory = root / f"run=run-{seed}"
        directory.mkdir(parents=True)
        for name, lines in damaged(seed).items():
            whole = [line.replace(b'"run":"run"', b'"run":"run-%d"' % seed, 1) for line in lines]
            (directory / name).write_bytes(b"".join(line + b"\n" for line in whole))
    one = audit([root])
    many = audit([root], spark=spark, undivided_bytes=FEW_BYTES)
    assert one.findings
    assert many == one
    far = audit([root.as_uri()], spark=spark, undivided_bytes=FEW_BYTES)
    assert [(f.rule, f.run, f.uuid, f.seq, f.detail, f.doubt) for f in far.findings] == [
        (f.rule, f.run, f.uuid, f.seq, f.detail, f.doubt) for f in one.findings
    ]
    assert {**far.counts, "files": 0} == {**one.counts, "files": 0}
    update_store([root], tmp_path / "tables")
    stored = audit([tmp_path / "tables"])
    assert audit([tmp_path / "tables"], spark=spark, undivided_bytes=FEW_BYTES) == stored
