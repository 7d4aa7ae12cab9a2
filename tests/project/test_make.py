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
    assert "[pipeline" not in recipe
    assert "[dev]" not in recipe


def test_tests_get_everything() -> None:
    recipe = dry_run("test")
    assert "[pipeline,delta]" in recipe
    assert "[web]" in recipe
    assert "[dev]" in recipe


@pytest.mark.parametrize(("released", "tested", "code"), [(0, 0, 0), (1, 0, 1), (0, 2, 2)])
def test_the_build_server_fails_with_its_steps_and_says_what_was_skipped(
    released: int, tested: int, code: int, tmp_path: Path
) -> None:
    places = [f"SKIPPED [{count}] tests/test_{count}.py:7: needs root" for count in (1, 2)]
    steps = f"""#!/bin/sh
if [ "$1" = release ]; then exit {released}; fi
[ "$*" = "--keep-going lint test" ] && printf '%s\\n' '{places[0]}' '{places[1]}' '7 passed, 3 skipped'
exit {tested}
"""
    for name in ("make", "chromium", "promtool"):
        (tmp_path / name).write_text(steps)
        (tmp_path / name).chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run([ROOT / ".ci" / "run"], env=environment, text=True, capture_output=True, check=False)
    assert done.returncode == code
    after = done.stdout.partition("7 passed, 3 skipped\n")[2]
    assert after.startswith("What was skipped here, and why:\n   3  needs root\n")
    assert ("the release failed" in after) == bool(released)
