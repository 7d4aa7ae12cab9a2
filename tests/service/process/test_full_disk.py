"""A member whose disk is full, really: what it says meanwhile, and how its journal goes on when there is room again."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from quarterdeck.backend.core.events import JournalChanged
from quarterdeck.backend.journal.reader import read_journal
from tests.service.member_processes import BASE_PORT, MemberProcess, end
from tests.waiting import wait_until

PORT = BASE_PORT + 50
SMALL_DISK = ("unshare", "-rm", "sh", "-c", 'mount -t tmpfs -o size=512k full "$0" && exec "$@"')
"""Followed by the folder that becomes a small disk, and the command to run there."""

WRITABLE = "hazelcast: {network: {rest-api: {endpoint-groups: {CLUSTER_WRITE: {enabled: true}}}}}\n"


def has_room_for_namespaces() -> bool:
    if shutil.which("unshare") is None:
        return False
    return subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False, timeout=10).returncode == 0


@pytest.mark.skipif(not has_room_for_namespaces(), reason="this machine does not allow namespaces with mounts")
def test_the_journal_goes_on_when_there_is_room_again(tmp_path: Path) -> None:
    folder = tmp_path / "disk"
    folder.mkdir()
    file = tmp_path / "member.yaml"
    file.write_text(WRITABLE)
    member = MemberProcess(
        tmp_path, "athens", f"--config={file}", f"--journal={folder}", port=PORT, within=(*SMALL_DISK, str(folder))
    )
    try:
        member.ready()
        disk = Path(f"/proc/{member.process.pid}/root{folder}")
        filler = disk / "filler"
        with filler.open("wb", buffering=0) as filling, pytest.raises(OSError, match="No space"):
            while True:
                filling.write(bytes(4096))

        def is_failing() -> bool:
            member.post("/hazelcast/rest/config/tcp-ip/member-list", f"dev&&127.0.0.1:{PORT}")  # which is recorded
            return bool(member.get("/hazelcast/health").json()["journalFailure"])

        wait_until(is_failing, lambda: member.log)
        health = member.get("/hazelcast/health")
        assert health.status_code == 200 and "No space left on device" in health.json()["journalFailure"]
        metrics = member.get("/metrics").text
        assert "quarterdeck_journal_failing 1.0" in metrics
        assert "ERROR" in member.log and "the journal of run dev cannot be written" in member.log
        filler.unlink()
        member.until(lambda: not member.get("/hazelcast/health").json()["journalFailure"])
        assert "quarterdeck_journal_failing 0.0" in member.get("/metrics").text

        def changes() -> list[bool]:
            found = [record.event for record in read_journal(disk) if isinstance(record.event, JournalChanged)]
            return [bool(event.failure) for event in found if event.target == "athens"]

        wait_until(lambda: changes() == [True, False], lambda: f"{changes()}\n{member.log}")
        journal = read_journal(disk)
        numbers: dict[str, list[int]] = {}
        for record in journal:
            numbers.setdefault(record.uuid, []).append(record.seq)
        assert all(sorted(found) == list(range(1, len(found) + 1)) for found in numbers.values())
        assert not journal.problems and "Traceback" not in member.log
    finally:
        end(member)


def test_two_members_of_one_name_do_not_share_a_journal(tmp_path: Path) -> None:
    journal = f"--journal={tmp_path / 'journal'}"
    first = MemberProcess(tmp_path, "athens", journal, port=PORT)
    try:
        first.ready()
        second = MemberProcess(tmp_path, "athens", journal, f"--ready-file={tmp_path / 'second'}", port=PORT + 1)
        try:
            assert second.ends_with() == 2
            assert "writes the records of athens in run dev" in second.log and "another name" in second.log
        finally:
            end(second)
    finally:
        end(first)
