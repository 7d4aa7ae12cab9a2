"""`plan rebalance`: what it reads, what it prints, and what bad input gets."""

from __future__ import annotations

import json
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from quarterdeck.cli.main import app
from tests.cli.conftest import must_be_bad_input

CRASH: dict[str, Any] = {
    "partitions": 3,
    "backups": 1,
    "members": [{"name": "A"}, {"name": "B"}, {"name": "C", "group": "rack1"}],
    "table": [["A", "B"], ["D", None], ["C", "D"]],
}


def run(given: object, *options: str) -> Result:
    text = given if isinstance(given, str) else json.dumps(given)
    return CliRunner().invoke(app, ["plan", "rebalance", *options], input=text)


def test_the_contract() -> None:
    document = json.loads(run(CRASH).stdout)
    assert list(document) == ["table", "moves", "lower_bound", "imbalance", "seconds"]
    assert [document["moves"], document["imbalance"]] == [1, 0]
    assert all(len(set(row)) == 2 for row in document["table"])


def test_explain() -> None:
    document = json.loads(run(CRASH, "--explain").stdout)
    assert document["lost"] == [1]
    assert document["counts"] == {"A": [1, 1], "B": [1, 1], "C": [1, 1]}


def test_no_table_and_defaults() -> None:
    document = json.loads(run({"members": [{"name": "A"}, {"name": "B"}], "table": None}).stdout)
    assert len(document["table"]) == 271
    assert (document["moves"], document["imbalance"]) == (0, 1)


def test_leaving_members_get_nothing_and_what_they_hold_is_moved() -> None:
    table = [["A", "B"], ["B", "C"], ["C", "A"]]
    document = json.loads(run({**CRASH, "table": table, "leaving": ["A"]}, "--explain").stdout)
    assert document["counts"]["A"] == [0, 0]
    assert document["table"][1] == ["B", "C"]
    assert (document["moves"], document["lost"]) == (2, [])


@pytest.mark.parametrize("output", ["table", "json", "jsonl", "yaml", "csv"])
def test_formats(output: str) -> None:
    assert "lower_bound" in run(CRASH, "-o", output).stdout


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("", 'stdin: is empty; write {"partitions"'),
        ("{", "stdin: is not JSON"),
        ("[]", "stdin: [] does not fit here; write {"),
        ("{}", "stdin: members: is missing; write the members as"),
        ({"members": []}, "stdin: members: is empty; name one member at least"),
        ({"members": ["A"]}, 'stdin: members[1]: "A" does not fit here; write a member as'),
        ({"members": [{"name": "A"}, {"name": "A"}]}, 'stdin: members: "A" is named twice'),
        ({"members": [{"name": "A", "groop": "r"}]}, "there is no such field; did you mean group?"),
        ({"members": [{"name": "A"}], "backups": 7}, "stdin: backups: 7 does not fit here"),
        ({"members": [{"name": "A"}], "partitions": 0}, "stdin: partitions: 0 does not fit here"),
        ({"members": [{"name": "A"}], "partitions": 2, "table": [["A"]]}, "table: has 1 rows for 2 partitions; write"),
        ({"members": [{"name": "A"}], "partitions": 1, "table": ["A"]}, 'stdin: table[1]: "A" does not fit here; write a list'),
        ({"members": [{"name": "A"}, {"name": "B"}], "leaving": ["a"]}, 'leaving: "a" is not among the members; known are A, B'),
        ({"members": [{"name": "A"}], "leaving": ["A"]}, "leaving: has every member; leave one out at least"),
        ({"members": [{"name": "A"}], "leaving": ["A", "A"]}, 'stdin: leaving: "A" is named twice'),
        ({"members": [{"name": "A"}], "leaving": "A"}, 'stdin: leaving: "A" does not fit here; write a list, as in ["A"]'),
        ({"members": [{"name": "A"}], "leaving": [1]}, "stdin: leaving[1]: 1 does not fit here"),
        ('{"members": [{"name": "A", "name": "B"}]}', 'stdin: "name" is written twice in one object; write every field once'),
        ({"members": [{"name": "A"}], "partitions": 1, "table": [["A", None, "A"]]}, 'stdin: table[1]: "A" is named twice'),
        ({"members": [{"name": "A"}], "partitions": 10**23}, "stdin: partitions: 100000000000000000000000 does not fit"),
        ({"members": [{"name": "A"}], "partitions": 1, "table": [[1]]}, "stdin: table[1][1]: 1 does not fit here"),
    ],
)  # fmt: skip
def test_bad_input_is_one_error_with_field_and_hint(given: object, message: str) -> None:
    must_be_bad_input(run(given), message)
