"""Files that are skimmed by several processes: what they find, in what order, how far they are, and what cannot be read."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from quarterdeck.backend.hazelcast.logs import parallel_skimming
from quarterdeck.backend.hazelcast.logs.lines.file_splits import FileSplit
from quarterdeck.backend.hazelcast.logs.parallel_skimming import SkimmedSplit, skim_files
from quarterdeck.backend.hazelcast.logs.split_parser import LogOptions
from quarterdeck.backend.judgement.observations.run_reader import ReadProgress, RecordsRead, RunRead, read_run

RECORDING = Path(__file__).parent / "data" / "split-and-merge-log4j2"


@pytest.mark.parametrize("split_bytes", [parallel_skimming.SPLIT_BYTES, 20_000])
def test_processes_find_what_one_finds_and_are_as_far(split_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where each of them has parts of every file."""
    alone = list(read_run(RECORDING))
    monkeypatch.setattr(parallel_skimming, "SHARED_BYTES", 0)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setattr(parallel_skimming, "SPLIT_BYTES", split_bytes)
    apart = list(read_run(RECORDING))
    kinds = (RecordsRead, RunRead)
    assert [it for it in apart if isinstance(it, kinds)] == [it for it in alone if isinstance(it, kinds)]
    for news in (alone, apart):
        progress = [it for it in news if isinstance(it, ReadProgress)]
        assert [it.done for it in progress] == sorted(it.done for it in progress)
        assert progress[-1].done == progress[-1].total > 0


def test_a_file_that_goes_away_is_an_error_that_names_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    files = [tmp_path / "a.log", tmp_path / "b.log"]
    for file in files:
        file.write_text("2026-11-21 12:15:00,000 nothing\n" * 1000)
    monkeypatch.setattr(parallel_skimming, "SHARED_BYTES", 0)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    found = skim_files(files, LogOptions())
    monkeypatch.setattr(parallel_skimming, "_apart", lambda shares, _: gone(shares, files[1]))
    with pytest.raises(OSError, match=r"b\.log"):
        list(found)


def gone(shares: list[list[FileSplit]], file: Path) -> object:
    """Skim in processes, one file of which was removed before they begin."""
    file.unlink()
    return REAL(shares, LogOptions())


REAL = parallel_skimming._apart


def test_an_unfinished_reading_leaves_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel_skimming, "SHARED_BYTES", 0)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    children: list[subprocess.Popen[bytes]] = []
    begin = subprocess.Popen
    monkeypatch.setattr(
        subprocess, "Popen", lambda *words, **more: children.append(begin(*words, **more)) or children[-1]
    )
    found = skim_files(sorted(RECORDING.iterdir()), LogOptions())
    assert isinstance(next(found), int | SkimmedSplit)
    found.close()  # type: ignore[attr-defined]
    assert [child.returncode is None for child in children] == [False, False]
