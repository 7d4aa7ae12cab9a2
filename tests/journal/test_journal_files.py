"""Journals are written by the real writer to real files, and by a process that is really killed."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import msgspec
import pytest

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.core.events import Record
from quarterdeck.backend.core.link_condition import LinkChanged
from quarterdeck.backend.core.membership.events import JoinFailed, MasterChanged
from quarterdeck.backend.core.partitions.events import PartitionLost
from quarterdeck.backend.journal import writer as writer_module
from quarterdeck.backend.journal.files import FINDINGS_FILE, OPEN_DIRECTORY, NoJournal
from quarterdeck.backend.journal.reader import list_runs, read_journal
from quarterdeck.backend.journal.recovery import recover_open_files
from quarterdeck.backend.journal.upkeep import Retention
from quarterdeck.backend.journal.writer import JournalFailed, JournalInUse, JournalWriter
from tests.waiting import wait_until

REPOSITORY = Path(__file__).parents[2]


def record(seq: int, *, run: str = "r1", member: str = "athens", uuid: str = "u1", at: int | None = None) -> Record:
    event = MasterChanged(Address("10.0.0.1:5701"), "first to start")
    return Record(run, member, uuid, seq, seq * 10 if at is None else at, 1_000_000 + seq, event)


def as_line(value: Record) -> bytes:
    return msgspec.json.encode(value) + b"\n"


def test_what_is_appended_is_read_back(tmp_path: Path) -> None:
    wanted = [record(seq) for seq in range(1, 600)]
    wanted.append(
        Record("r1", "athens", "u1", 600, 6_000, 7, JoinFailed({Address("[fe80::1]:5701"): 'said "no"\nand left'}))
    )
    with JournalWriter(tmp_path, "r1", "console") as journal:
        for entry in wanted:
            journal.append(entry)
    found = read_journal(tmp_path)
    assert list(found) == wanted
    assert found.problems == []
    assert not list((tmp_path / OPEN_DIRECTORY).iterdir())


def test_only_its_user_reads_a_journal(tmp_path: Path) -> None:
    with JournalWriter(tmp_path, "r1", "console") as journal:
        journal.append(record(1))
        journal.flush()
        assert {path.stat().st_mode & 0o777 for path in tmp_path.rglob("*") if path.is_file()} == {0o600}
    assert {path.stat().st_mode & 0o777 for path in tmp_path.rglob("*") if path.is_file()} == {0o600}


def test_flushed_records_can_be_read_while_the_file_is_open(tmp_path: Path) -> None:
    with JournalWriter(tmp_path, "r1", "console") as journal:
        journal.append(record(1))
        journal.flush()
        assert list(read_journal(tmp_path)) == [record(1)]
        assert list(read_journal(tmp_path / "run=r1")) == [record(1)]


def test_the_background_thread_writes_and_rotates_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "ROTATE_SECONDS", 0.1)
    with JournalWriter(tmp_path, "r1", "console") as journal:
        journal.append(record(1))
        wait_until(lambda: list(tmp_path.glob("run=r1/*.jsonl")))
        journal.append(record(2))
        wait_until(lambda: len(list(tmp_path.glob("run=r1/*.jsonl"))) == 2)
    assert [path.name for path in sorted(tmp_path.glob("run=r1/*"))] == ["console-000001.jsonl", "console-000002.jsonl"]
    assert list(read_journal(tmp_path)) == [record(1), record(2)]


def test_of_more_than_may_be_kept_the_oldest_files_go(tmp_path: Path) -> None:
    most_bytes = 3 * len(as_line(record(10)))  # of which the open file has a part
    (tmp_path / "run=r1").mkdir()
    (tmp_path / "run=r1" / "console-000001.jsonl").write_bytes(as_line(record(1, uuid="another writer's")))
    with JournalWriter(
        tmp_path, "r1", "witness", rotate_seconds=0, retention=Retention(most_bytes=most_bytes)
    ) as journal:
        for seq in range(1, 7):
            journal.append(record(seq))
            wait_until(lambda seq=seq: (tmp_path / "run=r1" / f"witness-{seq:06}.jsonl").exists())
    kept = [record.seq for record in read_journal(tmp_path) if record.uuid == "u1"]
    assert kept == [5, 6]
    assert (tmp_path / "run=r1" / "console-000001.jsonl").exists()


def test_large_files_are_rotated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "ROTATE_BYTES", 10_000)
    monkeypatch.setattr(writer_module, "ROTATE_SECONDS", 3600.0)
    with JournalWriter(tmp_path, "r1", "console") as journal:
        for seq in range(1, 1001):
            journal.append(record(seq))
            if seq % 250 == 0:
                journal.flush()
                journal.append(record(seq))  # a duplicate, dropped by readers; wakes the thread, which rotates
                wait_until(lambda: not list((tmp_path / OPEN_DIRECTORY).iterdir()))
    assert len(list(tmp_path.glob("run=r1/*.jsonl"))) > 1
    assert [record.seq for record in read_journal(tmp_path)] == list(range(1, 1001))


def test_many_threads_append_to_one_writer(tmp_path: Path) -> None:
    with JournalWriter(tmp_path, "r1", "console") as journal:

        def append_life(uuid: str) -> None:
            for seq in range(1, 301):
                journal.append(record(seq, uuid=uuid))

        threads = [threading.Thread(target=append_life, args=(f"u{number}",)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    found = list(read_journal(tmp_path))
    assert sorted((record.uuid, record.seq) for record in found) == [
        (f"u{n}", seq) for n in range(4) for seq in range(1, 301)
    ]


CHILD = """
import sys
from pathlib import Path
from tests.journal.test_journal_files import record
from quarterdeck.backend.journal.writer import JournalWriter
journal = JournalWriter(Path(sys.argv[1]), "r1", "child")
seq = 0
while True:
    for _ in range(50):
        seq += 1
        journal.append(record(seq))
    journal.flush()
    print(seq, flush=True)
