"""The commands in the runbooks and in the page of questions run as they are when they are copied."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer.main

from quarterdeck.cli.main import app
from tests.app.commands.test_command_text import parsed
from tests.clusters.hazelcast.fake_cluster import fake_cluster

OPERATORS = Path(__file__).parents[4] / "docs" / "operators"
LINES = list(
    dict.fromkeys(
        line
        for page in ("runbooks.md", "questions.md")
        for line in re.findall(r"`(quarterdeck [^`]+)`", (OPERATORS / page).read_text(encoding="utf-8"))
    )
)
LOOKS = ("status", "lists", "members", "suspicions", "why", "migrations", "state")
"""Commands that change nothing, and end by themselves."""


@pytest.mark.parametrize("line", LINES)
def test_a_line_names_its_cluster_and_is_understood(line: str) -> None:
    given = parsed(line)
    _, group, *_ = shlex.split(line)
    assert group == "audit" or given["cluster"] == "orders" or given["connect"], "which cluster?"


def test_what_only_looks_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program: Any = typer.main.get_command(app)
    done = []
    with fake_cluster(2) as members:
        file = tmp_path / "quarterdeck" / "config.yaml"
        file.parent.mkdir()
        file.write_text(f"clusters: [{{label: orders, urls: ['hazelcast://{members.addresses[0]}']}}]\n")
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
        for line in LINES:
            _, group, word, *rest = shlex.split(line)
            if group == "cluster" and word in LOOKS and "ACTIVE" not in rest and "k8s://" not in line:
                program([group, word, *rest], standalone_mode=False)
                assert capsys.readouterr().out, line
                done.append(word)
    assert set(done) == {*LOOKS}
