"""`plan migrations` on an application of its own: what it reads, what it prints, and what bad input gets."""

from __future__ import annotations

import json
from typing import Any

import pytest
import typer
from ruamel.yaml import YAML
from typer.testing import CliRunner, Result

from quarterdeck.cli.commands import plan
from tests.cli.conftest import must_be_bad_input

MOVED = {"current": ["A", "B", "C"], "target": ["D", "B", "C"]}
SHRUNK = {"current": ["A", "B"], "target": ["B", None]}
CYCLIC = {"current": ["A", "B", "C", None], "target": ["C", "A", "B", "D"]}


def run(given: object, *options: str) -> Result:
    app = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None)
    app.add_typer(plan.group, name="plan")
    text = given if isinstance(given, str) else json.dumps(given)
    return CliRunner().invoke(app, ["plan", "migrations", *options], input=text)


def planned(given: object, *options: str) -> Any:
    result = run(given, *options)
    assert result.exit_code == 0, result.exception
    return json.loads(result.stdout)


def step(kind: str, source: tuple[str | None, int, int], destination: tuple[str | None, int, int]) -> dict[str, Any]:
    return {
        "type": kind,
        **dict(zip(("src", "srcCurrentIndex", "srcNewIndex"), source, strict=True)),
        **dict(zip(("dst", "dstCurrentIndex", "dstNewIndex"), destination, strict=True)),
    }


MOVE = step("MOVE", ("A", 0, -1), ("D", -1, 0))
NOBODY = (None, -1, -1)


def test_the_contract() -> None:
    assert planned(MOVED) == [MOVE]
    assert list(planned(MOVED)[0]) == list(MOVE)


@pytest.mark.parametrize(
    ("current", "target", "steps"),
    [
        (["A", None], ["A", "D"], [step("COPY", NOBODY, ("D", -1, 1))]),
        (["A", None], ["D", "A"], [step("SHIFT DOWN", ("A", 0, 1), ("D", -1, 0))]),
        (["A", None, "B"], ["A", "B", None], [step("SHIFT UP", NOBODY, ("B", 2, 1))]),
        (["A", None, "B"], ["B", "A", None], [step("SHIFT UP", ("A", 0, 1), ("B", 2, 0))]),
        (["A", "B"], ["A", None], [step("CLEAR", ("B", 1, -1), NOBODY)]),
        (["A", "B"], ["A", "B"], []),
        ([], [], []),
    ],
)
def test_every_kind_of_step(current: list[str | None], target: list[str | None], steps: list[dict[str, Any]]) -> None:
    assert planned({"current": current, "target": target}) == steps


def test_a_list_of_rows_gives_a_list_of_plans() -> None:
    assert planned([MOVED, CYCLIC]) == [[MOVE], [step("COPY", NOBODY, ("D", -1, 3))]]
    assert planned([MOVED]) == [[MOVE]]
    assert planned([]) == []
    assert [plan["steps"] for plan in planned([MOVED, MOVED], "--explain")] == [[MOVE], [MOVE]]


def test_explain_tells_the_target_and_why() -> None:
    assert planned(MOVED, "--explain") == {
        "steps": [MOVE],
        "target_after_cycle_fix": ["D", "B", "C"],
        "why": ["D, who holds no replica yet, takes index 0 over from A; A is not in the target"],
    }
    assert planned(CYCLIC, "--explain")["target_after_cycle_fix"] == ["A", "B", "C", "D"]


@pytest.mark.parametrize(
    ("current", "target", "why"),
    [
        ("ABC", "CA-", ["C moves up from index 2 to 0; A comes back later, at index 1", "A, who holds no replica yet, takes"]),
        ("A-", "DA", ["A moves down to the empty index 1 in the same step, so that its copy is kept whatever becomes of D"]),
        ("ED-B", "BED-", ["E moves down to the empty index 2 in the same step and waits there", "D moves down", "D moves up"]),
        ("A-", "AB", ["B gets a copy at the empty index 1"]),
        ("A-B", "AB-", ["B moves up from index 2 to the empty index 1"]),
        ("AB", "A-", ["B drops its replica, because the target has no member at index 1"]),
    ],
)  # fmt: skip
def test_one_sentence_for_every_step(current: str, target: str, why: list[str]) -> None:
    rows = {"current": [*current], "target": [*target]}
    given = {name: [None if member == "-" else member for member in row] for name, row in rows.items()}
    said = planned(given, "--explain")["why"]
    assert len(said) == len(why)
    assert all(part in sentence for part, sentence in zip(why, said, strict=True))


