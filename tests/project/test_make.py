"""The Makefile and the build server's script, as far as they can be looked at without building."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def dry_run(*targets: str) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    command = ["make", "--dry-run", "--always-make", *targets]
    return subprocess.run(command, cwd=ROOT, env=environment, text=True, capture_output=True, check=True).stdout


@pytest.mark.parametrize("target", ["console", "test", "lint", "bench", "screenshots", "pipeline", "web"])
def test_targets_make_the_environment_first(target: str) -> None:
    recipe = dry_run(target)
    assert recipe.index("-m venv") < recipe.index("--editable .\n")


def test_the_console_installs_neither_spark_nor_the_tools() -> None:
    recipe = dry_run("console")
    assert "[pipeline]" not in recipe
    assert "[dev]" not in recipe


def test_tests_get_everything() -> None:
    recipe = dry_run("test")
    assert "[pipeline]" in recipe
    assert "[web]" in recipe
    assert "[dev]" in recipe


def test_build_server_runs_both_checks() -> None:
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert "make --keep-going lint test" in script.read_text()
