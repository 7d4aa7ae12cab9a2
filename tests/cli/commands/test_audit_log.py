"""`quarterdeck member audit-log`: filters, forms and following."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from quarterdeck.backend.journal.audit_log import AuditLog
from quarterdeck.cli.main import app
from tests.cli.conftest import Quarterdeck
from tests.journal.test_audit_log import entry, stranger

EARLY, LATE = "2026-11-23T12:00:00.000Z", "2026-11-23T14:00:00.000Z"


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("journal")
    for label, lines in (
        ("athens", [entry(at=EARLY, detail="state=FROZEN"), stranger("10.6.6.6", at=LATE)]),
        ("delphi", [entry(at="2026-11-23T13:00:00.000Z", member="delphi", user="bob")]),
    ):
        log = AuditLog(root / "_audit", label)
        for line in lines:
            log.write(line, line.what)
        log.close()
    return root


def printed(*words: Any) -> list[dict[str, Any]]:
    done = CliRunner().invoke(app, ["member", "audit-log", *map(str, words), "-o", "json"])
    assert done.exit_code == 0, done.output
    rows: list[dict[str, Any]] = json.loads(done.stdout)
    return rows


def test_members_come_in_order_of_time(journal: Path) -> None:
    assert [row["user"] for row in printed(journal)] == ["ann", "bob", "root"]
    assert [row["identified"] for row in printed(journal / "_audit")] == [True, True, False]


@pytest.mark.parametrize(
    ("words", "users"),
    [
        (["--user", "bob"], ["bob"]),
        (["--address", "10.6.6.6"], ["root"]),
        (["--address", "10.0.0.9:1234"], ["ann", "bob"]),
        (["--outcome", "refused"], ["root"]),
        (["--what", "FROZEN"], ["ann"]),
        (["--since", "2026-11-23T14:30+01:00"], ["root"]),
        (["--since", "2026-11-23T13:00"], ["bob", "root"]),
        (["--user", "bob", "--outcome", "refused"], []),
    ],
)
def test_filters(journal: Path, words: list[str], users: list[str]) -> None:
    assert [row["user"] for row in printed(journal, *words)] == users


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--since", "yesterday"], "is not a time; write 2026-01-31T12:00"),
        (["--follow", "-o", "csv"], "--follow: csv has an end"),
    ],
)
def test_bad_input(journal: Path, words: list[str], said: str) -> None:
    done = CliRunner().invoke(app, ["member", "audit-log", str(journal), *words])
    assert done.exit_code != 0 and said in str(done.exception or done.output) + done.output


def test_what_the_system_refuses_is_named(journal: Path, tmp_path: Path, quarterdeck: Quarterdeck) -> None:
    (tmp_path / "broken.jsonl").symlink_to("/proc/self/mem")  # its beginning cannot be read
    done = quarterdeck("member", "audit-log", tmp_path)
    assert (done.returncode, done.stderr) == (2, f"quarterdeck: {tmp_path}/broken.jsonl: Input/output error\n")


@pytest.mark.parametrize("output", ["table", "jsonl"])
def test_a_full_disk_is_one_line(
    journal: Path, output: str, quarterdeck: Quarterdeck, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Path("/dev/full").open("w") as full:
        monkeypatch.setattr(sys, "stdout", full)
        done = quarterdeck("member", "audit-log", journal, "-o", output)
    assert (done.returncode, done.stderr) == (2, "quarterdeck: No space left on device\n")


def test_it_follows_until_it_is_interrupted(journal: Path) -> None:
    program = [sys.executable, "-c", "from quarterdeck.cli.main import run; run()"]
    with subprocess.Popen(
        [*program, "member", "audit-log", str(journal), "--follow"], stdout=subprocess.PIPE, text=True
    ) as following:
        assert following.stdout is not None
        first = [following.stdout.readline() for _ in range(3)]
        assert "root (not identified) at 10.6.6.6:1, POST /x, refused" in first[2]
        log = AuditLog(journal / "_audit", "athens")
        log.write(entry(at=LATE, user="late"), "PUT")
        log.close()
        assert "late at 10.0.0.9:1234" in following.stdout.readline()
        following.send_signal(signal.SIGINT)
        assert following.wait(20) == 0
