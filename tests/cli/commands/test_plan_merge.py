"""`plan merge` on an application of its own: what it reads, what it prints, and what bad input gets."""

from __future__ import annotations

import json
from typing import Any

import pytest
import typer
from ruamel.yaml import YAML
from typer.testing import CliRunner, Result

from quarterdeck.cli.commands import plan
from tests.cli.conftest import must_be_bad_input

ATHENS: dict[str, Any] = {
    "address": "10.0.0.1:5701",
    "cluster_name": "dev",
    "state": "ACTIVE",
    "members": ["10.0.0.1:5701", "10.0.0.2:5701"],
}
DELPHI: dict[str, Any] = {
    "address": "10.0.0.4:5701",
    "cluster_name": "dev",
    "state": "ACTIVE",
    "members": ["10.0.0.4:5701", {"address": "10.0.0.5:5701", "lite": True}],
}


def run(given: object, *options: str) -> Result:
    app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None)
    app.add_typer(plan.group, name="plan")
    text = given if isinstance(given, str) else json.dumps(given)
    return CliRunner().invoke(app, ["plan", "merge", *options], input=text)


def planned(local: dict[str, Any], remote: dict[str, Any] | None, *options: str) -> dict[str, Any]:
    result = run({"local": local, "remote": remote}, *options)
    assert result.exit_code == 0, result.exception
    document: dict[str, Any] = json.loads(result.stdout)
    return document


def test_the_contract() -> None:
    assert planned(ATHENS, DELPHI) == {
        "decision": "remote-merges",
        "rule": "data-members",
        "why": "10.0.0.1:5701 has 2 data members and 10.0.0.4:5701 has 1, so 10.0.0.4:5701 merges into 10.0.0.1:5701",
    }


@pytest.mark.parametrize(
    ("local", "remote", "decision", "rule", "why"),
    [
        ({}, None, "cannot-merge", "no-answer", "no member answered 10.0.0.1:5701"),
        ({}, {"joined": False}, "cannot-merge", "no-answer", "10.0.0.4:5701 has not joined"),
        ({"joined": False}, {}, "cannot-merge", "no-answer", "10.0.0.1:5701 has not joined"),
        ({}, {"joined": False, "is_master": False}, "cannot-merge", "no-answer", "has not joined"),
        (
            {},
            {"is_master": False, "members": ["10.0.0.3:5701", "10.0.0.4:5701"]},
            "cannot-merge",
            "not-master",
            "10.0.0.4:5701 is not master, so it answers with the address of its master, 10.0.0.3:5701",
        ),
        ({}, {"is_master": False}, "cannot-merge", "not-master", "answers with the address of its master, whom"),
        ({"is_master": False}, {}, "cannot-merge", "not-master", "10.0.0.1:5701 is not master, so it looks for no"),
        ({"is_master": False}, None, "cannot-merge", "no-answer", "no member answered"),
        ({}, {"data_member_count": 3}, "local-merges", "data-members", "10.0.0.4:5701 has 3"),
        ({}, {"data_member_count": 2}, "remote-merges", "address", "10.0.0.4:5701 comes after"),
        ({}, {"members": ["10.0.0.5:5701"]}, "remote-merges", "address", "of equal size"),
        ({}, {"partition_count": 271}, "cannot-merge", "partition-count", "none at 10.0.0.1:5701, '271' at"),
        ({"partition_count": "271"}, {"partition_count": 271, "members": []}, "remote-merges", "data-members", "has 1"),
        ({}, {"partition_groups": ["zone"]}, "cannot-merge", "partition-groups", "zone"),
        ({}, {"cluster_version": "5.3"}, "cannot-merge", "cluster-version", "'5.3'"),
        ({}, {"joiner": "multicast"}, "cannot-merge", "joiner", "'multicast'"),
        ({"state": "FROZEN"}, {}, "cannot-merge", "local-state", "FROZEN"),
        ({"state": "IN_TRANSITION"}, {}, "cannot-merge", "local-state", "10.0.0.1:5701 is changing its state"),
        ({}, {"state": "IN_TRANSITION"}, "cannot-merge", "remote-state", "10.0.0.4:5701 is changing its state"),
    ],
)
def test_the_optional_fields(
    local: dict[str, Any], remote: dict[str, Any] | None, decision: str, rule: str, why: str
) -> None:
    document = planned(ATHENS | local, None if remote is None else DELPHI | remote)
    assert (document["decision"], document["rule"]) == (decision, rule)
    assert why in document["why"]


