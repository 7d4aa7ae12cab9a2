"""The audit on Spark, in a process of its own: the console itself never loads Spark."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

import msgspec

from quarterdeck.app.views.audit.findings import AuditReport
from quarterdeck.backend.picture.text.formatting import one_line

AUDIT = (sys.executable, "-P", "-c", "from quarterdeck.cli.main import run; run()", "audit")
"""The command line that audits; paths and the form of the output are added. With -P no `cli` of the folder at hand is run."""

AUDIT_CODES = (0, 1)
"""How an audit that was done ends: nothing violated, or something."""

STOP_SECONDS = 5.0
"""How long a process that was told to stop may take."""

LONGEST_LINE = 1_000_000

JVM_WARNING = "WARNING: "
"""How lines of Java begin that tell an operator nothing."""

RUN_PREFIX = "run="


@runtime_checkable
class HasJournal(Protocol):
    """A cluster, or a session, that knows where its journal is."""

    @property
    def journal_path(self) -> Path | None:
        """The journal's directory, one run's directory, or a single file; None when nothing is recorded."""
        ...


class AuditFailed(Exception):
    """The audit could not be done; the message says why and what to do."""


def audited_path(journal: Path, run: str) -> Path:
    """What of a journal to audit: only the directory of this run where there is one."""
    directory = journal / f"{RUN_PREFIX}{run}"
    try:
        return directory if run and directory.is_dir() else journal
    except OSError:
        return journal  # where one may not look, what is wrong is for the audit to tell


def findings_places(journal: Path, run: str) -> tuple[Path, ...]:
    """Directories in which a file of findings about this run may be."""
    home = journal.parent if journal.is_file() or journal.name.startswith(RUN_PREFIX) else journal
    return (home, home / f"{RUN_PREFIX}{run}") if run else (home,)


class AuditRunner:
    """Runs one audit. `last_line` is the last thing it told about its progress."""

    def __init__(self, command: Sequence[str] = AUDIT) -> None:
        self._command = tuple(command)
        self.last_line = ""

    async def run(self, path: Path) -> AuditReport:
        """Audit `path`; returns when that is done. The process ends when the caller is cancelled. Raises `AuditFailed`."""
        self.last_line = ""
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command, str(path), "-o", "json",
                stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
                limit=LONGEST_LINE,
            )  # fmt: skip
        except OSError as problem:
            raise AuditFailed(f"the audit cannot be started: {problem}") from problem
        assert process.stdout is not None and process.stderr is not None
        try:
            printed, _ = await asyncio.gather(process.stdout.read(), self._read_progress(process.stderr))
            code = await process.wait()
        finally:
            if process.returncode is None:
                await _end(process)
        if code not in AUDIT_CODES:
            raise AuditFailed(self.last_line or f"the audit ended with code {code} and printed nothing")
        try:
            return msgspec.json.decode(printed, type=AuditReport)
        except (msgspec.MsgspecError, UnicodeDecodeError) as problem:
            raise AuditFailed(self.last_line or f"what the audit printed cannot be read: {problem}") from problem

    async def _read_progress(self, stderr: asyncio.StreamReader) -> None:
        """Remember the last line that says something, until the process says nothing more."""
        while line := await stderr.readline():
            text = line.decode(errors="replace").strip()
            if text and not text.startswith(JVM_WARNING):
                self.last_line = one_line(text)


async def _end(process: asyncio.subprocess.Process) -> None:
    """Ask the process to end, and end it when it does not."""
    process.terminate()
    try:
        await asyncio.wait_for(process.wait(), STOP_SECONDS)
    except TimeoutError:
        process.kill()
        await process.wait()
