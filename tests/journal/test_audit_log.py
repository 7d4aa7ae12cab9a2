"""The audit log: what of a client's requests is written, how files end, and how they are read."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quarterdeck.backend.journal import audit_log as module
from quarterdeck.backend.journal.audit_log import (
    LINES_OF_A_STRANGER,
    LINES_OF_A_USER,
    AuditEntry,
    AuditLog,
    AuditLogReader,
    EntryCounter,
    NoAuditLog,
)
from quarterdeck.backend.journal.minute_counter import MOST_KEYS, OTHERS
from quarterdeck.backend.journal.upkeep import Retention
from tests.waiting import wait_until

NOON_S = 1_800_000_000.0


def entry(**changed: Any) -> AuditEntry:
    made: dict[str, Any] = {
        "at": "2026-11-23T12:00:00.000Z", "member": "athens", "address": "10.0.0.9:1234", "user": "ann",
        "identified": True, "what": "PUT /hazelcast/rest/maps/orders/1", "outcome": "done", "status": 200,
    }  # fmt: skip
    return AuditEntry(**(made | changed))


def entry_of_now(**changed: Any) -> AuditEntry:
    """An entry that is young enough for its file to stay open, whenever the tests run."""
    return entry(at=f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S}.000Z", **changed)


def stranger(host: str, **changed: Any) -> AuditEntry:
    refused = {"address": f"{host}:1", "identified": False, "outcome": "refused", "status": 401}
    return entry(**{"user": "root", "what": "POST /x", **refused, **changed})


def test_the_first_requests_of_a_minute_have_lines_and_the_others_are_one() -> None:
    counter = EntryCounter()
    kind = "PUT /hazelcast/rest/maps/"
    written = [line for _ in range(1_000) for line in counter.add(entry(), kind, NOON_S)]
    assert written == [entry()] * LINES_OF_A_USER and counter.counts
    assert list(counter.due(NOON_S + 59)) == []
    (counted,) = counter.due(NOON_S + 60)
    assert (counted.count, counted.what, counted.address) == (1_000 - LINES_OF_A_USER, kind, "10.0.0.9")
    assert list(counter.add(entry(), kind, NOON_S + 60)) == [entry()], "a new minute"
    assert not counter.counts


def test_writes_of_data_push_no_other_request_out() -> None:
    counter = EntryCounter()
    for _ in range(1_000):
        list(counter.add(entry(), "PUT /maps/", NOON_S))
    stop = entry(what="POST /hazelcast/rest/management/cluster/memberShutdown")
    assert list(counter.add(stop, stop.what, NOON_S)) == [stop]
    assert list(counter.add(entry(user="bob"), "PUT /maps/", NOON_S)) == [entry(user="bob")]


def test_a_stranger_has_few_lines_whatever_it_asks_and_whoever_it_says_it_is() -> None:
    counter = EntryCounter()
    asked = [stranger("10.6.6.6", user=f"u{number}", what=f"POST /{number}") for number in range(5_000)]
    assert sum(len(list(counter.add(entry, entry.what, NOON_S))) for entry in asked) == LINES_OF_A_STRANGER
    (counted,) = counter.flush()
    assert (counted.count, counted.outcome, counted.address) == (5_000 - LINES_OF_A_STRANGER, "refused", "10.6.6.6")


def test_many_strangers_at_once_are_counted_together() -> None:
    counter = EntryCounter()
    written = [line for number in range(50_000) for line in counter.add(stranger(f"10.{number}"), "POST /x", NOON_S)]
    assert len(written) == MOST_KEYS + LINES_OF_A_STRANGER
    (counted,) = counter.flush()
    assert (counted.address, counted.count) == (OTHERS, 50_000 - len(written))


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3), st.integers(0, 90)), max_size=300))
def test_every_request_is_in_a_line_or_in_a_count(asked: list[tuple[int, int, int]]) -> None:
    counter, now_s, lines = EntryCounter(), NOON_S, []
    for host, user, seconds in asked:
        now_s += seconds
        one = stranger(f"10.0.0.{host}") if user == 0 else entry(user=f"u{user}", address=f"10.0.0.{host}:1")
        lines += counter.add(one, one.what, now_s)
    lines += counter.flush()
    assert sum(line.count for line in lines) == len(asked)


def test_what_is_written_is_read_and_only_its_user_reads_it(tmp_path: Path) -> None:
    folder = tmp_path / "journal" / "_audit"
    log = AuditLog(folder, "athens")
    first = entry_of_now()
    log.write(first, "PUT")
    wait_until(lambda: (folder / "athens.jsonl").exists())
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
    reader = AuditLogReader(tmp_path / "journal")
    wait_until(lambda: list(reader.new_entries()) == [first])
    log.write(entry_of_now(user="bob"), "PUT")
    log.close()
    assert [entry.user for entry in reader.new_entries()] == ["bob"], "it goes on where it was"
    AuditLog(folder, "athens").close()
    assert len(list(AuditLogReader(folder).new_entries())) == 2


def test_counts_are_written_at_the_end(tmp_path: Path) -> None:
    log = AuditLog(tmp_path, "athens")
    for _ in range(LINES_OF_A_USER + 5):
        log.write(entry(), "PUT /maps/")
    log.close()
    assert sum(entry.count for entry in AuditLogReader(tmp_path).new_entries()) == LINES_OF_A_USER + 5


def test_files_end_by_size_and_the_oldest_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ROTATE_BYTES", 300)
    log = AuditLog(tmp_path, "athens")
    log.retention = lambda: Retention(most_bytes=4_000)
    (tmp_path / "athens-2.jsonl").write_text("the log of a member called athens-2\n")
    for number in range(40):
        log.write(entry(user=f"u{number}"), "PUT")
        wait_until(
            lambda number=number: f"u{number}" in [entry.user for entry in AuditLogReader(tmp_path).new_entries()]
        )
    log.close()
    assert sum(path.stat().st_size for path in tmp_path.glob("athens*")) < 5_000
    assert (tmp_path / "athens-2.jsonl").exists()
    users = [entry.user for entry in AuditLogReader(tmp_path).new_entries()]
    assert users == [f"u{number}" for number in range(40 - len(users), 40)] and len(users) >= 5


def test_a_file_ends_by_age_and_goes_by_age(tmp_path: Path) -> None:
    at = datetime.fromtimestamp(NOON_S, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    old = tmp_path / "athens-20200101T000000000000Z.jsonl"
    for path in (old, tmp_path / "athens-20200102T000000000000Z.jsonl"):
        path.write_bytes(b"{}\n")
        os.utime(path, (1_600_000_000, 1_600_000_000))
    log = AuditLog(tmp_path, "athens")
    log.retention = lambda: Retention(most_seconds=86_400)
    log._write_lines([entry(at=at)], NOON_S)
    assert old.exists()
    log._write_lines([entry(at=at)], NOON_S + 2 * 86_400)
    (left,) = tmp_path.iterdir()
    assert left.read_bytes().count(b"\n") == 2 and left.name != "athens.jsonl"
    log.close()


def test_a_torn_line_ends_before_the_next_one_and_is_counted_as_one_that_is_too_deep_is(tmp_path: Path) -> None:
    (tmp_path / "athens.jsonl").write_bytes(b'{"deep":' + 100_000 * b"[" + b'\n{"at":"2026')
    log = AuditLog(tmp_path, "athens")
    log.write(entry(), "PUT")
    log.close()
    reader = AuditLogReader(tmp_path)
    assert list(reader.new_entries()) == [entry()] and reader.problems == 2


def test_a_disk_that_fails_loses_nothing_for_a_while(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RETRY_SECONDS", 0.01)
    folder = tmp_path / "a"
    log = AuditLog(folder, "athens")
    folder.rmdir()
    folder.touch()
    log.write(entry(), "PUT")
    wait_until(lambda: log._failed)
    folder.unlink()  # the folder is made anew
    wait_until(lambda: folder.is_dir() and list(folder.iterdir()))
    log.close()
    assert list(AuditLogReader(folder).new_entries()) == [entry()]


def test_where_there_is_none_it_says_so(tmp_path: Path) -> None:
    with pytest.raises(NoAuditLog, match="holds no audit log"):
        AuditLogReader(tmp_path)


def test_an_audit_log_follows_no_link(tmp_path: Path) -> None:
    (tmp_path / "athens.jsonl").symlink_to(tmp_path / "elsewhere")
    log = AuditLog(tmp_path, "athens")
    log.write(entry(), "POST /x")
    log.close()
    assert not (tmp_path / "elsewhere").exists()
