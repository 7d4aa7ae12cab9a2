"""Which lines are records, and which of several counts, is the same in every way to read a journal, whatever is wrong with it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.dataset
import pytest

from quarterdeck.backend.pipeline.audit import audit
from quarterdeck.backend.pipeline.rules import NAMES, AuditResult
from quarterdeck.backend.pipeline.streaming.followed_run import QUESTION
from quarterdeck.backend.pipeline.streaming.journal_follower import FindingsFile, JournalFollower, StreamCheckpoint
from quarterdeck.backend.pipeline.tables.store import update_store
from quarterdeck.spark import register
from tests.pipeline.corruptions import CORRUPTIONS, Files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STREAMED = QUESTION.rules
Found = list[tuple[object, ...]]
Identity = tuple[str, str, int]


def written(root: Path, files: Files) -> Path:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
    return root


def found_by(result: AuditResult) -> Found:
    """Return the findings, but for the commands, which not every source has."""
    return [
        (found.rule, found.severity, found.run, found.uuid, found.seq, found.at, found.detail)
        for found in result.findings
    ]


def streamed(root: Path, state: Path) -> Found:
    findings = FindingsFile(state / "findings.jsonl")
    follower = JournalFollower(root, StreamCheckpoint(state, root), findings, lambda _: None, lambda _: None)
    follower.look(0, at_once=True)
    runs = {folder.name.removeprefix("run=") for folder in root.iterdir() if folder.is_dir()}
    all_found = (found for run in runs for found in findings.of_run(run))
    return sorted((f.rule, f.severity, f.run, f.uuid, f.seq, f.at, f.detail) for f in all_found)


@pytest.mark.parametrize("corruption", CORRUPTIONS)
def test_without_spark(corruption: str, tmp_path: Path) -> None:
    root = written(tmp_path / "journal", CORRUPTIONS[corruption]())
    here = audit([root])
    update_store([root], tmp_path / "tables")
    stored = audit([tmp_path / "tables"])
    assert found_by(stored) == found_by(here)
    kept = {
        name: here.counts[name] for name in ("records", "runs", "incarnations", "quarantined", "contradicting", "views")
    }
    assert {name: stored.counts[name] for name in kept} == kept
    assert stored.incomplete.keys() == here.incomplete.keys()
    if corruption not in (
        "a file in the folder of another run",
        "another content in the folder of another run",
        "a loose copy",
        "no run",
    ):
        # A stream quarantines lines of another run; and follows no loose files.
        assert streamed(root, tmp_path / "stream") == sorted(found_by(audit([root], rules=STREAMED)))


@pytest.mark.long
@pytest.mark.parametrize("corruption", CORRUPTIONS)
def test_tables_do_not_depend_on_what_came_first(corruption: str, tmp_path: Path) -> None:
    """Each file is folded in by itself, the last one first: the events are those of all at once."""
    files = CORRUPTIONS[corruption]()
    root = written(tmp_path / "journal", files)
    update_store([root], tmp_path / "at once")
    for name in sorted(files, reverse=True):
        update_store([root / name], tmp_path / "by parts")
    assert _events(tmp_path / "by parts") == _events(tmp_path / "at once")


@pytest.mark.long
@pytest.mark.timeout(900)
def test_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    for number, (corruption, files) in enumerate(CORRUPTIONS.items()):
        root = written(tmp_path / str(number), files())
        here, there = audit([root]), audit([root], spark=spark)
        assert (found_by(there), there.counts) == (found_by(here), here.counts), corruption
        update_store([root], tmp_path / f"tables-{number}")
        register(spark, root, prefix="corrupt_")
        rows = spark.table("corrupt_events").select("run", "uuid", "seq", "at", "file", "line").collect()
        viewed = {(row.run, row.uuid, row.seq): (row.at, row.file, row.line) for row in rows}
        assert len(viewed) == len(rows), corruption
        assert viewed == _events(tmp_path / f"tables-{number}"), corruption


def _events(store: Path) -> dict[Identity, tuple[int, str, int]]:
    rows = pyarrow.dataset.dataset(store / "events").to_table().to_pylist()
    return {(row["run"], row["uuid"], row["seq"]): (row["at"], row["file"], row["line"]) for row in rows}


def test_all_rules_of_a_stream_are_rules() -> None:
    assert set(STREAMED) < set(NAMES)
