"""What checks of a run have found, and the audit on Spark, which runs in a process of its own."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

import msgspec
from msgspec import Struct

from quarterdeck.backend.clusters.invariant_monitor import Violation
from quarterdeck.backend.picture.text.formatting import one_line

Origin = Literal["online", "stream", "audit"]

MOST_READ_AT_ONCE = 1_000_000
"""Bytes of a file of findings that are read at once; the rest is read at the next look."""

FINDINGS_FILE = "findings.jsonl"
"""Findings of the stream beside the files of a journal, one JSON object on a line, written as they are found."""


class ShownWitness(Struct, frozen=True):
    """One event, by its identity within the run."""

    uuid: str
    seq: int


class ShownFinding(Struct, frozen=True):
    """One place where a rule is broken, in the form that the audit prints. `severity` is violation or warning."""

    rule: str
    severity: str
    run: str
    member: str
    uuid: str
    seq: int
    at: int
    """Microseconds on the run's clock."""
    detail: str
    witnesses: tuple[ShownWitness, ...] = ()


class AuditReport(Struct, frozen=True):
    """What `quarterdeck audit` prints, as far as it is shown here."""

    findings: tuple[ShownFinding, ...]
    counts: dict[str, int]


_FINDING = msgspec.json.Decoder(ShownFinding)


def of_violation(violation: Violation) -> ShownFinding:
    """Return a broken invariant as a finding, at the last of the records that show it."""
    rule, text = violation.invariant, violation.text
    if not violation.witnesses:
        return ShownFinding(rule, "violation", "", "", "", 0, 0, text)
    witnesses = tuple(ShownWitness(record.uuid, record.seq) for record in violation.witnesses)
    last = max(violation.witnesses, key=lambda record: record.at)
    return ShownFinding(rule, "violation", last.run, last.member, last.uuid, last.seq, last.at, text, witnesses)


class FollowedFindings:
    """Follows a file of findings that another process appends to. An unfinished line waits for the next look."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.findings: list[ShownFinding] = []
        self.bad_lines = 0
        """Finished lines that hold no finding."""
        self.problem = ""
        """Why it could not be read at the last look."""
        self._inode = 0
        self._read_bytes = 0
        self._torn = b""

    def look(self) -> bool:
        """Read what came since the last look. Return whether anything changed. A file that was cut or replaced is read again."""
        try:
            self.problem = ""
            return self._read_on()
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as problem:
            self.problem = f"{self.path.name} cannot be read: {problem.strerror or problem}"
            return False

    def _read_on(self) -> bool:
        status = self.path.stat()
        forgotten = self._read_bytes > 0 and (status.st_ino != self._inode or status.st_size < self._read_bytes)
        if forgotten:
            self.findings, self.bad_lines, self._read_bytes, self._torn = [], 0, 0, b""
        self._inode = status.st_ino
        if status.st_size == self._read_bytes:
            return forgotten
        with self.path.open("rb") as file:
            file.seek(self._read_bytes)
            fresh = file.read(MOST_READ_AT_ONCE)
        self._read_bytes += len(fresh)
        *lines, self._torn = (self._torn + fresh).split(b"\n")
        for line in lines:
            self._read_line(line)
        return bool(lines) or forgotten

    def _read_line(self, line: bytes) -> None:
        if not line.strip():
            return
        try:
            self.findings.append(_FINDING.decode(line))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            self.bad_lines += 1


def of_run(findings: Sequence[ShownFinding], run: str) -> tuple[ShownFinding, ...]:
    """Return the findings of one run; all of them while the run is unknown."""
    return tuple(finding for finding in findings if not run or finding.run == run)


AUDIT = (sys.executable, "-P", "-c", "from quarterdeck.cli.main import run; run()", "audit")
"""The command line that audits, without path and form of the output. Because of -P no `cli` in the working directory is run."""

AUDIT_CODES = (0, 1)
"""Exit codes of a completed audit: nothing violated, or something."""

STOP_SECONDS = 5.0
"""How long a process may take to stop."""

LONGEST_LINE = 1_000_000

JVM_WARNING = "WARNING: "
"""The beginning of Java's lines that mean nothing to an operator."""

RUN_PREFIX = "run="


@runtime_checkable
class HasJournal(Protocol):
    """A cluster, or a session, that knows where its journal is."""

    @property
    def journal_path(self) -> Path | None:
        """The journal's directory, one run's directory, or a single file; None if nothing is recorded."""


class AuditFailed(Exception):
    """The audit could not be done; the message says why and what to do."""


def audited_path(journal: Path, run: str) -> Path:
    """Return what of a journal to audit: only the directory of this run if there is one."""
    directory = journal / f"{RUN_PREFIX}{run}"
    try:
        return directory if run and directory.is_dir() else journal
    except OSError:
        return journal  # where one may not look, what is wrong is for the audit to report


def findings_places(journal: Path, run: str) -> tuple[Path, ...]:
    """Return directories in which a file of findings about this run may be."""
    home = journal.parent if journal.is_file() or journal.name.startswith(RUN_PREFIX) else journal
    return (home, home / f"{RUN_PREFIX}{run}") if run else (home,)


class AuditRunner:
    """Runs one audit. `last_line` is the last line of its progress."""

    def __init__(self, command: Sequence[str] = AUDIT) -> None:
        self._command = tuple(command)
        self.last_line = ""

    async def run(self, path: Path) -> AuditReport:
        """Audit `path` and wait for the end. The process ends when the caller is cancelled.

        Raises:
            AuditFailed: The audit could not be done.
        """
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
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as problem:
            raise AuditFailed(self.last_line or f"what the audit printed cannot be read: {problem}") from problem

    async def _read_progress(self, stderr: asyncio.StreamReader) -> None:
        while line := await stderr.readline():
            text = line.decode(errors="replace").strip()
            if text and not text.startswith(JVM_WARNING):
                self.last_line = one_line(text)


async def _end(process: asyncio.subprocess.Process) -> None:
    process.terminate()
    try:
        await asyncio.wait_for(process.wait(), STOP_SECONDS)
    except TimeoutError:
        process.kill()
        await process.wait()
