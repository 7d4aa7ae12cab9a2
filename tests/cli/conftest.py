"""The command line as people run it, with a home of its own: mostly in this process, which saves the start of another."""

from __future__ import annotations

import io
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from typer.testing import Result

from quarterdeck.backend.service.member_log import LEVEL_LOGGER
from quarterdeck.cli.exits import CommandFailed, ExitCode

Quarterdeck = Callable[..., "subprocess.CompletedProcess[str]"]
"""Run `quarterdeck` with these arguments, no terminal, `typed` at its stdin, and names in the environment."""


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """What stands in the environment of each run: folders of its own, and no settings of whoever runs the tests."""
    return {
        "HOME": str(tmp_path),
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "TERM": "dumb",
    }


@pytest.fixture
def quarterdeck_process(home: dict[str, str]) -> Quarterdeck:
    """In a process of its own: for what only shows there, as equal runs in different processes do."""

    def run(*arguments: str | Path, typed: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", "from quarterdeck.cli.main import run; run()", *map(str, arguments)],
            env={**_without_settings(), **home, **environment},
            text=True,
            capture_output=True,
            check=False,
            input=typed,
            timeout=150,
        )

    return run


@pytest.fixture
def quarterdeck(
    home: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Quarterdeck:
    """In this process."""

    def run(*arguments: str | Path, typed: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
        from quarterdeck.cli.main import run

        words = ["quarterdeck", *map(str, arguments)]
        capsys.readouterr()
        with monkeypatch.context() as here, _logging_as_before(), pytest.raises(SystemExit) as ended:
            for name in os.environ.keys() - _without_settings().keys():
                here.delenv(name)
            for name, value in {**home, **environment}.items():
                here.setenv(name, value)
            here.setattr(sys, "argv", words)
            here.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(typed.encode()), encoding="utf-8"))
            run()
        code = ended.value.code
        return subprocess.CompletedProcess(words, code if isinstance(code, int) else 0, *capsys.readouterr())

    return run


def must_be_bad_input(result: Result, message: str) -> None:
    """One line that says so, exit code 2, and nothing on stdout."""
    assert result.stdout == ""
    assert isinstance(result.exception, CommandFailed)
    assert result.exception.exit_code == ExitCode.BAD_INPUT
    said = result.exception.format_message()
    assert message in said and "\n" not in said and len(said) < 300


@contextmanager
def _logging_as_before() -> Iterator[None]:
    """Commands that run members say where logs go, for the whole process."""
    root, of_members = logging.getLogger(), logging.getLogger(LEVEL_LOGGER)
    handlers, levels = root.handlers[:], (root.level, of_members.level)
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(levels[0])
        of_members.setLevel(levels[1])


def _without_settings() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("QUARTERDECK_")}
