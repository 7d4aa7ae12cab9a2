"""`quarterdeck map`: operations on the distributed map of a cluster that lives as long as the command."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from quarterdeck.cli.commands.map.session import ScriptLine, ScriptLoad, read_script
from quarterdeck.cli.exits import CommandFailed
from tests.cli.conftest import Quarterdeck


def test_a_script_is_done_line_by_line_and_outlives_a_killed_member(quarterdeck: Quarterdeck, tmp_path: Path) -> None:
    script = tmp_path / "session"
    script.write_text(
        "put capitals fr 'paris on seine'  # with blanks\n"
        "\n"
        "load numbers 1000 10\n"
        "kill n1\n"
        "get capitals fr\n"
        "get capitals de\n"
        "size numbers\n"
        "start n1\n"
        "remove capitals fr\n"
        "keys capitals\n"
    )
    done = quarterdeck("map", "run", script, "--members", "3", "--journal", tmp_path / "journal")
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["line"] for row in rows] == [1, 3, 4, 5, 6, 7, 8, 9, 10]
    assert rows[0] == {
        "line": 1,
        "do": "put",
        "map": "capitals",
        "key": "fr",
        "value": None,
        "found": False,
        "problem": "",
    }
    assert rows[1]["entries"] == 1000
    assert rows[2] == {"line": 4, "do": "kill", "member": "n1"}
    assert (rows[3]["value"], rows[3]["found"]) == ("paris on seine", True)
    assert rows[4]["found"] is False
    assert rows[5]["size"] == 1000
    assert rows[7]["value"] == "paris on seine"
    assert rows[8]["keys"] == []
    recorded = quarterdeck("journal", "cat", tmp_path / "journal", "-o", "jsonl")
    assert recorded.stdout.count('"call-finished"') == 4


def test_one_operation_after_so_many_keys(quarterdeck: Quarterdeck) -> None:
    done = quarterdeck("map", "size", "--keys", "700", "--members", "2", "--processes")
    assert (done.returncode, json.loads(done.stdout)["size"]) == (0, 700), done.stderr
    done = quarterdeck("map", "get", "key-3", "--keys", "5", "--members", "1", "-o", "csv")
    assert "value," + "v" * 100 in done.stdout.splitlines()


def test_load_tells_how_quick_it_was(quarterdeck: Quarterdeck) -> None:
    done = quarterdeck("map", "load", "--keys", "2000", "--value-bytes", "10", "--members", "2")
    told = json.loads(done.stdout)
    assert (done.returncode, told["entries"], told["size"]) == (0, 2000, 2000)
    assert told["entries_per_second"] > 0


def test_at_a_rate_it_makes_traffic_until_the_time_is_over(quarterdeck: Quarterdeck) -> None:
    words = ("map", "load", "--rate", "400", "--keys", "50", "--skew", "2", "--for", "0.5", "--members", "2")
    done = quarterdeck(*words)
    told = json.loads(done.stdout)
    assert done.returncode == 0, done.stderr
    assert (told["members"], told["rate"], told["done"] + told["left_out"], told["failed"]) == (2, 400, 200, 0)
    assert "--rate" in quarterdeck("map", "load", "--skew", "2").stderr
    wrong = quarterdeck("map", "load", "--rate", "0", "--members", "1")
    assert wrong.returncode == 2 and "rate: Input should be greater than 0" in wrong.stderr


def test_an_operation_that_fails_is_told_and_counts(quarterdeck: Quarterdeck, tmp_path: Path) -> None:
    script = tmp_path / "session"
    script.write_text("size m\nput m k v\n")
    done = quarterdeck("map", "run", script, "--members", "1", "--property", "quarterdeck.minimum.cluster.size=2")
    assert done.returncode == 1
    assert [bool(json.loads(line)["problem"]) for line in done.stdout.splitlines()] == [True, True]
    assert "line 2: " in done.stderr


def test_what_cannot_be_done_as_things_stand_is_refused(quarterdeck: Quarterdeck, tmp_path: Path) -> None:
    script = tmp_path / "session"
    script.write_text("size m\nkill n1\nsize m\n")
    done = quarterdeck("map", "run", script, "--members", "1")
    assert done.returncode == 4
    assert len(done.stdout.splitlines()) == 2
    assert "line 3: no member is left to be asked; start one" in done.stderr


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("size m\npot m k v", "session:2: 'pot' is not known; write one of put, get, "),
        ("put m k two words", "session:1: put takes MAP KEY VALUE, not 4 words"),
        ("size", "session:1: size takes MAP, not 0 words"),
        ("load m many", "session:1: COUNT: 'many' is not a whole number"),
        ("load m 5 -1", "session:1: VALUE_BYTES: '-1' is not a whole number"),
        ("get m 'open", "session:1: No closing quotation"),
    ],
)
def test_a_bad_line_is_named_before_anything_is_done(text: str, problem: str) -> None:
    with pytest.raises(CommandFailed) as told:
        read_script(text, "session")
    assert told.value.format_message().startswith(problem)


def test_a_script_that_is_not_there_is_bad_input(quarterdeck: Quarterdeck, tmp_path: Path) -> None:
    done = quarterdeck("map", "run", tmp_path / "nothing")
    assert done.returncode == 2
    assert "nothing: No such file" in done.stderr


def test_lines_are_read_with_quotes_and_comments() -> None:
    assert read_script("# nothing\n\nload m 7\n", "session") == [ScriptLine(3, ScriptLoad("m", 7))]


def test_words_that_are_no_utf8_are_refused(quarterdeck: Quarterdeck, tmp_path: Path) -> None:
    for words in (["put", b"\xff", "v"], ["put", "k", b"\xff"], ["size", "--map", b"\xff"]):
        refused = quarterdeck("map", *(os.fsdecode(word) for word in words))
        assert (refused.returncode, "not valid UTF-8" in refused.stderr) == (2, True), refused.stderr
    script = tmp_path / "session"
    script.write_bytes(b"put m \xff v\n")
    assert quarterdeck("map", "run", script).returncode == 2
