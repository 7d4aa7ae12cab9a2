"""`plan disconnections`: what it reads, what it prints, and what bad input gets."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest
from ruamel.yaml import YAML
from typer.testing import CliRunner, Result

from quarterdeck.cli.exits import CommandFailed
from quarterdeck.cli.main import app
from tests.cli.conftest import Quarterdeck, must_be_bad_input

FIGURE_5: dict[str, Any] = {
    "members": [{"name": "N1", "lite": False}, {"name": "N2"}, {"name": "N3"}, {"name": "N4"}],
    "suspicions": {"N2": ["N3", "N4"], "N3": ["N2"], "N4": ["N2"]},
    "timeout_seconds": 5,
}


def run(given: object, *options: str) -> Result:
    text = given if isinstance(given, str | bytes) else json.dumps(given)
    return CliRunner().invoke(app, ["plan", "disconnections", *options], input=text)


def planned(given: dict[str, Any], *options: str) -> dict[str, Any]:
    result = run(given, *options)
    assert result.exit_code == 0, result.exception
    document: dict[str, Any] = json.loads(result.stdout)
    return document


def members(names: str) -> list[dict[str, Any]]:
    return [{"name": name} for name in names.split()]


def test_the_contract() -> None:
    document = planned(FIGURE_5)
    assert list(document) == ["keep", "remove", "exact", "seconds"]
    assert document["keep"] == ["N1", "N3", "N4"]
    assert document["remove"] == ["N2"]
    assert document["exact"] is True
    assert isinstance(document["seconds"], float)


def test_racks() -> None:
    suspicions = {"B1": ["C1", "C2"], "B2": ["C1", "C2"]}
    document = planned({"members": members("A1 A2 B1 B2 C1 C2"), "suspicions": suspicions})
    assert document["keep"] == ["A1", "A2", "B1", "B2"]


def test_lite_members_count_less() -> None:
    listed = [*members("N1"), {"name": "N2", "lite": True}, {"name": "N3", "lite": True}, *members("N4")]
    document = planned({"members": listed, "suspicions": {"N4": ["N2", "N3"]}})
    assert document["keep"] == ["N1", "N4"]


def test_no_suspicions_and_no_limit_of_time() -> None:
    document = planned({"members": members("N1 N2"), "timeout_seconds": 0})
    assert document == {"keep": ["N1", "N2"], "remove": [], "exact": True, "seconds": document["seconds"]}


def test_explain() -> None:
    figure = planned(FIGURE_5, "--explain")["why"]
    assert "N2 goes: it is in conflict with N3, N4." in figure
    assert "one way" not in figure
    one_way = planned({"members": members("N1 N2 N3"), "suspicions": {"N2": ["N3"]}}, "--explain")["why"]
    assert "As many would stay with N3 in place of N2" in one_way
    assert "One-way only: N2 suspects N3; a link that fails one way counts as failed both ways." in one_way


@pytest.mark.parametrize("suspicions", [{"N2": ["N1"]}, {"N1": ["N2"]}])
def test_suspicions_of_and_by_the_master_are_ignored_with_a_note(suspicions: dict[str, list[str]]) -> None:
    result = run({"members": members("N1 N2 N3"), "suspicions": suspicions}, "--explain")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["keep"] == ["N1", "N2", "N3"]
    assert "One-way" not in result.stdout
    ((reporter, (suspect,)),) = suspicions.items()
    assert result.stderr.count("\n") == 1
    assert f"ignored: {reporter} suspects {suspect}" in result.stderr


@pytest.mark.parametrize("output", ["table", "json", "jsonl", "yaml", "csv"])
def test_formats(output: str) -> None:
    text = run(FIGURE_5, "-o", output).stdout
    if output == "table":
        assert text.splitlines()[1].split() == ["keep", "N1", "N3", "N4"]
    elif output == "csv":
        assert {row["field"]: row["value"] for row in csv.DictReader(io.StringIO(text))}["keep"] == "N1 N3 N4"
    else:
        document = YAML(typ="safe").load(text) if output == "yaml" else json.loads(text)
        assert document["keep"] == ["N1", "N3", "N4"]
        assert text.count("\n") == 1 or output != "jsonl"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("", 'stdin: is empty; write {"members"'),
        ("{", "stdin: is not JSON"),
        (b"\xff\xfe", "stdin: is not JSON"),
        ("[]", 'stdin: [] does not fit here; write {"members"'),
        ("{}", "stdin: members: is missing; list the members in order of age"),
        ({"members": []}, "stdin: members: is empty; name at least the master"),
        ({"members": "N1"}, 'stdin: members: "N1" does not fit here; write a list, as in [{"name": "N1"}]'),
        ({"members": ["N1"]}, 'stdin: members[1]: "N1" does not fit here; write a member as {"name": "N1"'),
        ({"members": [{}]}, "stdin: members[1].name: is missing; write a member as"),
        ({"members": [{"name": ""}]}, "stdin: members[1].name"),
        ({"members": [{"name": 1}]}, "stdin: members[1].name: 1 does not fit here; input should be a valid string"),
        ({"members": [{"name": "N1", "lite": "no"}]}, 'stdin: members[1].lite: "no" does not fit here'),
        ({"members": [{"name": "N1", "light": True}]}, "stdin: members[1].light: there is no such field; did you mean lite?"),
        ({"members": members("N1 N1")}, 'stdin: members: "N1" is named twice; name every member once'),
        ({"members": members("N1"), "suspicion": {}}, "there is no such field; did you mean suspicions?"),
        ({"members": members("N1"), "suspicions": []}, 'stdin: suspicions: [] does not fit here; write by reporter'),
        ({"members": members("N1 N2"), "suspicions": {"N2": "N1"}}, 'stdin: suspicions.N2: "N1" does not fit here; write a list'),
        (
            {"members": members("alpha beta"), "suspicions": {"bta": []}},
            'stdin: suspicions: "bta" is not among the members; did you mean beta?',
        ),
        (
            {"members": members("alpha beta"), "suspicions": {"beta": ["x"]}},
            'stdin: suspicions.beta: "x" is not among the members; known are alpha, beta',
        ),
        ({"members": members("N1 N2"), "suspicions": {"N2": ["N2"]}}, "suspicions.N2: a member cannot suspect itself"),
        ({"members": members("N1"), "timeout_seconds": -1}, "stdin: timeout_seconds: -1 does not fit here"),
        ({"members": members("N1"), "timeout_seconds": "5"}, 'stdin: timeout_seconds: "5" does not fit here'),
    ],
)  # fmt: skip
def test_bad_input_is_one_error_with_field_and_hint(given: object, message: str) -> None:
    must_be_bad_input(run(given), message)


def test_bad_input_as_people_run_it(quarterdeck: Quarterdeck) -> None:
    result = quarterdeck("plan", "disconnections")
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr.startswith("quarterdeck: stdin: is empty; write {")
    assert result.stderr.count("\n") == 1


def test_names_that_cannot_be_printed_are_refused() -> None:
    result = run({"members": [{"name": "a\nb"}]})
    assert isinstance(result.exception, CommandFailed)
    assert result.exception.exit_code == 2
    assert "cannot be printed" in result.exception.message
