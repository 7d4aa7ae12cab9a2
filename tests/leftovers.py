"""What tests leave behind fails their run: processes that go on, and files outside of the folders that tests are given."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import platformdirs
import pytest

RUN = "TESTS_OF_THIS_RUN"
"""Stands in the environment of whatever a run starts, and of what that starts."""

SECONDS_TO_END = 90.0
"""Workers of Spark and of pytest itself end by themselves soon after the last test. Java may first write an archive of its
classes, which takes long on a busy machine."""

CACHES = {
    *("__pycache__", ".git", ".hypothesis", ".import_linter_cache", ".mypy_cache", ".pytest_cache", ".ruff_cache"),
    *(".venv", "build"),
}
"""Folders that tools keep, which are no leftovers."""


class Leftovers:
    """A plugin of pytest. Of processes that share the tests, the one that gives them out looks."""

    def __init__(self, root: Path) -> None:
        os.environ[RUN] = self._run = uuid.uuid4().hex
        self._places = (root, platformdirs.user_config_path("quarterdeck"), platformdirs.user_state_path("quarterdeck"))
        self._files = self._now()

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        left = sorted(str(file) for file in self._now() - self._files - tracked(self._places[0]))
        end_spark()
        end_resource_tracker()
        limit = time.monotonic() + SECONDS_TO_END
        while (running := processes_of(self._run)) and time.monotonic() < limit:
            time.sleep(0.1)  # time is the subject: they are given so long
        told = [f"left behind: {file}" for file in left]
        told += [f"left running: {number} {command}" for number, command in running.items()]
        if told:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
            reporter: pytest.TerminalReporter = session.config.pluginmanager.getplugin("terminalreporter")
            reporter.ensure_newline()
            for line in told:
                reporter.write_line(line, red=True)

    def _now(self) -> set[Path]:
        return {file for place in self._places for file in files_under(place)}


def end_spark() -> None:
    """Where tests are not shared out, Spark's Java is a child of this process and would end with it."""
    spark = sys.modules.get("pyspark")
    gateway = spark.SparkContext._gateway if spark is not None else None
    java: subprocess.Popen[bytes] | None = getattr(gateway, "proc", None)
    if gateway is not None and java is not None and java.stdin is not None:
        gateway.shutdown()
        java.stdin.close()
        java.wait(SECONDS_TO_END)


def end_resource_tracker() -> None:
    """Where tests are not shared out, the process that multiprocessing keeps to clean up would end with this one."""
    module = sys.modules.get("multiprocessing.resource_tracker")
    if module is not None:
        module._resource_tracker._stop()


def tracked(root: Path) -> set[Path]:
    """The files that belong to the project: somebody may fetch more of them while tests run."""
    if not (root / ".git").exists() or shutil.which("git") is None:
        return set()
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True, check=True).stdout
    return {root / name for name in listed.split("\0") if name}


def files_under(root: Path) -> Iterator[Path]:
    """All files but those of caches."""
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name not in CACHES]
        yield from (Path(folder, file) for file in files)


def processes_of(run: str) -> dict[int, str]:
    """The command line of each other process that was started by a run; none where the system does not tell."""
    mark = f"{RUN}={run}".encode()
    found = {}
    for environment in Path("/proc").glob("[0-9]*/environ"):
        number = int(environment.parent.name)
        try:
            if number == os.getpid() or mark not in environment.read_bytes().split(b"\0"):
                continue
            command = environment.with_name("cmdline").read_bytes()
        except OSError:
            continue  # it has ended, or belongs to somebody else
        if command:  # else it has ended, and only its parent has not asked for it
            found[number] = command.replace(b"\0", b" ").decode(errors="replace").strip()
    return found
