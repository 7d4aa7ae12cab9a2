"""What a journal does when its disk is full, hangs, fails or loses the files; and how its bytes are bounded."""

import os
import shutil
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from quarterdeck.backend.journal import writer as writer_module
from quarterdeck.backend.journal.reader import list_runs, read_journal
from quarterdeck.backend.journal.upkeep import Retention, keep_up
from quarterdeck.backend.journal.writer import JournalCondition, JournalFailed, JournalWriter
from tests.journal.test_journal_files import as_line, record
from tests.waiting import wait_until


class FullDisk:
    """In the place of `os.write`: takes `room` bytes, then there is no more space until `room` is raised."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, room: int = 0) -> None:
        self.room = room
        self.writes = 0
        self._write = os.write
        monkeypatch.setattr(os, "write", self)

    def __call__(self, descriptor: int, data: bytes) -> int:
        self.writes += 1
        taken = min(self.room, len(data))
        if not taken:
            raise OSError(28, "No space left on device")
        self.room -= taken
        return self._write(descriptor, bytes(data[:taken]))


def test_a_full_disk_is_told_and_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "RETRY_SECONDS", 0.01)
    disk = FullDisk(monkeypatch, room=len(as_line(record(1))) + 20)
    journal = JournalWriter(tmp_path, "r1", "console")
    told: list[JournalCondition] = []
    journal.on_change = told.append
    for seq in (1, 2, 3):
        journal.append(record(seq))
    wait_until(lambda: told)
    assert told == [JournalCondition("No space left on device", waiting=2)] == [journal.condition]
    with pytest.raises(JournalFailed, match="No space left"):
        journal.flush()
    assert list(read_journal(tmp_path)) == [record(1)] and not read_journal(tmp_path).problems
    journal.append(record(4))
    disk.room = 1_000_000
    wait_until(lambda: len(told) == 2)
    assert told[1] == JournalCondition() == journal.condition
    journal.close()
    found = read_journal(tmp_path)
    assert list(found) == [record(seq) for seq in (1, 2, 3, 4)] and not found.problems


def test_what_there_is_no_room_for_is_lost_and_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "RETRY_SECONDS", 0.01)
    monkeypatch.setattr(writer_module, "MOST_KEPT_RECORDS", 5)
    disk = FullDisk(monkeypatch)
    journal = JournalWriter(tmp_path, "r1", "console")
    journal.append(record(1))
    wait_until(lambda: journal.condition.failure)
    monkeypatch.setattr(writer_module, "RETRY_SECONDS", 60)
    wait_until(lambda: journal.condition.waiting == 1)
    for seq in range(2, 21):
        journal.append(record(seq))
    lost = journal.condition.lost
    assert lost >= 10
    monkeypatch.setattr(writer_module, "RETRY_SECONDS", 0.01)
    disk.room = 1_000_000
    journal.flush()
    journal.append(record(21))
    with pytest.raises(JournalFailed, match=f"{lost} records are missing"):
        journal.close()
    (listing,) = list_runs(tmp_path)
    assert listing.missing == lost and listing.records == 21 - lost and not listing.problems


def test_memory_is_bounded_however_often_a_full_disk_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer_module, "RETRY_SECONDS", 0.001)
    monkeypatch.setattr(writer_module, "MOST_KEPT_RECORDS", 50)
    disk = FullDisk(monkeypatch)
    journal = JournalWriter(tmp_path, "r1", "console")
    journal.append(record(1))
    wait_until(lambda: journal.condition.failure)
    for tried in range(10):
        before = disk.writes
        for seq in range(2 + 50 * tried, 52 + 50 * tried):
            journal.append(record(seq))
        wait_until(lambda before=before: disk.writes > before + 1)
        assert journal.condition.waiting <= 50
    assert journal.condition.lost >= 450
    with pytest.raises(JournalFailed):
        journal.close()


def test_a_disk_that_hangs_keeps_no_member_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "MOST_WAITING_RECORDS", 50)
    answers, real = threading.Event(), os.write

    def write(descriptor: int, data: bytes) -> int:
        answers.wait(30)
        return real(descriptor, data)

    monkeypatch.setattr(os, "write", write)
    journal = JournalWriter(tmp_path, "r1", "athens", drops=True)
    for seq in range(1, 201):
        journal.append(record(seq))
    lost = journal.condition.lost
    assert lost == 150 and journal.condition.waiting == 50
    answers.set()
    with pytest.raises(JournalFailed, match=f"{lost} records are missing"):
        journal.close()
    assert len(list(read_journal(tmp_path))) == 50


def test_any_error_of_the_writing_thread_is_noticed_and_it_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer_module, "RETRY_SECONDS", 0.01)
    real = keep_up

    def fail(*_: object) -> None:
        raise RuntimeError("no holder")

    monkeypatch.setattr(writer_module, "keep_up", fail)
    with JournalWriter(tmp_path, "r1", "console") as journal:
        journal.append(record(1))
        wait_until(lambda: journal.condition.failure == "RuntimeError: no holder")
        monkeypatch.setattr(writer_module, "keep_up", real)
        journal.append(record(2))
        wait_until(lambda: not journal.condition.failure)
    assert list(read_journal(tmp_path)) == [record(1), record(2)]


def held_bytes(root: Path) -> int:
    """Return how much the files of a journal hold now."""
    sizes = []
    for path in root.rglob("*.jsonl*"):
        with suppress(FileNotFoundError):  # renamed or removed meanwhile
            sizes.append(path.stat().st_size)
    return sum(sizes)


def test_a_journal_stays_within_its_bytes(tmp_path: Path) -> None:
    most = 60_000
    journal = JournalWriter(tmp_path, "r1", "athens", retention=Retention(most_bytes=most), rotate_seconds=0.01)

    for seq in range(1, 2_001):
        journal.append(record(seq))
        if seq % 20 == 0:
            wait_until(lambda: held_bytes(tmp_path) <= most)
    journal.close()


def test_lines_that_waited_together_become_files_within_the_bytes(tmp_path: Path) -> None:
    most = 60_000
    retention = Retention(most_bytes=most)
    with JournalWriter(tmp_path, "r1", "athens", retention=retention, rotate_seconds=0.01) as journal:
        with journal._file:  # the disk takes nothing until all lines wait
            for seq in range(1, 2_001):
                journal.append(record(seq))
        journal.flush()
        wait_until(lambda: held_bytes(tmp_path) <= most)
    kept = [entry.seq for entry in read_journal(tmp_path)]
    assert kept == list(range(kept[0], 2_001))
    assert len(kept) > 100


def test_a_journal_that_never_gets_room_is_not_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    FullDisk(monkeypatch)
    journal = JournalWriter(tmp_path, "r1", "console")
    journal.append(record(1))
    with pytest.raises(JournalFailed, match="No space left"):
        journal.close()


def test_a_journal_that_was_removed_begins_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "RETRY_SECONDS", 0.01)
    monkeypatch.setattr(writer_module, "ROTATE_SECONDS", 0.1)
    root = tmp_path / "journal"
    told: list[JournalCondition] = []
    with JournalWriter(root, "r1", "console") as journal:
        journal.on_change = told.append
        journal.append(record(1))
        journal.flush()
        shutil.rmtree(root)
        wait_until(lambda: len(told) == 2)
        journal.append(record(2))
    assert list(read_journal(root)) == [record(2)]