"""


def test_a_killed_writer_loses_nothing_that_it_flushed(tmp_path: Path) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, str(tmp_path)], stdout=subprocess.PIPE, cwd=REPOSITORY, text=True
    )
    assert child.stdout is not None
    flushed = 0
    while flushed < 3_000:
        flushed = int(child.stdout.readline())
    os.kill(child.pid, signal.SIGKILL)
    for line in child.stdout.read().splitlines():
        flushed = int(line)
    child.wait()
    left_open = list((tmp_path / OPEN_DIRECTORY).iterdir())
    assert left_open
    before = [record.seq for record in read_journal(tmp_path)]
    assert before[:flushed] == list(range(1, flushed + 1))

    with left_open[0].open("ab") as file:  # what a kill in the middle of a large write leaves
        file.write(b'{"run":"r1","member":"ath')
    # the kill itself may have come in the middle of a write as well
    torn_bytes = len(left_open[0].read_bytes().rpartition(b"\n")[2])
    with JournalWriter(tmp_path, "r2", "child") as journal:
        assert [(recovered.file, recovered.torn_bytes) for recovered in journal.recovered] == [
            (left_open[0], torn_bytes)
        ]
        assert f"{torn_bytes} torn bytes" in journal.recovered[0].reason
    found = read_journal(tmp_path)
    assert [record.seq for record in found] == before
    assert found.problems == []
    assert not list((tmp_path / OPEN_DIRECTORY).iterdir())


def test_a_living_writers_file_is_not_recovered(tmp_path: Path) -> None:
    with JournalWriter(tmp_path, "r1", "one") as first:
        first.append(record(1))
        first.flush()
        with JournalWriter(tmp_path, "r1", "two") as second:
            assert second.recovered == ()
            second.append(record(1, uuid="u2", member="delphi"))
        first.append(record(2))
    assert len(list(read_journal(tmp_path))) == 3


def test_recovery_keeps_a_record_that_only_lacks_its_newline(tmp_path: Path) -> None:
    leftover = tmp_path / OPEN_DIRECTORY / "old-000007.jsonl.open"
    leftover.parent.mkdir()
    leftover.write_bytes(as_line(record(1)) + as_line(record(2)).rstrip())
    (recovered,) = recover_open_files(tmp_path)
    assert recovered.sealed == tmp_path / "run=r1" / "old-000007.jsonl"
    assert recovered.torn_bytes == 0
    assert recovered.sealed.read_bytes() == as_line(record(1)) + as_line(record(2))


def test_recovery_of_files_without_a_record(tmp_path: Path) -> None:
    opened = tmp_path / OPEN_DIRECTORY
    opened.mkdir()
    (opened / "empty-000001.jsonl.open").touch()
    (opened / "strange-000001.jsonl.open").write_bytes(b"not ours\n")
    (opened / "torn-000001.jsonl.open").write_bytes(b'{"run":')
    assert [(file.file.name, file.sealed, file.torn_bytes) for file in recover_open_files(tmp_path)] == [
        ("empty-000001.jsonl.open", None, 0),
        ("strange-000001.jsonl.open", None, 0),
        ("torn-000001.jsonl.open", None, 7),
    ]
    assert [path.name for path in opened.iterdir()] == ["strange-000001.jsonl.open"]


def test_a_finished_file_is_never_replaced(tmp_path: Path) -> None:
    sealed = tmp_path / "run=r1" / "old-000001.jsonl"
    sealed.parent.mkdir()
    sealed.write_bytes(as_line(record(1)))
    opened = tmp_path / OPEN_DIRECTORY
    opened.mkdir()
    (opened / "old-000001.jsonl.open").write_bytes(as_line(record(2)))
    recover_open_files(tmp_path)
    assert [record.seq for record in read_journal(tmp_path)] == [1, 2]


def test_records_come_in_order_of_time_and_then_as_written(tmp_path: Path) -> None:
    old_life = [record(8, at=50), record(9, at=60)]
    new_life = [record(1, uuid="u2", at=60), record(2, uuid="u2", at=60)]
    early = record(1, uuid="u3", member="delphi", at=1)
    with JournalWriter(tmp_path, "r1", "console") as journal:
        for entry in [*old_life, *new_life, early]:
            journal.append(entry)
    assert list(read_journal(tmp_path)) == [early, *old_life, *new_life]


def test_runs_are_read_one_after_the_other_and_apart(tmp_path: Path) -> None:
    for run in ("r2", "r1"):
        with JournalWriter(tmp_path, run, "console") as journal:
            journal.append(record(1, run=run))
    assert [record.run for record in read_journal(tmp_path)] == ["r1", "r2"]
    assert [record.run for record in read_journal(tmp_path / "run=r2")] == ["r2"]
    assert [record.run for record in read_journal(tmp_path / "run=r1" / "console-000001.jsonl")] == ["r1"]


def test_corrupt_lines_are_reported_and_their_neighbours_kept(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    wrong_type = as_line(record(2)).replace(b'"seq":2', b'"seq":"two"')
    unknown = as_line(record(3)).replace(b"master-changed", b"moon-landed")
    bad_utf8 = as_line(record(4)).replace(b"athens", b"ath\xff")
    deep = b'{"event":' + 100_000 * b"["
    file.write_bytes(
        as_line(record(1)) + wrong_type + unknown + bad_utf8 + deep + b"\n" + as_line(record(5)) + b'{"run"'
    )
    journal = read_journal(file)
    for _ in range(2):
        assert [record.seq for record in journal] == [1, 5]
        assert [(problem.file, problem.line, problem.torn) for problem in journal.problems] == [
            (file, 2, False),
            (file, 3, False),
            (file, 4, False),
            (file, 5, False),
            (file, 7, True),
        ]
    assert "$.seq" in journal.problems[0].reason
    assert "moon-landed" in journal.problems[1].reason
    assert "torn last line of 6 bytes" in journal.problems[4].reason


@pytest.mark.parametrize("name", ["", "a/b", "..", "_open", "[::1]:5701"])
def test_names_that_no_file_can_have(tmp_path: Path, name: str) -> None:
    with pytest.raises(NoJournal, match="cannot name a writer"):
        JournalWriter(tmp_path, "r1", name)
    with pytest.raises(NoJournal, match="cannot name a run"):
        JournalWriter(tmp_path, name, "console")
    assert not list(tmp_path.iterdir())


def test_a_path_without_a_journal(tmp_path: Path) -> None:
    with pytest.raises(NoJournal, match="no such file"):
        read_journal(tmp_path / "nowhere")
    with pytest.raises(NoJournal, match="holds no journal"):
        read_journal(tmp_path)


def test_misuse_is_told(tmp_path: Path) -> None:
    journal = JournalWriter(tmp_path, "r1", "console")
    with pytest.raises(ValueError, match="'r2'"):
        journal.append(record(1, run="r2"))
    journal.close()
    journal.close()
    with pytest.raises(JournalFailed, match="closed"):
        journal.append(record(1))


def test_a_lock_follows_no_link(tmp_path: Path) -> None:
    JournalWriter(tmp_path, "r1", "athens", alone=True).close()
    (tmp_path / OPEN_DIRECTORY / "r1.athens.lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic links"):
        JournalWriter(tmp_path, "r1", "athens", alone=True)
    assert not (tmp_path / "elsewhere").exists()


def test_one_name_belongs_to_one_process(tmp_path: Path) -> None:
    with JournalWriter(tmp_path, "r1", "athens", alone=True):
        with pytest.raises(JournalInUse, match="athens in run r1"):
            JournalWriter(tmp_path, "r1", "athens", alone=True)
        JournalWriter(tmp_path, "r2", "athens", alone=True).close()
        JournalWriter(tmp_path, "r1", "delphi", alone=True).close()
    JournalWriter(tmp_path, "r1", "athens", alone=True).close()
    assert not list((tmp_path / OPEN_DIRECTORY).iterdir())


def test_listing_of_runs(tmp_path: Path) -> None:
    with JournalWriter(tmp_path, "r1", "console") as journal:
        journal.append(record(1))
        journal.append(record(1, member="delphi", uuid="u2"))
        link = LinkChanged("athens", "delphi", blocked="blackhole")
        journal.append(Record("r1", "dev", "r1", 1, 5, 2_000_000, link))
    with JournalWriter(tmp_path, "r2", "console") as journal:
        journal.append(record(1, run="r2"))
        journal.flush()
        (tmp_path / "run=r1" / "torn-000001.jsonl").write_bytes(b'{"run":"r')
        first, second = list_runs(tmp_path)
    assert (first.run, first.files, first.records, first.members) == ("r1", 2, 3, ("athens", "delphi"))
    assert (first.first_utc, first.last_utc) == (1_000_001, 2_000_000)
    assert [(problem.file.name, problem.torn) for problem in first.problems] == [("torn-000001.jsonl", True)]
    assert (second.run, second.files, second.records, second.problems) == ("r2", 1, 1, ())
    assert second.size_bytes == len(as_line(record(1, run="r2")))


def test_findings_beside_a_journal_are_no_part_of_it(tmp_path: Path) -> None:
    with JournalWriter(tmp_path, "r1", "one") as journal:
        journal.append(record(1))
    for place in (tmp_path, tmp_path / "run=r1"):
        (place / FINDINGS_FILE).write_text('{"rule":"version"}\n')
    found = read_journal(tmp_path)
    assert [record.seq for record in found] == [1] and found.problems == []


def test_a_members_own_loss_is_written_as_before_witnesses_judged_losses() -> None:
    own = msgspec.json.decode(msgspec.json.encode(PartitionLost(3, 6)))
    assert own == {"kind": "partition-lost", "partition": 3, "lost_backups": 6}

    judged = msgspec.json.decode(msgspec.json.encode(PartitionLost(3, 1, data_lost=True, lost_maps=("orders",))))
    assert judged == {**own, "lost_backups": 1, "data_lost": True, "lost_maps": ["orders"]}
