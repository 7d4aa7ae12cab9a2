"""`quarterdeck config check`: what a member would say of its file, without a member."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Quarterdeck


def test_a_good_file(quarterdeck: Quarterdeck, tmp_path: Path) -> None:
    file = tmp_path / "member.yaml"
    file.write_text("hazelcast:\n  instance-name: athens\n  map: {default: {}}\n")
    found = quarterdeck("config", "check", file)
    assert found.returncode == 0
    assert found.stdout == f"{file}: a member starts with it, as athens\n"
    assert f"warning: {file}:3: hazelcast.map: there is nothing of the kind here; it is ignored" in found.stderr


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("hazelcast:\n  network: {jion: {}}", ":2: hazelcast.network.jion: there is no such field; did you mean join?"),
        ("quarterdeck:\n  bind: 10.0.0.7", ":2: quarterdeck.bind: 10.0.0.7 is beyond this machine"),
        (
            "hazelcast:\n  network:\n    ssl: {enabled: true, certificate: none.pem, key: none.key}",
            "network.ssl.certificate: there is no file",
        ),
    ],
)
def test_a_file_with_which_no_member_starts(quarterdeck: Quarterdeck, tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "member.yaml"
    file.write_text(text)
    found = quarterdeck("config", "check", file)
    assert found.returncode == 2 and problem in found.stderr and found.stderr.count("\n") == 1


def test_no_file(quarterdeck: Quarterdeck, tmp_path: Path) -> None:
    assert quarterdeck("config", "check", tmp_path / "none.yaml").returncode == 2
