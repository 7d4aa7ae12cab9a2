"""The audit from the command line."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from quarterdeck.backend.pipeline.rules import NAMES
from tests.cli.commands.test_runs import PASSING
from tests.cli.conftest import Quarterdeck
from tests.pipeline.journal_builder import clean_story, write


def test_a_sound_run_passes(quarterdeck: Quarterdeck, quarterdeck_process: Quarterdeck, tmp_path: Path) -> None:
    """What is small needs no Java."""
    file, root = tmp_path / "three.yaml", tmp_path / "journal"
    file.write_text(PASSING)
    assert quarterdeck("simulate", file, "--seed", "7", "--journal", root).returncode == 0
    result = quarterdeck_process("audit", root, JAVA_HOME="/nowhere")
    assert result.returncode == 0, result.stderr
    audited = json.loads(result.stdout)
    assert audited["findings"] == []
    assert audited["counts"]["runs"] == 1
    assert "no violations" in result.stderr


RECORDINGS = Path(__file__).parents[3] / "hazelcast" / "logs" / "data"


def test_logs_of_members_in_trouble_are_no_violation_but_say_so(quarterdeck: Quarterdeck) -> None:
    result = quarterdeck("audit", RECORDINGS / "flapping")
    assert result.returncode == 0, result.stderr
    flapping = json.loads(result.stdout)["observations"][0]
    assert (flapping["kind"], flapping["members"]) == ("flapping", ["10.78.0.2:5701"])
    assert flapping["evidence"][0]["file"].endswith("h1.log") and flapping["evidence"][0]["line"] == 74
    verdict = result.stderr.splitlines()[-1]
    assert f"nothing contradicts the protocol (8 of {len(NAMES)} rules can be judged from logs)" in verdict
    assert "2 observations: 10.78.0.2:5701 removed and readmitted 5 times" in verdict
    assert quarterdeck("audit", RECORDINGS / "flapping", "--fail-on", "observation").returncode == 1
    lost = quarterdeck("audit", RECORDINGS / "formation-and-crash")
    assert (lost.returncode, lost.stderr.count("did not come back")) == (0, 6)


def test_where_no_line_is_a_record_nothing_was_judged(quarterdeck: Quarterdeck, tmp_path: Path) -> None:
    for content, lines in (("", "0 lines"), ("{}\nno json\n", "2 lines")):
        (tmp_path / "a-000001.jsonl").write_text(content)
        result = quarterdeck("audit", tmp_path / "a-000001.jsonl", "--source", "journal")
        assert (result.returncode, result.stderr.splitlines()[-1]) == (
            2,
            f"nothing was judged: {lines}, none of which is a record",
        )


def test_an_audit_fails_on_lines_that_are_no_records_where_that_is_wanted(
    quarterdeck: Quarterdeck, tmp_path: Path
) -> None:
    write(tmp_path, clean_story("calm"))
    (tmp_path / "run=calm" / "torn-000001.jsonl").write_text("no json\n")
    of_lists = ("--rules", "version,view integrity")

    def code(*options: str) -> int:
        return quarterdeck("audit", tmp_path, *of_lists, *options).returncode

    assert code() == code("--fail-on", "quarantine=0.5") == 0
    assert code("--fail-on", "quarantine") == code("--fail-on", "quarantine=1%") == 1
    assert code("--fail-on", "quarantine=much") == code("--fail-on", "anything") == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--engine", "here", "--master", "local"), "--engine here needs no Spark"),
        (("--master", "local", "--remote", "sc://x"), "exclude each other"),
        (("--conf", "memory"), "--conf memory: write it as spark.NAME=VALUE"),
        (("--engine", "there"), "there"),
        (("--master", "foo"), "--master foo: one of local"),
        (("--master", "local[0]"), "--master local[0]: one of local"),
    ],
)
def test_options_that_exclude_each_other(
    quarterdeck: Quarterdeck, tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    result = quarterdeck("audit", tmp_path, *options)
    assert result.returncode == 2 and message in result.stderr


def test_a_master_that_does_not_answer_is_one_sentence(quarterdeck_process: Quarterdeck, tmp_path: Path) -> None:
    write(tmp_path / "journal", clean_story("calm"))
    result = quarterdeck_process("audit", tmp_path / "journal", "--master", "spark://127.0.0.1:1", **os.environ)
    assert (result.returncode, result.stderr) == (3, "quarterdeck: spark://127.0.0.1:1: no master answers there\n")
