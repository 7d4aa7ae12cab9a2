"""Journals and logs at addresses: only the engine reads them, and the audit says of them what it says of files here."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from pyspark.sql import SparkSession

from quarterdeck.backend.hazelcast.logs.log_files import NoLogs
from quarterdeck.backend.journal.files import NoJournal
from quarterdeck.backend.pipeline.audit import audit
from quarterdeck.backend.pipeline.metrics.measuring import measure
from tests.pipeline.journal_builder import clean_story, line
from tests.pipeline.rules.broken_journals import broken
from tests.pipeline.rules.test_planted import write_run
from tests.thoroughness import long_after

LOGS = Path(__file__).parents[1] / "hazelcast" / "logs" / "data"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "journals of [today]"
    for seed in range(4):
        write_run(root, f"run-{seed}", broken(seed))
    records = clean_story("split").records
    (root / "one-000001.jsonl").write_bytes(b"".join(map(line, records[:7])) + b"torn")
    (root / "run=split").mkdir()
    (root / "run=split" / "two-000001.jsonl").write_bytes(b"".join(map(line, records[7:])))
    return root


def test_what_the_engine_reads_is_judged_alike(spark: SparkSession, root: Path) -> None:
    """One of the runs stands in two places: its parts come together."""
    here, there = audit([root]), audit([f"file://{root}"])
    assert [msgspec.structs.replace(finding, link="") for finding in here.findings] == list(there.findings)
    assert there.findings
    assert (there.counts, there.incomplete) == (here.counts, here.incomplete)
    assert [(problem.line, problem.reason, problem.number) for problem in there.problems] == [
        (problem.line, problem.reason, problem.number) for problem in here.problems
    ]
    assert there.problems[0].file.startswith("file:/")


@pytest.mark.long
def test_what_the_engine_reads_is_measured_alike(spark: SparkSession, root: Path) -> None:
    assert measure([f"file://{root}"], "all") == measure([root], "all")


def test_an_address_without_a_journal_is_told(spark: SparkSession, tmp_path: Path, root: Path) -> None:
    with pytest.raises(NoJournal, match="nothing is there that can be read"):
        audit([f"file://{tmp_path}/nowhere"])
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "note.txt").write_text("nothing")
    with pytest.raises(NoJournal, match="holds no journal"):
        audit([f"file://{tmp_path}/empty"], source="journal")
    with pytest.raises(NoLogs, match="none of 1 lines is understood"):
        audit([f"file://{tmp_path}/empty"])
    with pytest.raises(NoJournal, match="cannot be read together"):
        audit([root, f"file://{root}"])


@pytest.mark.parametrize("recording", long_after(1, ["flapping", "split-and-merge-log4j2"]))
def test_logs_that_the_engine_reads_are_judged_alike(spark: SparkSession, recording: str) -> None:
    here, there = audit([LOGS / recording]), audit([(LOGS / recording).as_uri()])
    assert there.counts == here.counts and there.counts["records"]
    assert there.rules == here.rules
    assert [observation.headline for observation in there.observations] == [
        observation.headline for observation in here.observations
    ]
    assert there.migration_rounds == here.migration_rounds
    for one, other in zip(there.merge_verdicts, here.merge_verdicts, strict=True):
        assert one == msgspec.structs.replace(other, file=f"file:{other.file}")