def test_groups_agree_in_whatever_order_their_keys_are_written() -> None:
    local = ATHENS | {"partition_groups": {"kind": "zone", "of": [1, 2]}}
    remote = DELPHI | {"partition_groups": {"of": [1, 2], "kind": "zone"}}
    assert planned(local, remote)["rule"] == "data-members"


def test_explain_tells_what_was_passed_in_order() -> None:
    assert planned(ATHENS, None, "--explain")["passed"] == {}
    assert planned(ATHENS, DELPHI | {"is_master": False}, "--explain")["passed"] == {
        "no-answer": "the other master answered"
    }
    passed = planned(ATHENS, DELPHI | {"joiner": "multicast"}, "--explain")["passed"]
    assert list(passed) == ["no-answer", "not-master", "cluster-name"]
    assert passed["cluster-name"] == "both clusters have the same name"


def test_every_format_tells_the_same() -> None:
    meeting = {"local": ATHENS, "remote": DELPHI}
    whole = planned(ATHENS, DELPHI, "--explain")
    assert json.loads(run(meeting, "--explain", "-o", "jsonl").stdout) == whole
    assert YAML(typ="safe").load(run(meeting, "--explain", "-o", "yaml").stdout) == whole
    for flat in ("csv", "table"):
        lines = run(meeting, "--explain", "-o", flat).stdout.splitlines()
        assert len(lines) == 1 + 3 + len(whole["passed"])
        assert any(line.startswith("passed cluster-name") for line in lines)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("", 'stdin: is empty; write {"local"'),
        ("{", "stdin: is not JSON: EOF while parsing an object at line 1"),
        ("[" * 10_000, "stdin: is not JSON: recursion limit"),
        ([], "stdin: [] does not fit here; write {…} with local, remote"),
        ({"local": ATHENS}, "stdin: remote: is missing; write null when there was no answer"),
        ('{"local": {}, "remote": null, "remote": {}}', 'stdin: "remote" is written twice in one object'),
        (
            {"local": ATHENS | {"data_member_count": 10**23}, "remote": None},
            "stdin: local.data_member_count: 100000000000000000000000 does not fit",
        ),
        (
            {"local": ATHENS | {"partition_count": 10**23}, "remote": None},
            "stdin: local.partition_count: 100000000000000000000000 does not fit",
        ),
        ({"local": ATHENS, "remote": 1}, "stdin: remote: 1 does not fit here; write {…} with address, cluster_name"),
        ({"local": {"address": "a:1"}, "remote": None}, "stdin: local.cluster_name: is missing; needed are address"),
        (
            {"local": ATHENS | {"sate": 1}, "remote": None},
            "stdin: local.sate: there is no such field; did you mean state?",
        ),
        ({"locale": 1, "local": ATHENS, "remote": None}, "stdin: locale: there is no such field; did you mean local?"),
        (
            {"local": ATHENS | {"state": "ICY"}, "remote": None},
            "local.state: \"ICY\" is not known here; write 'ACTIVE', ",
        ),
        ({"local": ATHENS | {"address": "a"}, "remote": None}, "local.address: 'a' has no port; write it as host:port"),
        (
            {"local": ATHENS | {"members": "a:1"}, "remote": None},
            'local.members: "a:1" does not fit here; write a list',
        ),
        ({"local": ATHENS | {"members": ["a:0"]}, "remote": None}, "local.members[1].address: 'a:0' has the port '0'"),
        (
            {"local": ATHENS | {"members": [7]}, "remote": None},
            "local.members[1]: 7 does not fit here; write {…} with addr",
        ),
        (
            {"local": ATHENS | {"members": [{"address": "a:1", "light": True}]}, "remote": None},
            "local.members[1].light: there is no such field; did you mean lite?",
        ),
        ({"local": ATHENS | {"members": ["a:1", "a:1"]}, "remote": None}, 'local.members: "a:1" is named twice'),
        (
            {"local": ATHENS | {"data_member_count": -1}, "remote": None},
            "local.data_member_count: -1 does not fit here",
        ),
        ({"local": ATHENS | {"joined": "no"}, "remote": None}, 'local.joined: "no" does not fit here; input should be'),
    ],
)
def test_bad_input_is_one_line_and_code_2(given: object, message: str) -> None:
    must_be_bad_input(run(given), message)
