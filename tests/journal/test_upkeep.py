"""Finished files of a journal are merged and retired, and every reader finds each record once all the while."""

from __future__ import annotations

import os
import time
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.journal import upkeep
from quarterdeck.backend.journal import writer as writer_module
from quarterdeck.backend.journal.files import current_path, journal_files, next_number, numbers_of, sealed_files
from quarterdeck.backend.journal.reader import JournalProblem, list_runs, read_files, read_journal
from quarterdeck.backend.journal.upkeep import UNLIMITED, Retention, keep_up, retired_of, rows_to_merge
from quarterdeck.backend.journal.writer import JournalWriter
from tests.journal.test_journal_files import as_line, record
from tests.waiting import wait_until

NOON_S = 1_800_000_000.0


@pytest.fixture
def run(tmp_path: Path) -> Path:
    (tmp_path / "run=r1").mkdir()
    return tmp_path / "run=r1"


def write(run: Path, numbers: range, writer: str = "athens", padding: int = 0) -> list[Record]:
    """A file of one record for each number, written a second after the one before."""
    records = [record(number) for number in numbers]
    for entry in records:
        path = run / f"{writer}-{entry.seq:06d}.jsonl"
        path.write_bytes(as_line(entry)[:-1] + b" " * padding + b"\n")
        os.utime(path, (NOON_S + entry.seq, NOON_S + entry.seq))
    return records


def names(run: Path) -> list[str]:
    return sorted(path.name for path in run.iterdir())


def seqs(run: Path) -> list[int]:
    return [record.seq for record in read_journal(run)]


def test_many_small_files_become_a_few(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep, "MERGED_FILES", 8)
    count = 8 * 8 + 20
    write(run, range(1, count + 1))
    for _ in range(2):
        keep_up(run, "athens", UNLIMITED, time.time())
    assert len(sealed_files(run)) == 1 + 2 + 4
    assert sealed_files(run)[0].name == "athens-000001.000064.jsonl"
    assert seqs(run) == list(range(1, count + 1))
    assert {path.stat().st_mode & 0o777 for path in run.glob("*.*.jsonl")} == {0o600}
    keep_up(run, "athens", UNLIMITED, time.time() + 601)
    assert len(names(run)) == 7, "what was merged is gone after a while"
    assert seqs(run) == list(range(1, count + 1))
    assert [listing.missing for listing in list_runs(run.parent)] == [0]
    assert next_number(run.parent, "r1", "athens") == count + 1


def test_what_a_reader_has_listed_is_still_there_or_is_found(run: Path) -> None:
    wanted = write(run, range(1, 71))
    listed = journal_files(run)
    keep_up(run, "athens", UNLIMITED, time.time())
    problems: list[JournalProblem] = []
    assert list(read_files(listed, problems)) == wanted, "the files it has listed are still there"
    keep_up(run, "athens", UNLIMITED, time.time() + 601)
    assert not (run / "athens-000001.jsonl").exists()
    assert list(read_files(listed, problems)) == wanted and not problems, "it finds the merged one, once"
    assert current_path(run / "athens-000064.jsonl") == run / "athens-000001.000064.jsonl"
    assert current_path(run / "delphi-000001.jsonl") is None


def test_files_of_other_writers_and_large_ones_are_left_alone(run: Path) -> None:
    write(run, range(1, 64))
    write(run, range(1, 200), "athens-2")
    write(run, range(64, 65), padding=5 * 1024 * 1024)
    write(run, range(65, 127))
    keep_up(run, "athens", UNLIMITED, time.time())
    assert [name for name in names(run) if numbers_of(name).is_merged] == ["athens-000001.000063.jsonl"]
    assert len(sealed_files(run)) == 1 + 1 + 62 + 199


def test_no_merged_file_is_longer_than_it_may_be(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep, "MERGED_BYTES", 10_000)
    wanted = [record.seq for record in write(run, range(1, 101), padding=900)]
    for _ in range(3):
        keep_up(run, "athens", UNLIMITED, time.time())
    assert max(path.stat().st_size for path in run.iterdir()) <= 10_000
    assert len(sealed_files(run)) < 20 and seqs(run) == wanted
    assert list(rows_to_merge([])) == []


