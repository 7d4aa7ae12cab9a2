"""Scenarios run from the command line, simulated and live, and what they leave in the journal."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

from tests.cli.conftest import Quarterdeck

PASSING = """\
title: Three members
summary: They find one another.
members: [athens, byzantium, cyrene]
settings: {hazelcast.heartbeat.interval.seconds: 1, hazelcast.max.no.heartbeat.seconds: 4}
steps:
  - expect: {within: 20s, one-cluster: true}
"""
FAILING = PASSING.replace("one-cluster: true", "masters: {athens: cyrene}")


def test_same_seed_same_run_in_another_process_too(
    quarterdeck: Quarterdeck, quarterdeck_process: Quarterdeck, tmp_path: Path
) -> None:
    file = tmp_path / "three.yaml"
    file.write_text(PASSING)
    equal = quarterdeck_process("simulate", file, "--seed", 1, PYTHONHASHSEED="7")
    runs = [equal, *(quarterdeck("simulate", file, "--seed", seed) for seed in (1, 2))]
    assert [run.returncode for run in runs] == [0, 0, 0]
    assert [run.stderr for run in runs] == ["", "", ""]
    outcomes = [json.loads(run.stdout) for run in runs]
    assert outcomes[0] == outcomes[1]
    assert outcomes[0]["fingerprint"] != outcomes[2]["fingerprint"]
    assert outcomes[0]["passed"] is True
    assert outcomes[0]["members"]["cyrene"]["master"] == "athens"


def test_missed_expectation_exits_with_1(quarterdeck: Quarterdeck, tmp_path: Path) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_text(FAILING)
    run = quarterdeck("simulate", file, "--seed", "1")
    assert run.returncode == 1
    assert json.loads(run.stdout)["passed"] is False


def test_simulated_run_is_recorded_where_told(quarterdeck: Quarterdeck, tmp_path: Path) -> None:
    file, root = tmp_path / "three.yaml", tmp_path / "journal"
    file.write_text(PASSING)
    simulated = quarterdeck("simulate", file, "--seed", "7", "--journal", root)
    assert "quarterdeck audit" in simulated.stderr
    listed = quarterdeck("journal", "ls", root, "-o", "json")
    (run,) = json.loads(listed.stdout)
    assert run["members"] == ["athens", "byzantium", "cyrene"]
    records = [json.loads(line) for line in quarterdeck("journal", "cat", root, "-o", "jsonl").stdout.splitlines()]
    assert len(records) == run["records"]
    assert records[0]["event"]["kind"] == "member-started"
    assert quarterdeck("journal", "cat", root, "-o", "csv").stdout.startswith("utc,at_us,run,member")


def test_unreadable_line_is_told_and_exits_with_1(quarterdeck: Quarterdeck, tmp_path: Path) -> None:
    file = tmp_path / "broken.jsonl"
    file.write_text("no record\n")
    result = quarterdeck("journal", "cat", file, "-o", "json")
    assert (result.returncode, json.loads(result.stdout)) == (1, [])
    assert result.stderr.startswith(f"{file}:1: ")


def test_demos_are_listed(quarterdeck: Quarterdeck) -> None:
    rows = json.loads(quarterdeck("demo", "list", "-o", "json").stdout)
    assert "split" in [row["name"] for row in rows]


def test_without_a_terminal_the_console_runs_the_split(quarterdeck_process: Quarterdeck, tmp_path: Path) -> None:
    run = quarterdeck_process("console")
    assert run.returncode == 0, run.stdout + run.stderr
    lines = run.stdout.splitlines()
    assert lines[0].startswith("No terminal here: ")
    assert lines[-1] == "passed"
    for member in ("athens", "byzantium", "cyrene", "delphi", "euphesus"):
        assert any(line.split()[:2] == [member, "member"] for line in lines)
    assert any("delphi, euphesus  master delphi" in line for line in lines)
    journal = next((tmp_path / "state" / "quarterdeck" / "journals").glob("run=*-split-*"))
    told, audit = run.stderr.splitlines()
    assert told == f"journal: {journal}"
    assert audit == f"audit it with: quarterdeck audit {shlex.quote(str(journal))}"


def test_one_run_is_recorded_once(quarterdeck: Quarterdeck, tmp_path: Path) -> None:
    file, root = tmp_path / "three.yaml", tmp_path / "journal"
    file.write_text(PASSING)
    assert quarterdeck("simulate", file, "--seed", "7", "--journal", root).returncode == 0
    again = quarterdeck("simulate", file, "--seed", "7", "--journal", root)
    assert again.returncode == 2
    assert again.stderr.count("\n") == 1
    assert "recorded already" in again.stderr


def test_a_reader_that_leaves_early_is_no_failure(quarterdeck: Quarterdeck, tmp_path: Path) -> None:
    file, root = tmp_path / "three.yaml", tmp_path / "journal"
    file.write_text(PASSING)
    quarterdeck("simulate", file, "--seed", "7", "--journal", root)
    code = f"from quarterdeck.cli.main import run; import sys; sys.argv = ['quarterdeck', 'journal', 'cat', {str(root)!r}]; run()"
    reading, writing = os.pipe()
    os.close(reading)
    child = subprocess.run([sys.executable, "-c", code], stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert child.stderr == ""
