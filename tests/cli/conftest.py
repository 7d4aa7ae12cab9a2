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
