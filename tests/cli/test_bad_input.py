"""Bad input is answered by one line on stderr and exit code 2, never by a traceback."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Quarterdeck


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["consol"], "did you mean 'console'"),
        (["journal"], "missing command"),
        (["simulate"], "missing argument 'file'"),
        (["simulate", "nowhere.yaml", "--seed", "1"], "nowhere.yaml"),
        (["simulate", "nowhere.yaml", "--seed", "one"], "--seed"),
        (["demo", "run", "spilt"], "split"),
        (["demo", "run", "split", "--seed", "3"], "--simulate"),
        (["demo", "tutor", "split", "--seed", "3"], "--simulate"),
        (["demo", "show", "spilt"], "split"),
        (["console", "--members", "0"], "--members"),
        (["console", "--preset", "fast"], "training"),
        (["console", "--property", "hazelcast.max.join.seconds"], "name=value"),
        (["console", "--property", "hazelcast.max.join.secs=3"], "did you mean hazelcast.max.join.seconds"),
        (["console", "--property", "hazelcast.max.join.seconds=soon"], "not a number of seconds"),
        (["console", "--at", "3"], "--replay"),
        (["console", "--seed", "3"], "--simulate"),
        (["console", "--speed", "3"], "--simulate"),
        (["console", "--simulate", "x.yaml", "--processes"], "leave out all that"),
        (["console", "--simulate", "x.yaml", "--replay", "y"], "leave out all that"),
        (["console", "--simulate", "x.yaml"], "no terminal here"),
        (["journal", "cat", "nowhere"], "nowhere"),
        (["journal", "ls", "nowhere"], "nowhere"),
        (["paths", "-o", "xml"], "jsonl"),
        (["audit", "nowhere"], "nowhere"),
    ],
    ids=" ".join,
)
def test_one_line(quarterdeck: Quarterdeck, arguments: list[str], hint: str) -> None:
    result = quarterdeck(*arguments)
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1, result.stderr
    assert result.stderr.startswith("quarterdeck: ")
    assert hint in result.stderr.lower() or hint in result.stderr


def test_bad_scenario_names_file_line_and_field(quarterdeck: Quarterdeck, tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text("title: Bad\nsummary: Bad\nmembers: [athens]\nsteps:\n  - do: {explode: athens}\n")
    result = quarterdeck("simulate", file, "--seed", "1")
    assert result.returncode == 2
    assert result.stderr.count("\n") == 1, result.stderr
    assert f"{file}:5" in result.stderr
    assert "explode" in result.stderr
