"""What the console remembers: views and history, in one file that is never half written."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from quarterdeck.app.console_state import HISTORY_LENGTH, ConsoleState, TableSettings
from tests.thoroughness import examples


@pytest.fixture
def told() -> list[str]:
    return []


def state_in(folder: Path, told: list[str]) -> ConsoleState:
    return ConsoleState(folder / "state" / "console.json", told.append)


def test_views_are_found_again(tmp_path: Path, told: list[str]) -> None:
    wanted = TableSettings(sort="age", reverse=True, hidden=("uuid", "group"))
    state_in(tmp_path, told).keep("members", wanted, with_filter=True)
    again = state_in(tmp_path, told)
    assert again.table_settings_of("members") == wanted
    assert again.table_settings_of("network") == TableSettings()
    assert told == []


def test_a_filter_is_kept_only_when_it_is_saved(tmp_path: Path, told: list[str]) -> None:
    state = state_in(tmp_path, told)
    state.keep("members", TableSettings(sort="age", hidden=("uuid",), filter="athens"))
    assert state_in(tmp_path, told).table_settings_of("members") == TableSettings(hidden=("uuid",))
    state.keep("members", TableSettings(sort="age", filter="athens"), with_filter=True)
    assert state_in(tmp_path, told).table_settings_of("members").filter == "athens"
    # Sorting later on, with another filter in sight, does not touch the saved one.
    state.keep("members", TableSettings(sort="role", filter="byz"))
    assert state_in(tmp_path, told).table_settings_of("members") == TableSettings(sort="age", filter="athens")
    state.forget("members")
    assert state_in(tmp_path, told).table_settings_of("members") == TableSettings()


def test_several_consoles_do_not_forget_for_each_other(tmp_path: Path, told: list[str]) -> None:
    one, other = state_in(tmp_path, told), state_in(tmp_path, told)
    one.keep("members", TableSettings(sort="age"), with_filter=True)
    other.keep("network", TableSettings(reverse=True), with_filter=True)
    one.add_to_history(":", "stop athens")
    again = state_in(tmp_path, told)
    assert again.table_settings_of("members").sort == "age"
    assert again.table_settings_of("network").reverse
    assert again.typed_before(":") == ("stop athens",)


def test_history_is_bounded_and_without_repetition(tmp_path: Path, told: list[str]) -> None:
    state = state_in(tmp_path, told)
    for number in range(HISTORY_LENGTH + 5):
        state.add_to_history(":", f"stop n{number}")
    state.add_to_history(":", "stop n50")
    state.add_to_history(":", "  ")
    state.add_to_history("/", "athens")
    again = state_in(tmp_path, told)
    commands = again.typed_before(":")
    assert len(commands) == HISTORY_LENGTH
    assert commands[-2:] == ("stop n104", "stop n50")
    assert commands.count("stop n50") == 1
    assert again.typed_before("/") == ("athens",)


def test_the_file_is_for_its_owner_alone_and_nothing_is_left_beside_it(tmp_path: Path, told: list[str]) -> None:
    state_in(tmp_path, told).add_to_history(":", "put m k secret")
    folder = tmp_path / "state"
    assert [file.name for file in folder.iterdir()] == ["console.json"]
    assert (folder / "console.json").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b'{"views": 3}', b'{"views": {"members": {"sort": 3}}}', b"\xff\xfe", b'{"format": 99}'],
)
def test_a_corrupt_file_is_told_and_set_aside(tmp_path: Path, told: list[str], content: bytes) -> None:
    file = tmp_path / "state" / "console.json"
    file.parent.mkdir()
    file.write_bytes(content)
    state = state_in(tmp_path, told)
    assert state.table_settings_of("members") == TableSettings()
    assert len(told) == 1
    assert "set aside" in told[0]
    assert file.with_suffix(".unreadable").read_bytes() == content
    state.keep("members", TableSettings(sort="age"), with_filter=True)
    assert json.loads(file.read_text())["views"]["members"]["sort"] == "age"


def test_fields_of_a_later_version_are_passed_over(tmp_path: Path, told: list[str]) -> None:
    file = tmp_path / "state" / "console.json"
    file.parent.mkdir()
    file.write_text('{"format": 1, "views": {"members": {"sort": "age", "colour": "red"}}, "more": 1}')
    assert state_in(tmp_path, told).table_settings_of("members").sort == "age"
    assert told == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_told_once(tmp_path: Path, told: list[str]) -> None:
    (tmp_path / "state").mkdir(mode=0o500)
    state = state_in(tmp_path, told)
    state.keep("members", TableSettings(sort="age"), with_filter=True)
    state.keep("members", TableSettings(sort="role"), with_filter=True)
    assert len(told) == 1


def test_a_folder_in_the_way_is_told_once_and_the_console_goes_on(tmp_path: Path, told: list[str]) -> None:
    (tmp_path / "state").write_text("in the way")
    state = state_in(tmp_path, told)
    state.keep("members", TableSettings(sort="age"), with_filter=True)
    for line in ("help", "stop n1"):
        state.add_to_history(":", line)
    assert state.typed_before(":") == ("help", "stop n1")
    state.keep("members", TableSettings(sort="role"), with_filter=True)
    assert len(told) == 1
    assert state.table_settings_of("members").sort in ("role", "")


def test_without_a_file_it_remembers_until_the_end(told: list[str]) -> None:
    state = ConsoleState(None, told.append)
    state.keep("members", TableSettings(sort="age"), with_filter=True)
    state.add_to_history(":", "help")
    assert state.table_settings_of("members").sort == "age"
    assert state.typed_before(":") == ("help",)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(60))
@given(st.binary(max_size=200))
def test_no_content_of_the_file_stops_the_console(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "console.json"
    file.write_bytes(content)
    told: list[str] = []
    ConsoleState(file, told.append).keep("members", TableSettings(sort="age"), with_filter=True)
    assert ConsoleState(file, told.append).table_settings_of("members").sort == "age"
