"""The file of findings beside a journal: one JSON object a line, which others read while it grows."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from quarterdeck.backend.journal.files import FINDINGS_FILE
from quarterdeck.backend.pipeline.rules.finding import Finding

__all__ = ["FINDINGS_FILE", "FindingsChange", "FindingsFile"]

_FINDING = msgspec.json.Decoder(Finding)


class FindingsChange(NamedTuple):
    """What a new statement about a run changed: what was added, and what no longer holds."""

    added: tuple[Finding, ...]
    withdrawn: tuple[Finding, ...]


class FindingsFile:
    """Holds what is found now of each run. What is stated twice stands there once, whoever stated it first.

    Lines are appended. Only when something no longer holds, because a record came late, is the file replaced as a whole, so
    that a reader sees either the old one or the new one. Raises OSError when the disk refuses.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lines: dict[str, dict[bytes, Finding]] = {}
        """By run, in the order of the file."""
        self._read()

    def of_run(self, run: str) -> tuple[Finding, ...]:
        """What the file says about `run`."""
        return tuple(self._lines.get(run, {}).values())

    def violations(self) -> int:
        """How many violations the file holds."""
        return sum(one.severity == "violation" for lines in self._lines.values() for one in lines.values())

    def state(self, run: str, findings: Sequence[Finding]) -> FindingsChange:
        """Make the file say just this about `run`."""
        stood = self._lines.get(run, {})
        wanted = {msgspec.json.encode(one): one for one in findings}
        added = {line: one for line, one in wanted.items() if line not in stood}
        withdrawn = tuple(one for line, one in stood.items() if line not in wanted)
        if withdrawn:
            self._lines[run] = wanted
            self._replace()
        elif added:
            self._append(added)
            self._lines[run] = stood | added
        return FindingsChange(tuple(added.values()), withdrawn)

    def _read(self) -> None:
        """Take in what is there; a line that a killed process left unfinished is cut off."""
        if not self.path.exists():
            return
        content = self.path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        if len(whole) < len(content):
            os.truncate(self.path, len(whole))
        for line in whole.splitlines():
            try:
                finding = _FINDING.decode(line)
            except (msgspec.MsgspecError, UnicodeDecodeError):
                continue  # left by somebody else; it stays until the file is replaced
            self._lines.setdefault(finding.run, {})[msgspec.json.encode(finding)] = finding

    def _append(self, lines: Collection[bytes]) -> None:
        descriptor = os.open(self.path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o644)
        try:
            write_out(descriptor, b"".join(line + b"\n" for line in lines))
        finally:
            os.close(descriptor)

    def _replace(self) -> None:
        beside = self.path.with_name(f".{self.path.name}.new")
        descriptor = os.open(beside, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o644)
        try:
            write_out(descriptor, b"".join(line + b"\n" for lines in self._lines.values() for line in lines))
        finally:
            os.close(descriptor)
        beside.rename(self.path)


def write_out(descriptor: int, content: bytes) -> None:
    """Write all of it, durably. Raises OSError."""
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
    os.fsync(descriptor)
