"""Copying and exporting: sequences for terminals, files that are never overwritten unasked."""

from __future__ import annotations

import asyncio
import base64
import csv
import io
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.app import App, ComposeResult
from textual.widgets import Static

from quarterdeck.app.export import (
    LONGEST_BASE64,
    BadExport,
    Target,
    as_csv,
    as_json,
    as_much_as_fits,
    as_text,
    copy,
    export_rows,
    export_screen,
    osc_52,
    target_of,
    through_tmux,
)

ROWS = [{"member": "athens", "state": "= member"}, {"member": 'a "b", c', "state": "∅", "note": "new\nline"}]


def test_a_short_text_is_copied_whole() -> None:
    copied = as_much_as_fits("athens é")
    assert copied == ("athens é", 9, 9)
    assert copied.sentence == "copied 9 bytes"


def test_a_long_text_is_cut_and_that_is_said() -> None:
    copied = as_much_as_fits("é" * 40_000)
    assert len(base64.b64encode(copied.text.encode())) <= LONGEST_BASE64
    assert copied.bytes_wanted == 80_000
    assert copied.sentence.startswith(f"copied only the first {copied.bytes:,} of 80,000 bytes")
    assert copied.bytes > 56_000


@given(st.text(), st.integers(0, 3))
def test_whatever_is_copied_comes_out_again(text: str, times: int) -> None:
    copied = as_much_as_fits(text * 10**times)
    sequence = osc_52(copied.text)
    assert base64.b64decode(sequence.removeprefix("\x1b]52;c;").removesuffix("\a")) == copied.text.encode(
        errors="replace"
    )
    assert len(sequence) <= LONGEST_BASE64 + 10
    wrapped = through_tmux(sequence)
    assert wrapped.removeprefix("\x1bPtmux;").removesuffix("\x1b\\").replace("\x1b\x1b", "\x1b") == sequence


class Plain(App[None]):
    def compose(self) -> ComposeResult:
        yield Static("athens ▸", markup=False)


@pytest.mark.parametrize(
    ("environment", "wrapped"), [({}, 0), ({"TMUX": ""}, 0), ({"TMUX": "/tmp/tmux-0/default,1,0"}, 1)]
)
def test_in_tmux_the_wrapped_form_is_sent_too(
    environment: dict[str, str], wrapped: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> list[str]:
        app, written = Plain(), []
        async with app.run_test():
            assert app._driver is not None
            monkeypatch.setattr(app._driver, "write", written.append)
            assert copy(app, "athens", environment).sentence == "copied 6 bytes"
            assert app.clipboard == "athens"
        return [text for text in written if "52;c;" in text]

    written = asyncio.run(scenario())
    assert written[0] == osc_52("athens")
    assert written[1:] == [through_tmux(osc_52("athens"))] * wrapped


def test_formats() -> None:
    assert list(csv.DictReader(io.StringIO(as_csv(ROWS)))) == [{**ROWS[0], "note": ""}, ROWS[1]]
    assert json.loads(as_json(ROWS)) == ROWS
    assert as_json(ROWS).count("\n") == 4
    assert json.loads(as_json([])) == []
    assert as_csv([]) == "\n"
    assert as_text(ROWS[:1]) == "athens\t= member"


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("a.csv", Target(Path("a.csv"), False)),
        (" a b.CSV ", Target(Path("a b.CSV"), False)),
        ("a.csv!", Target(Path("a.csv"), True)),
        ("a.csv !", Target(Path("a.csv"), True)),
    ],
)
def test_targets(text: str, target: Target) -> None:
    assert target_of(text, "export FILE") == target
    assert target.suffix == ".csv"


def test_a_home_of_nobody_is_said() -> None:
    with pytest.raises(BadExport, match="this machine has no user of that name"):
        target_of("~nobody-of-this-name/a.csv", "export FILE")


@pytest.mark.parametrize("text", ["", " ", "!"])
def test_a_target_has_to_be_named(text: str) -> None:
    with pytest.raises(BadExport, match="which file\\? write export FILE"):
        target_of(text, "export FILE")


def test_nothing_is_overwritten_unasked(tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    app = Plain()
    assert export_rows(app, ROWS, Target(file, False)) == f"2 rows written to {file}"
    first = file.read_text()
    with pytest.raises(BadExport, match="exists already; put ! after"):
        export_rows(app, ROWS[:1], Target(file, False))
    assert file.read_text() == first
    assert export_rows(app, ROWS[:1], Target(file, True)) == f"1 row written to {file}"
    assert file.read_text() != first


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("rows.xlsx", "xlsx is not a format of tables; write FILE.csv or FILE.json"),
        ("rows", "no suffix is not a format"),
        ("nowhere/rows.csv", "there is no folder"),
        ("folder.csv", "is a folder|exists already"),
        ("\0.csv", "cannot be written"),
        ("n" * 300 + ".csv", "cannot be written"),
    ],
)
def test_what_cannot_be_written_is_said(tmp_path: Path, name: str, told: str) -> None:
    (tmp_path / "folder.csv").mkdir()
    for overwrite in (False, True):
        with pytest.raises(BadExport, match=told):
            export_rows(Plain(), ROWS, Target(tmp_path / name, overwrite))
    assert [file.name for file in tmp_path.iterdir()] == ["folder.csv"]


def test_in_a_browser_nothing_is_written_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[tuple[str, str]] = []
    monkeypatch.setattr(Plain, "is_web", True)
    monkeypatch.setattr(
        Plain, "deliver_text", lambda self, text, save_filename: sent.append((text.read(), save_filename))
    )
    told = export_rows(Plain(), ROWS, Target(tmp_path / "rows.json", True))
    assert told == "2 rows sent to the browser as rows.json"
    assert sent == [(as_json(ROWS), "rows.json")]
    assert list(tmp_path.iterdir()) == []


def test_the_screen_as_text_and_as_a_picture(tmp_path: Path) -> None:
    async def scenario() -> None:
        app = Plain()
        async with app.run_test(size=(30, 3)):
            export_screen(app, Target(tmp_path / "screen.txt", False))
            export_screen(app, Target(tmp_path / "screen.svg", False))
            with pytest.raises(BadExport, match="not a format of screens"):
                export_screen(app, Target(tmp_path / "screen.png", False))

    asyncio.run(scenario())
    assert (tmp_path / "screen.txt").read_text() == "athens ▸\n\n\n"
    svg = (tmp_path / "screen.svg").read_text()
    assert svg.startswith("<svg")
    assert "athens" in svg
    assert "http" not in svg.replace("http://www.w3.org", "").replace("https://www.textualize.io", "")
