"""The demos from the command line: listed, shown, run, and taught through a pipe."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from quarterdeck.cli.commands import console
from tests.cli.conftest import Quarterdeck


def test_demos_are_listed_in_every_format(quarterdeck: Quarterdeck) -> None:
    rows = json.loads(quarterdeck("demo", "ls", "-o", "json").stdout)
    split = next(row for row in rows if row["name"] == "split")
    assert split["chapter"] == "3 Split brain" and split["questions"] == 2 and split["goal"]
    assert [row["name"] for row in csv.DictReader(io.StringIO(quarterdeck("demo", "ls", "-o", "csv").stdout))] == [
        row["name"] for row in rows
    ]


def test_without_a_command_the_lessons_open_or_are_listed_where_there_is_no_terminal(
    quarterdeck: Quarterdeck, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert quarterdeck("demo").stdout == quarterdeck("demo", "ls").stdout
    opened: list[dict[str, object]] = []
    monkeypatch.setattr(console, "has_terminal", lambda: True)
    monkeypatch.setattr(console, "open_new_cluster", lambda **how: opened.append(how))
    assert quarterdeck("demo").stdout == ""
    assert opened == [{"view": "demos"}]


def test_a_demo_is_shown_with_the_command_lines_that_do_the_same(quarterdeck: Quarterdeck) -> None:
    steps = json.loads(quarterdeck("demo", "show", "unrecoverable-split", "-o", "json").stdout)
    assert [step["step"] for step in steps] == list(range(1, len(steps) + 1))
    assert {step["kind"] for step in steps} == {"say", "ask", "do", "expect", "free-play"}
    lines = [line for step in steps for line in step["commands"]]
    assert "quarterdeck cluster kill --connect URL byzantium" in lines
    assert any(line.startswith("quarterdeck cluster join-list set") for line in lines)


def test_a_demo_of_ones_own_begins_with_the_file_of_another(quarterdeck: Quarterdeck, tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text(quarterdeck("demo", "show", "first-cluster", "--source").stdout)
    assert mine.read_text().startswith("title: ")
    shown = quarterdeck("demo", "show", mine, "-o", "json")
    assert shown.stdout == quarterdeck("demo", "show", "first-cluster", "-o", "json").stdout
    refused = quarterdeck("demo", "show", "first-clutser", "--source")
    assert (refused.returncode, "did you mean first-cluster?" in refused.stderr) == (2, True)


def test_a_tutor_reads_answers_from_a_pipe_and_keeps_the_score(
    quarterdeck_process: Quarterdeck, tmp_path: Path
) -> None:
    answers = "b\nathens\nbyzantium\n"
    run = quarterdeck_process("demo", "tutor", "first-cluster", "--simulate", "--seed", "3", typed=answers)
    assert run.returncode == 0, run.stderr
    document = json.loads(run.stdout)
    assert (document["demo"], document["source"], document["seed"]) == ("first-cluster", "simulated", 3)
    assert (document["passed"], document["right"], document["judged"]) == (True, 2, 3)
    assert [prediction["right"] for prediction in document["predictions"]] == [True, False, True]
    assert "to do: kill athens" in run.stderr and "quarterdeck cluster kill" in run.stderr
    assert "2 of 3 predictions right" in run.stderr
    kept = json.loads((tmp_path / "state" / "quarterdeck" / "demos.json").read_text())
    assert kept["demos"]["first-cluster"]["best"] == 2


def test_nobody_at_the_pipe_is_no_failure_and_leaving_is_none_either(quarterdeck: Quarterdeck, tmp_path: Path) -> None:
    run = quarterdeck("demo", "tutor", "lost-partition", "--simulate", "-o", "yaml")
    assert run.returncode == 0 and "judged: 0" in run.stdout
    left = quarterdeck("demo", "tutor", "lost-partition", "--simulate", typed="q\n")
    assert left.returncode == 0
    assert json.loads(left.stdout)["finished"] is False


def test_a_missed_expectation_exits_with_1(quarterdeck: Quarterdeck, tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    file.write_text("title: T\nmembers: 2\nsteps:\n  - expect: {within: 1s, masters: {n2: n2}}\n")
    run = quarterdeck("demo", "tutor", str(file), "--simulate")
    assert run.returncode == 1
    assert json.loads(run.stdout)["expectations"][0]["missing"] == "n2 follows n1; expected: n2 is master"


@pytest.mark.parametrize(("option", "value"), [("--seed", "3"), ("--no-journal", None)])
def test_options_that_do_not_go_together(
    quarterdeck: Quarterdeck, tmp_path: Path, option: str, value: str | None
) -> None:
    extra = [] if option == "--seed" else ["--simulate"]
    run = quarterdeck("demo", "tutor", "split", option, *([value] if value else []), *extra)
    assert (run.returncode, run.stderr.count("\n")) == (2, 1)
    assert option in run.stderr and "--simulate" in run.stderr


def test_a_simulated_lesson_is_recorded_where_told(tmp_path: Path, quarterdeck: Quarterdeck) -> None:
    root = tmp_path / "journal"
    run = quarterdeck("demo", "tutor", "lost-partition", "--simulate", "--seed", "5", "--journal", str(root))
    assert run.returncode == 0, run.stderr
    (listed,) = json.loads(quarterdeck("journal", "ls", root, "-o", "json").stdout)
    assert listed["members"] == ["athens", "byzantium", "cyrene"]
