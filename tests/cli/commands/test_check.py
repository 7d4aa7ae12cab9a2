"""`quarterdeck check` as people run it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

from tests.cli.conftest import Quarterdeck

SMALL = """\
title: A member joins.
members: [a]
later: [b]
commands:
  - start: b
bounds: {ticks: 2}
"""
DIVIDED = """\
title: Two members that never hear of each other found a cluster each.
later: [a, b]
join-lists: {a: [a], b: [b]}
commands:
  - start: a
  - start: b
bounds: {ticks: 1}
"""


def test_a_small_model_is_exhausted(quarterdeck: Quarterdeck, tmp_path: Path) -> None:
    file = tmp_path / "small.yaml"
    file.write_text(SMALL)
    run = quarterdeck("check", file, "--jobs", "1")
    assert run.returncode == 0
    (row,) = json.loads(run.stdout)
    assert row["model"] == "small" and row["exhausted"] is True and row["invariant"] == ""
    assert row["events"]["member-admitted"] > 0
    bounded = json.loads(quarterdeck("check", file, "--most-states", "5", "--jobs", "1").stdout)[0]
    assert bounded["exhausted"] is False


def test_bounds_can_be_changed(quarterdeck: Quarterdeck, tmp_path: Path) -> None:
    file = tmp_path / "small.yaml"
    file.write_text(SMALL)
    rows = [quarterdeck("check", file, "--jobs", "1", *options).stdout for options in ((), ("--drops", "1"))]
    few, more = (json.loads(row)[0] for row in rows)
    assert more["states"] > few["states"]


def test_so_many_members_can_be_asked_for(quarterdeck: Quarterdeck) -> None:
    bounds = ("--jobs", "1", "--ticks", "1", "--drops", "0", "--crashes", "0", "--steps", "4")
    three, four = (json.loads(quarterdeck("check", "claim", *bounds, "--members", str(n)).stdout)[0] for n in (3, 4))
    assert three["exhausted"] and four["exhausted"] and four["states"] > three["states"]
    refused = quarterdeck("check", "merge", "--members", "5")
    assert refused.returncode == 2
    assert "merge.yaml: --members: it does not say what 5 members do; it is for 3, 4" in refused.stderr


def test_ctrl_c_leaves_a_checkpoint_that_is_gone_on_with(quarterdeck: Quarterdeck, tmp_path: Path) -> None:
    state = tmp_path / "state"
    arguments = [sys.executable, "-m", "quarterdeck", "check", "join", "--state", str(state), "--jobs", "2"]
    with subprocess.Popen(arguments, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None and process.stdout is not None
        told = process.stderr.readline()
        assert told.startswith("join: ") and "a second" in told
        process.send_signal(signal.SIGINT)
        assert process.stdout.read() == ""
        assert process.wait() == 130
    assert (state / "join" / "checkpoint.json").is_file()
    more = json.loads(quarterdeck("check", "join", "--state", state, "--most-states", "1").stdout)[0]
    assert more["states"] > 1 and not more["exhausted"]
    (state / "join" / "checkpoint.json").write_text("{")
    garbled = quarterdeck("check", "join", "--state", state)
    assert garbled.returncode == 2 and "checkpoint.json" in garbled.stderr and "delete the folder" in garbled.stderr


def test_models_are_listed_and_run_beside_one_another(quarterdeck: Quarterdeck) -> None:
    several = quarterdeck("check", "claim", "join", "--most-states", "200", "--jobs", "2")
    assert [row["model"] for row in json.loads(several.stdout)] == ["claim", "join"]
    listed = json.loads(quarterdeck("check", "--list").stdout)
    assert {"claim", "founding", "join", "merge"} <= {row["model"] for row in listed}


def test_a_violation_can_be_repeated_and_replayed(quarterdeck: Quarterdeck, tmp_path: Path) -> None:
    file = tmp_path / "divided.yaml"
    file.write_text(DIVIDED)
    run = quarterdeck("check", file, "--jobs", "1", "--out", tmp_path / "found")
    assert run.returncode == 1
    (row,) = json.loads(run.stdout)
    assert row["invariant"] == "convergence"
    repeated = quarterdeck(
        "simulate", tmp_path / "found" / "divided.yaml", "--seed", "0", "--journal", tmp_path / "seen"
    )
    assert repeated.returncode == 1
    (unmet,) = json.loads(repeated.stdout)["expectations"]
    assert not unmet["met"] and "one cluster" in unmet["text"]
    assert quarterdeck("journal", "lists", tmp_path / "seen").stdout
    schedule = tmp_path / "found" / "divided.json"
    again = quarterdeck("check", "--repeat", schedule, "--journal", tmp_path / "journal")
    assert again.returncode == 1
    assert json.loads(again.stdout)["text"] == row["text"]
    lists = quarterdeck("journal", "lists", tmp_path / "journal")
    assert lists.returncode == 0 and lists.stdout


def test_bad_input_is_one_error(quarterdeck: Quarterdeck, tmp_path: Path) -> None:
    unknown = quarterdeck("check", "claims")
    assert unknown.returncode == 2 and "did you mean claim?" in unknown.stderr
    file = tmp_path / "schedule.json"
    file.write_text('{"model": "claim"}')
    broken = quarterdeck("check", "--repeat", file)
    assert broken.returncode == 2 and str(file) in broken.stderr
