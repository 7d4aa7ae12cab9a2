"""One listing in every format."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from quarterdeck import cli
from quarterdeck.cli.exits import CommandFailed, ExitCode
from quarterdeck.cli.output import TABLE_CHUNK_ROWS, Format, narrate, write_document, write_rows
from tests.cli.conftest import Quarterdeck

ROWS: list[dict[str, object]] = [
    {"name": "athens", "members": ["athens", "delphi"], "up": True, "more": {"version": 3}},
    {"name": "[red]fe80::1[/]\x1b[2J", "members": [], "up": False, "more": None},
]
COLUMNS = ("name", "members", "up", "more")


def written(capsys: pytest.CaptureFixture[str], output: Format, rows: list[dict[str, object]] = ROWS) -> str:
    write_rows(iter(rows), COLUMNS, output)
    return capsys.readouterr().out


def test_formats_with_structure_tell_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    assert json.loads(written(capsys, Format.JSON)) == ROWS
    assert [json.loads(line) for line in written(capsys, Format.JSONL).splitlines()] == ROWS
    assert YAML(typ="safe").load(written(capsys, Format.YAML)) == ROWS


def test_csv_has_one_line_of_text_per_cell(capsys: pytest.CaptureFixture[str]) -> None:
    rows = list(csv.reader(io.StringIO(written(capsys, Format.CSV))))
    assert rows[0] == list(COLUMNS)
    assert rows[1] == ["athens", "athens delphi", "true", '{"version":3}']


def test_table_shows_remote_text_as_it_is_and_harmless(capsys: pytest.CaptureFixture[str]) -> None:
    table = written(capsys, Format.TABLE)
    assert "[red]fe80::1[/]\\x1b[2J" in table
    assert "\x1b" not in table


STEERING = "[31m\x9b2J \u202eon \u2066x\u2069\u200f"


@pytest.mark.parametrize("output", [Format.JSON, Format.JSONL])
def test_json_means_the_same_and_steers_no_terminal(capsys: pytest.CaptureFixture[str], output: Format) -> None:
    text = written(capsys, output, [{"name": STEERING}])
    assert text.replace("\n", "").isprintable()
    assert STEERING in json.dumps(json.loads(text), ensure_ascii=False)


def test_a_failure_and_a_narration_steer_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    narrate(f"one\n{STEERING}\x1b")
    shown = capsys.readouterr().err + str(CommandFailed(ExitCode.REFUSED, STEERING).message)
    assert shown.replace("\n", "").isprintable() and shown.count("\n") == 2


def test_long_tables_have_one_heading(capsys: pytest.CaptureFixture[str]) -> None:
    rows: list[dict[str, object]] = [{"name": f"n{number}"} for number in range(TABLE_CHUNK_ROWS + 1)]
    lines = written(capsys, Format.TABLE, rows).splitlines()
    assert len(lines) == len(rows) + 1
    assert sum(line.startswith("name") for line in lines) == 1


@pytest.mark.parametrize("output", Format)
def test_nothing_is_a_listing_too(capsys: pytest.CaptureFixture[str], output: Format) -> None:
    text = written(capsys, output, [])
    assert text.split() in ([], ["[]"], [",".join(COLUMNS)], list(COLUMNS))


@pytest.mark.parametrize("output", [Format.JSON, Format.JSONL])
def test_documents_are_json(capsys: pytest.CaptureFixture[str], output: Format) -> None:
    write_document({"passed": True, "members": {}}, output)
    assert json.loads(capsys.readouterr().out) == {"passed": True, "members": {}}


def test_paths(quarterdeck: Quarterdeck) -> None:
    result = quarterdeck("paths", "-o", "json")
    assert result.returncode == 0
    assert result.stderr == ""
    assert {row["what"] for row in json.loads(result.stdout)} == {
        "config",
        "configuration file",
        "state",
        "console state",
        "journals",
        "cache",
    }


def test_empty_journal(quarterdeck: Quarterdeck) -> None:
    result = quarterdeck("journal", "ls", "-o", "json")
    assert (result.returncode, json.loads(result.stdout)) == (0, [])
    assert result.stderr == "nothing is recorded yet\n"


@pytest.mark.parametrize("number", ["nan", "inf"])
def test_an_amount_is_a_finite_number(quarterdeck: Quarterdeck, number: str) -> None:
    """A range does not refuse them: nothing is less than no number."""
    done = quarterdeck("cluster", "watch", "--connect", "http://127.0.0.1:1", "--for", number)
    assert done.returncode == 2 and "is no amount" in done.stderr


HOSTILE = "\x1b]52;c;aGk=\x07\u202egpj.exe\u2066\x9b2J\r\x00"


@pytest.mark.parametrize("output", Format)
def test_no_format_lets_remote_text_steer_a_terminal(capsys: pytest.CaptureFixture[str], output: Format) -> None:
    text = written(capsys, output, [{"name": HOSTILE, "members": [HOSTILE], "up": True, "more": {HOSTILE: HOSTILE}}])
    assert all(letter.isprintable() or letter == "\n" for letter in text)
    if output is Format.JSON:
        assert json.loads(text)[0]["name"] == HOSTILE
    if output is Format.YAML:
        assert YAML(typ="safe").load(text)[0]["name"] == HOSTILE


@pytest.mark.parametrize("formula", ["=cmd|'/C calc'!A0", "+1+1", "-1+1", "@SUM(A1)", "\t=1+1", "\r=1+1"])
def test_no_cell_of_csv_is_a_formula(capsys: pytest.CaptureFixture[str], formula: str) -> None:
    text = written(capsys, Format.CSV, [{"name": formula, "members": [formula], "up": -1, "more": None}])
    _, cells = csv.reader(io.StringIO(text))
    assert all(not cell.startswith(("=", "+", "@", "\t", "\r")) for cell in cells) and cells[2] == "-1"
    assert not cells[0].startswith("-") and not cells[1].startswith("-")


def test_all_output_is_written_in_one_place() -> None:
    """Elsewhere in the command line no text is printed that could hold what others have chosen."""
    printing = re.compile(r"(?<![\w.])print\(|typer\.echo\(|sys\.std(out|err)\.write\(")
    root = Path(cli.__file__).parent
    found = {
        f"{path.relative_to(root)}: {line.strip()}"
        for path in root.rglob("*.py")
        if path.name != "output.py"
        for line in path.read_text(encoding="utf-8").splitlines()
        if printing.search(line)
    }
    assert found == {'commands/demo.py: print(prompt, end="", file=sys.stderr, flush=True)'}


def test_a_table_shows_fields_in_words_and_csv_keeps_them_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"member": "n1", "lists": [{"version": 5, "held_by": ["n1", "n2"], "since": None}, {"version": 6}]}]
    write_rows(rows, ("member", "lists"), Format.TABLE)
    assert capsys.readouterr().out.splitlines()[1] == "n1      version 5, held_by n1 n2; version 6"
    write_rows(rows, ("member", "lists"), Format.CSV)
    assert '""version"":5' in capsys.readouterr().out


def test_a_table_on_a_narrow_terminal_breaks_no_word(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "60")
    row = {"name": "explicit-suspicion", "text": "the master removes a member that is alive and does not know it"}
    write_rows([row], ("name", "text"), Format.TABLE)
    assert "explicit-suspicion" in capsys.readouterr().out
    write_rows([{**row, "text": " ".join(["masterconfirmation"] * 9)}] * 2, ("name", "text"), Format.TABLE)
    drawn = capsys.readouterr().out
    assert drawn.count("explicit-suspicion") == 2 and drawn.count("masterconfirmation") == 18


def test_the_list_of_demos_fits_a_terminal_of_120_columns(quarterdeck: Quarterdeck) -> None:
    listed = quarterdeck("demo", "ls").stdout.splitlines()
    assert max(map(len, listed)) <= 120 and "summary" not in listed[0]
