"""An audit of a journal whose beginning was retired says so, judges what is there, and accuses no member of what is gone."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from random import Random

import pytest

import quarterdeck
from quarterdeck.backend.journal import upkeep
from quarterdeck.backend.journal.reader import read_journal
from quarterdeck.backend.journal.upkeep import UNLIMITED, Retention, keep_up
from quarterdeck.backend.pipeline.audit import audit
from quarterdeck.backend.pipeline.streaming.stream import stream, stream_paths
from quarterdeck.backend.pipeline.tables.store import update_store
from tests.journal.test_journal_files import as_line

SCENARIOS = Path("tests/scenarios")
NOON_S = 1_800_000_000.0


def member_files(root: Path, scenario: str, records_each: int = 10) -> Path:
    """The run of a scenario as its members would have recorded it, in files of so many records."""
    quarterdeck.simulate(SCENARIOS / scenario, seed=1, journal=root / "whole")
    records = list(read_journal(root / "whole"))
    run = root / "journal" / f"run={records[0].run}"
    run.mkdir(parents=True)
    for member in {record.member for record in records}:
        own = [record for record in records if record.member == member]
        for number, place in enumerate(range(0, len(own), records_each), start=1):
            some = own[place : place + records_each]
            path = run / f"{member}-{number:06d}.jsonl"
            path.write_bytes(b"".join(map(as_line, some)))
            os.utime(path, (NOON_S + some[-1].at / 1e6, NOON_S + some[-1].at / 1e6))
    return run


def writers(run: Path) -> set[str]:
    return {path.name.rpartition("-")[0] for path in run.glob("*.jsonl")}


@pytest.mark.parametrize("scenario", ["p-merge-discard.yaml", "p-merge-latest-access.yaml", "claim-a-to-f.yaml"])
@pytest.mark.parametrize("seed", range(3))
def test_no_false_findings(tmp_path: Path, scenario: str, seed: int) -> None:
    run, random = member_files(tmp_path, scenario), Random(seed)
    most = [random.randrange(1, 20_000) for _ in writers(run)]
    for writer, most_bytes in zip(sorted(writers(run)), most, strict=True):
        keep_up(run, writer, Retention(most_bytes=most_bytes), NOON_S)
    found = audit([tmp_path / "journal"])
    assert list(found.findings) == []
    (said,) = found.incomplete.values()
    assert said.startswith("its beginning was retired: ") and " files of " in said
    (left_out,) = found.not_judged
    assert "no lost write" in left_out.rules and "view order" not in left_out.rules


def test_what_is_there_is_judged(tmp_path: Path) -> None:
    run = member_files(tmp_path, "claim-a-to-f.yaml")
    for writer in writers(run):
        keep_up(run, writer, Retention(most_bytes=9_000), NOON_S)
    last = sorted(run.glob("*.jsonl"))[-1]
    lines = last.read_bytes().splitlines(keepends=True)
    last.write_bytes(b"".join(lines[:1] + lines[2:]))
    assert {finding.rule for finding in audit([run.parent]).findings} == {"numbering"}, "what is missing in the middle"


def test_a_stream_goes_on_with_merged_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep, "MERGED_FILES", 4)
    run = member_files(tmp_path, "p-merge-discard.yaml")
    said: list[str] = []

    def streamed() -> int:
        where = stream_paths(run.parent)
        once = stream(where, stop=threading.Event(), on_change=lambda _: None, on_message=said.append, once=True)
        return once.violations

    assert streamed() == 0
    for writer in writers(run):
        keep_up(run, writer, UNLIMITED, NOON_S)
        for after_s in (0, 601):
            keep_up(run, writer, UNLIMITED, time.time() + after_s)
    last = sorted(run.glob("athens-*.jsonl"))[-1]
    last.write_bytes(last.read_bytes())
    assert streamed() == 0 and said == [], "each record is there once, and none is missing"
    for writer in writers(run):
        keep_up(run, writer, Retention(most_bytes=5_000), NOON_S)
    (run / "new-000001.jsonl").write_bytes(as_line(next(iter(read_journal(run)))))
    streamed()
    assert len(said) == 1 and "read before and gone" in said[0]


def test_a_merged_journal_is_audited_as_the_one_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep, "MERGED_FILES", 4)
    run = member_files(tmp_path, "p-merge-discard.yaml")
    before = audit([run.parent])
    for writer in writers(run):
        keep_up(run, writer, UNLIMITED, NOON_S)
    after = audit([run.parent])
    assert (after.findings, after.counts["records"]) == (before.findings, before.counts["records"])
    assert after.counts["files"] < before.counts["files"] and after.counts["duplicates"] == 0


def test_tables_are_the_same_when_files_were_merged_between_two_updates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep, "MERGED_FILES", 4)
    run = member_files(tmp_path, "p-merge-discard.yaml")
    before = update_store([run.parent], tmp_path / "tables")
    for writer in writers(run):
        keep_up(run, writer, UNLIMITED, NOON_S)
    after = update_store([run.parent], tmp_path / "tables")
    assert after.files_read > 0 and after.tables == before.tables
    assert after.tables == update_store([run.parent], tmp_path / "anew").tables