def test_a_step_that_cannot_but_lose_a_replica_says_so() -> None:
    given = {"current": ["A", None], "target": [None, "A"]}
    document = planned(given, "--explain")
    assert document["steps"][0] == {**step("CLEAR", ("A", 0, -1), NOBODY), "unavoidable": True}
    assert "unavoidable" not in document["steps"][1]
    assert "lowers the replicas from 1 to 0" in document["why"][0]
    assert all("unavoidable" not in plan for plan in planned(given))


def test_cancelled_cycles_are_told_on_stderr() -> None:
    assert run(CYCLIC).stderr.startswith("cancelled: A, B, C would have to pass their places on")
    assert run([MOVED, CYCLIC]).stderr.startswith("[2]: cancelled: A, B, C")
    assert run(MOVED).stderr == ""


def test_every_format_tells_the_same() -> None:
    steps = planned(CYCLIC)
    assert [json.loads(line) for line in run(CYCLIC, "-o", "jsonl").stdout.splitlines()] == steps
    assert YAML(typ="safe").load(run(CYCLIC, "-o", "yaml").stdout) == steps
    assert run(CYCLIC, "-o", "csv").stdout.splitlines()[1] == "COPY,,-1,-1,D,-1,3"
    several = [MOVED, SHRUNK]
    assert YAML(typ="safe").load(run(several, "-o", "yaml").stdout) == planned(several)
    assert [json.loads(line) for line in run(several, "-o", "jsonl").stdout.splitlines()] == planned(several)
    assert run(several, "-o", "csv").stdout.splitlines() == [
        "row,type,src,srcCurrentIndex,srcNewIndex,dst,dstCurrentIndex,dstNewIndex",
        "1,MOVE,A,0,-1,D,-1,0",
        "2,SHIFT UP,A,0,-1,B,1,0",
    ]
    assert "SHIFT UP" in run(several, "-o", "table").stdout
    assert YAML(typ="safe").load(run(MOVED, "--explain", "-o", "yaml").stdout) == planned(MOVED, "--explain")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("", 'stdin: is empty; write {"current": ["A", null]'),
        ("{", "stdin: is not JSON: EOF while parsing an object at line 1"),
        ("[" * 10_000, "stdin: is not JSON: recursion limit"),
        (7, 'stdin: 7 does not fit here; write {"current"'),
        ({"current": ["A"]}, 'stdin: target: is missing; write {"current"'),
        ({"current": ["A"], "target": "A"}, 'stdin: target: "A" does not fit here; write a list, as in ["A", null]'),
        ({"current": ["A"], "target": ["A"], "curent": []}, "curent: there is no such field; did you mean current?"),
        (
            {"current": [""], "target": ["A"]},
            "stdin: current: index 0: the name is empty; write null where no member is",
        ),
        ({"current": ["A", 5], "target": ["A"]}, "stdin: current: index 1: 5 does not fit here; write the name"),
        ({"current": ["A"], "target": ["A", "B"]}, "stdin: target: has 2 replicas and current has 1"),
        ({"current": [None] * 8, "target": [None] * 8}, "current: has 8 replicas; a partition has at most 7"),
        ({"current": ["A", "A"], "target": ["A", None]}, "stdin: current: the same member is at index 0 and 1"),
        ([MOVED, {"current": ["A"], "target": []}], "stdin: [2].target: has 0 replicas and current has 1"),
        ([MOVED, {"current": ["A"]}], "stdin: [2].target: is missing"),
        ([MOVED, {"current": ["A"], "target": [""]}], "stdin: [2].target: index 0: the name is empty"),
        ([[]], "stdin: [1]: [] does not fit here; write {"),
    ],
)
def test_bad_input_is_one_line_and_code_2(given: object, message: str) -> None:
    must_be_bad_input(run(given), message)
