"""The command line as people run it: a child process of its own, with its own folders."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Quarterdeck = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def quarterdeck(tmp_path: Path) -> Quarterdeck:
    """Run `quarterdeck` with these arguments, no terminal, and a home of its own."""
    environment = {**os.environ, "HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "state"), "TERM": "dumb"}

    def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", "from quarterdeck.cli.main import run; run()", *map(str, arguments)],
            env=environment,
            text=True,
            capture_output=True,
            check=False,
            stdin=subprocess.DEVNULL,
            timeout=150,
        )

    return run


@pytest.fixture
def quarterdeck_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Quarterdeck:
    """The same in this process, which saves its start: for what ends before anything begins, as bad input does."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("TERM", "dumb")

    def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        from quarterdeck.cli.main import run

        words = ["quarterdeck", *map(str, arguments)]
        monkeypatch.setattr(sys, "argv", words)
        with pytest.raises(SystemExit) as ended:
            run()
        code = ended.value.code
        return subprocess.CompletedProcess(words, code if isinstance(code, int) else 0, *capsys.readouterr())

    return run
