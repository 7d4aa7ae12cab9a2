"""What checks of a run have found: the invariants watched live, the audit on Spark, and the audit of the stream."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from quarterdeck.backend.clusters.invariant_monitor import Violation

Origin = Literal["online", "stream", "audit"]

MOST_READ_AT_ONCE = 1_000_000
"""Bytes of a file of findings that are read in one go; the rest is read at the next look."""

FINDINGS_FILE = "findings.jsonl"
"""Beside the files of a journal: findings of the stream, one JSON object a line, written as they are found."""


class ShownWitness(Struct, frozen=True):
    """One event, by its identity within the run."""

    uuid: str
    seq: int


class ShownFinding(Struct, frozen=True):
    """One place where a rule is broken, in the shape that the audit prints. `severity`: violation, or warning."""

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
    """A broken invariant as a finding, at the last of the records that show it."""
    witnesses = tuple(ShownWitness(record.uuid, record.seq) for record in violation.witnesses)
    if not violation.witnesses:
        return ShownFinding(violation.invariant, "violation", "", "", "", 0, 0, violation.text)
    last = max(violation.witnesses, key=lambda record: record.at)
    return ShownFinding(
        violation.invariant, "violation", last.run, last.member, last.uuid, last.seq, last.at, violation.text, witnesses
    )


class FollowedFindings:
    """Follows a file of findings that somebody else appends to. A line that is not finished yet waits for the next look."""

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
        """Read what came since the last look; whether anything changed. A file that was cut or replaced is read anew."""
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
            self._take(line)
        return bool(lines) or forgotten

    def _take(self, line: bytes) -> None:
        if not line.strip():
            return
        try:
            self.findings.append(_FINDING.decode(line))
        except (msgspec.MsgspecError, UnicodeDecodeError):
            self.bad_lines += 1


def of_run(findings: Sequence[ShownFinding], run: str) -> tuple[ShownFinding, ...]:
    """Those of one run; all of them while it is not known which."""
    return tuple(one for one in findings if not run or one.run == run)
