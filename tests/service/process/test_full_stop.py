"""A cluster that is stopped as a whole loses nothing if its maps were exported, whatever is killed while that goes on."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.service.member_processes import BASE_PORT, MemberProcess, members
from tests.waiting import wait_until

ENTRIES = 20_000
PORT = BASE_PORT + 60
RUN = "from quarterdeck.cli.main import run; run()"


def command(*words: str) -> subprocess.Popen[bytes]:
    """Begin a command on maps."""
    return subprocess.Popen(
        [sys.executable, "-c", RUN, "map", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
    )


def result(*words: str) -> dict[str, object]:
    """Run a command on maps to its end, and return what it says."""
    with command(*words) as process:
        said, problem = process.communicate(timeout=120)
    assert process.returncode == 0, problem.decode()
    found: dict[str, object] = json.loads(said)
    return found


def killed_when(process: subprocess.Popen[bytes], listed: Path, lines: int) -> None:
    """Kill the command in the middle, when it has listed so much."""

    def is_there() -> bool:
        assert process.poll() is None, process.stderr.read().decode() if process.stderr else ""
        return listed.exists() and listed.read_bytes().count(b"\n") >= lines

    with process:
        wait_until(is_there)
        process.kill()
    assert process.returncode == -signal.SIGKILL


def size(member: MemberProcess) -> int:
    found: int = member.get("/quarterdeck/v1/maps/default/size").json()["size"]
    return found


@pytest.mark.long
def test_maps_come_back_after_a_full_stop_whatever_was_killed(tmp_path: Path) -> None:
    folder, files, imported = tmp_path / "export", tmp_path / "export/files.jsonl", tmp_path / "export/imported.jsonl"
    with members(tmp_path, 3, base_port=PORT) as here:
        urls = [f"--connect={member.url}" for member in here]
        assert result("load", f"--keys={ENTRIES}", "--value-bytes=50", urls[1])["size"] == ENTRIES
        killed_when(command("export", str(folder), *urls), files, 20)
        goes_on = command("export", str(folder), *urls)
        before = files.read_bytes().count(b"\n")
        wait_until(lambda: files.read_bytes().count(b"\n") > before + 20)
        here[0].process.kill()  # the master, and the owner of a third
        said, problem = goes_on.communicate(timeout=120)
        assert goes_on.returncode == 0, problem.decode()
        assert json.loads(said)["entries"] == ENTRIES
        assert size(here[1]) == ENTRIES
        for member in here[1:]:
            member.process.kill()
    with members(tmp_path, 3, base_port=PORT) as here:
        assert size(here[0]) == 0
        urls = [f"--connect={member.url}" for member in here]
        killed_when(command("import", str(folder), *urls), imported, 20)
        goes_on = command("import", str(folder), *urls)
        before = imported.read_bytes().count(b"\n")
        wait_until(lambda: imported.read_bytes().count(b"\n") > before + 20)
        here[0].process.kill()
        said, problem = goes_on.communicate(timeout=120)
        assert goes_on.returncode == 0, problem.decode()
        assert size(here[1]) == ENTRIES
        last = here[1].get(f"/quarterdeck/v1/maps/default/key-{ENTRIES - 1}").json()
        assert last["value"] == "v" * 50
