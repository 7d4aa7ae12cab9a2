"""Journals that grow: every whole line lies between two offsets once, whatever is open, finished, gone or found again."""

from __future__ import annotations

import json
import os
from pathlib import Path
from random import Random

import pytest
from msgspec.structs import replace

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.journal.files import NoJournal, merged_name, run_directory
from quarterdeck.backend.pipeline.audit import audit
from quarterdeck.backend.pipeline.growth import GrowingJournals, Offset, pieces_between, with_merged
from quarterdeck.backend.pipeline.rules import Finding, by_weight
from quarterdeck.backend.pipeline.streaming.followed_run import Block, Blocks, FollowedRun, changes_between
from tests.pipeline.journal_builder import line
from tests.pipeline.streaming.faulty_runs import faulty_run
from tests.pipeline.streaming.written_journal import RUN, Journal, expected
from tests.thoroughness import long_after

LATE_MS = 300


def lines_between(start: Offset, end: Offset) -> list[bytes]:
    return [raw for piece in pieces_between(start, end) for raw in piece.read().splitlines()]


def stored(offset: Offset) -> Offset:
    """As Spark keeps it."""
    return json.loads(json.dumps(offset))


@pytest.mark.parametrize("seed", long_after(3, range(12)))
def test_every_line_comes_once_however_files_grow(tmp_path: Path, seed: int) -> None:
    draw = Random(seed)
    records = faulty_run(RUN, seed)
    journal = Journal(tmp_path, records)
    growing, offset, read = GrowingJournals([tmp_path]), stored({}), list[bytes]()
    for record in records:
        journal.write(record)
        if draw.random() < 0.05:
            with journal._open[record.member].open("ab") as torn:
                torn.write(half := line(record)[:30])
            offset, before = stored(growing.offset()), offset
            read += lines_between(before, offset)
            with journal._open[record.member].open("r+b") as torn:
                torn.truncate(torn.seek(0, 2) - len(half))
        if draw.random() < 0.1 and journal.writing:
            journal.seal(draw.choice(journal.writing))
        if draw.random() < 0.02:  # another process goes on, with what was kept
            growing = GrowingJournals([tmp_path])
    planned = stored(growing.offset())
    journal.seal_all()
    read += lines_between(offset, planned)  # finished after it was planned
    read += lines_between(planned, stored(growing.offset()))
    assert sorted(read) == sorted(line(record).rstrip(b"\n") for record in records)


def test_offsets_are_short_and_gaps_are_filled(tmp_path: Path) -> None:
    directory = run_directory(tmp_path, "r")
    directory.mkdir()
    for number in (1, 2, 3, 5, 6):
        (directory / f"n1-{number:06d}.jsonl").write_bytes(b"line %d\n" % number)
    for name in ("findings.jsonl", "n1-7.jsonl", "notes-000001.txt"):
        (directory / name).write_bytes(b"no journal\n")
    first = stored(GrowingJournals([tmp_path]).offset())
    assert first == {str(tmp_path): {"r": {"n1": "1-3 5-6"}}}
    (directory / "n1-000004.jsonl").write_bytes(b"line 4\n")
    (directory / "n1-000001.jsonl").unlink()
    second = stored(GrowingJournals([directory]).offset())
    assert second == {str(tmp_path): {"r": {"n1": "2-6"}}}
    assert lines_between(first, second) == [b"line 4"]


def test_merged_files_are_read_once_in_place_of_those_that_they_hold(tmp_path: Path) -> None:
    directory = run_directory(tmp_path, "r")
    directory.mkdir()
    for number in range(1, 7):
        (directory / f"n1-{number:06d}.jsonl").write_bytes(b"line %d\n" % number)
    before = stored(GrowingJournals([tmp_path]).offset())
    merged = directory / merged_name("n1", 2, 5)
    merged.write_bytes(b"".join(b"line %d\n" % number for number in range(2, 6)))
    for number in range(2, 6):
        (directory / f"n1-{number:06d}.jsonl").unlink()
    assert stored(GrowingJournals([tmp_path]).offset()) == before
    pieces = list(with_merged(pieces_between({}, before)))
    assert [piece.file.name for piece in pieces] == ["n1-000001.jsonl", merged.name, "n1-000006.jsonl"]
    planned = [piece.read() for piece in pieces_between({}, before)]  # merged after it was planned
    assert planned[1] == pieces[1].read() == merged.read_bytes()


def test_what_is_no_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NoJournal, match="nowhere: no such directory"):
        GrowingJournals([tmp_path / "nowhere"])


@pytest.mark.parametrize("seed", long_after(3, range(12)))
def test_a_followed_run_has_the_findings_of_the_audit(tmp_path: Path, seed: int) -> None:
    """Blocks of several files come in any order and with long delays, and the judge is lost now and then."""
    draw = Random(seed)
    journal = Journal(tmp_path, faulty_run(RUN, seed))
    for record in journal.records:
        journal.write(record)
        if draw.random() < 0.1:
            journal.seal(record.member)
    journal.seal_all()
    blocks = [Block(str(file), 0, file.read_bytes()) for file in journal.sealed]
    for _ in range(5):  # some come late
        blocks.append(blocks.pop(draw.randrange(len(blocks))))
    kept: list[Blocks] = []
    found: list[Finding] = []
    run, judged_us, now_ms = FollowedRun(RUN), -1, 0
    while blocks or run.waits:
        now_ms += draw.randrange(2 * LATE_MS)
        if blocks:
            kept.append(Blocks(now_ms, tuple(blocks.pop(0) for _ in range(draw.randint(1, min(4, len(blocks)))))))
        if draw.random() < 0.2:  # another worker goes on
            run = FollowedRun(RUN)
        run.kept = lambda first: kept[first:]
        changed = run.judge(judged_us, now_ms - LATE_MS, is_quiet=not blocks)
        judged_us = max(judged_us, run.judged_us)
        if changed is not None:
            added, withdrawn = changes_between(found, changed)
            found = [finding for finding in found if finding not in withdrawn] + added
    assert by_weight(found) == by_weight(expected(journal))


def test_a_run_whose_clocks_leap_is_judged_as_a_whole(tmp_path: Path) -> None:
    records = faulty_run(RUN, 3)
    leaping = [record if place % 50 else later(record) for place, record in enumerate(records)]
    journal = Journal(tmp_path, leaping)
    for record in leaping:
        journal.write(record)
    journal.seal_all()
    run = FollowedRun(RUN)
    kept = [Blocks(0, (Block(str(file), 0, file.read_bytes()),)) for file in journal.sealed]
    run.kept = lambda first: kept[first:]
    found = run.judge(-1, 0, is_quiet=True)
    whole = [finding for finding in audit([journal.directory]).findings if finding.rule != "convergence"]
    assert found == by_weight(whole) and not run.waits


def later(record: Record) -> Record:
    return replace(record, at=record.at + 10**15)


def test_what_is_no_file_does_not_stop_a_stream(tmp_path: Path) -> None:
    run = run_directory(tmp_path, RUN)
    (run / "folder-000001.jsonl").mkdir(parents=True)
    os.mkfifo(run / "pipe-000001.jsonl")
    (run / "link-000001.jsonl").symlink_to("nowhere")
    (run / "file-000001.jsonl").write_bytes(b"{}\n")
    assert GrowingJournals([tmp_path]).offset() == {str(tmp_path): {RUN: {"file": "1"}}}
