"""What a run of tests leaves behind is found."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.leftovers import RUN, files_under, processes_of
from tests.waiting import wait_until


def test_a_process_that_goes_on_is_found_until_it_ends() -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, env={**os.environ, RUN: "a run of its own"}
    )
    with child:
        wait_until(lambda: "input()" in processes_of("a run of its own").get(child.pid, ""))
        assert processes_of("another run") == {}
        child.communicate(b"\n")
    assert processes_of("a run of its own") == {}


def test_a_new_file_is_found_unless_it_is_one_of_a_cache(tmp_path: Path) -> None:
    (tmp_path / "room" / "__pycache__").mkdir(parents=True)
    (tmp_path / "room" / "__pycache__" / "a.pyc").touch()
    before = set(files_under(tmp_path))
    (tmp_path / "room" / "left").touch()
    (tmp_path / "room" / "__pycache__" / "b.pyc").touch()
    assert set(files_under(tmp_path)) - before == {tmp_path / "room" / "left"}