@pytest.mark.parametrize(
    ("retention", "first"),
    [
        (Retention(most_seconds=60.0), 40),
        (Retention(most_bytes=3_000), None),
        (Retention(), 1),
        (Retention(0.1, 1), 100),
    ],
)
def test_what_is_too_old_or_too_much_goes_and_a_note_says_so(
    run: Path, retention: Retention, first: int | None
) -> None:
    write(run, range(1, 101))
    now_s = NOON_S + 100
    keep_up(run, "athens", retention, now_s)
    left = [numbers_of(name).first for name in names(run) if name.endswith(".jsonl")]
    removed = retired_of(run / "athens.retired")
    kept = seqs(run)
    assert kept == list(range(kept[0], 101)) and removed.files == kept[0] - 1
    assert first is None or kept[0] == first
    if retention.most_bytes > 1:
        assert sum(path.stat().st_size for path in sealed_files(run)) <= 3_000 and left
    assert removed.until_utc_s == (NOON_S + kept[0] - 1 if removed.files else 0)
    assert [listing.missing for listing in list_runs(run.parent)] == [0]


@given(st.lists(st.sampled_from([30, 900, 3_000, 6_000]), max_size=60), st.randoms())
def test_whatever_is_merged_no_record_is_lost(sizes: list[int], random: Random) -> None:
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(upkeep, "MERGED_FILES", 5)
        patch.setattr(upkeep, "MERGED_BYTES", 10_000)
        run = Path(folder) / "run=r1"
        run.mkdir()
        for seq, size in enumerate(sizes, start=1):
            write(run, range(seq, seq + 1), padding=size)
            if random.random() < 0.3:
                keep_up(run, "athens", UNLIMITED, time.time() + random.choice((0, 601)))
        assert not sizes or seqs(run) == list(range(1, len(sizes) + 1))


def test_a_file_that_is_finished_late_is_no_part_of_a_merged_one(run: Path) -> None:
    write(run, range(1, 5))
    write(run, range(6, 100))
    keep_up(run, "athens", UNLIMITED, time.time())
    write(run, range(5, 6))
    keep_up(run, "athens", UNLIMITED, time.time() + 601)
    assert seqs(run) == list(range(1, 100))


def test_the_note_adds_up(run: Path) -> None:
    write(run, range(1, 11))
    keep_up(run, "athens", Retention(most_seconds=5), NOON_S + 10)
    keep_up(run, "athens", Retention(most_seconds=5), NOON_S + 12)
    assert retired_of(run / "athens.retired").files == 6
    assert {path.stat().st_mode & 0o777 for path in run.glob("*.retired")} == {0o600}
    (run / "athens.retired").write_text("{")
    assert retired_of(run / "athens.retired").files == 0


def test_a_writer_merges_and_retires_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "UPKEEP_SECONDS", 0.05)
    monkeypatch.setattr(upkeep, "MERGED_FILES", 4)
    with JournalWriter(tmp_path, "r1", "athens", rotate_seconds=0) as journal:
        for seq in range(1, 9):
            journal.append(record(seq))
            wait_until(
                lambda seq=seq: any(numbers_of(path.name).last == seq for path in tmp_path.glob("run=r1/*.jsonl"))
            )
        wait_until(lambda: list(tmp_path.glob("run=r1/athens-*.*.jsonl")))
        assert [record.seq for record in read_journal(tmp_path)] == list(range(1, 9))
        journal.retention = lambda: Retention(most_bytes=1)
        wait_until(lambda: list(tmp_path.glob("run=r1/*.retired")), "an idle writer retires, too")
    assert [record.seq for record in read_journal(tmp_path)][-1] == 8


def test_what_cannot_be_merged_stops_no_recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(writer_module, "keep_up", fail)
    monkeypatch.setattr(writer_module, "UPKEEP_SECONDS", 0.01)
    with JournalWriter(tmp_path, "r1", "athens", rotate_seconds=0) as journal:
        journal.append(record(1))
        wait_until(lambda: list(tmp_path.glob("run=r1/*.jsonl")))
        assert journal.condition.failure == ""
    assert list(read_journal(tmp_path)) == [record(1)]


def test_what_was_merged_goes_with_the_file_that_is_retired(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit that is reached before the parts of a merged file are gone: they are not merged again, for ever."""
    monkeypatch.setattr(upkeep, "MERGED_FILES", 8)
    write(run, range(1, 21))
    now_s = time.time()
    for number, path in enumerate(sorted(run.iterdir()), 1):
        os.utime(path, (now_s, now_s + number - 22))
    for retention in (UNLIMITED, Retention(most_seconds=5.5), Retention(most_seconds=5.5)):
        keep_up(run, "athens", retention, now_s)
    assert seqs(run) == [17, 18, 19, 20]
    assert names(run) == [
        "athens-000017.jsonl",
        *(f"athens-{number:06d}.jsonl" for number in (18, 19, 20)),
        "athens.retired",
    ]
