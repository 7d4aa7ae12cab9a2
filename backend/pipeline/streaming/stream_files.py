"""The files of a stream: the findings beside a journal, and the checkpoint, which says how far the stream has come.

A run that grows is read again after a restart, which takes a second for 25 MB of it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import Struct

from quarterdeck.backend.pipeline.growth import RunOffset
from quarterdeck.backend.pipeline.rules import Finding

CHECKPOINT = "read.jsonl"


class FindingsChange(NamedTuple):
    """What was added to the findings of a run, and what no longer holds."""

    added: tuple[Finding, ...]
    withdrawn: tuple[Finding, ...]


class FindingsFile:
    """The present findings of each run, one JSON object a line, each once, which others read while the file grows.

    Lines are appended. Only when a finding no longer holds, because a record came late, is the file replaced as a whole, so
    that a reader sees either the old one or the new one. Raises OSError when the disk refuses.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lines: dict[str, dict[bytes, Finding]] = {}
        """By run, in the order of the file."""
        for line in _whole_lines(path):
            try:
                finding = msgspec.json.decode(line, type=Finding)
            except (msgspec.MsgspecError, UnicodeDecodeError):
                continue  # written by another program; it stays until the file is replaced
            self._lines.setdefault(finding.run, {})[msgspec.json.encode(finding)] = finding

    def of_run(self, run: str) -> tuple[Finding, ...]:
        """Return the findings of `run`."""
        return tuple(self._lines.get(run, {}).values())

    def violations(self) -> int:
        """Return how many violations the file contains."""
        return sum(found.severity == "violation" for lines in self._lines.values() for found in lines.values())

    def state(self, run: str, findings: Sequence[Finding]) -> FindingsChange:
        """Make these the findings of `run`."""
        known = self._lines.get(run, {})
        wanted = {msgspec.json.encode(finding): finding for finding in findings}
        added = {line: finding for line, finding in wanted.items() if line not in known}
        withdrawn = tuple(finding for line, finding in known.items() if line not in wanted)
        if withdrawn:
            self._lines[run] = wanted
            beside = self.path.with_name(f".{self.path.name}.new")
            _write(beside, os.O_TRUNC, (line for lines in self._lines.values() for line in lines))
            beside.rename(self.path)
        elif added:
            _write(self.path, os.O_APPEND, added)
            self._lines[run] = known | added
        return FindingsChange(tuple(added.values()), withdrawn)


class CheckpointGarbled(ValueError):
    """The checkpoint of a stream cannot be read. The message says what helps."""


class _Entry(Struct):
    """A line of the checkpoint: up to where a run was read and judged. The last line of a run counts."""

    run: str
    read: RunOffset


class StreamCheckpoint:
    """How far a stream has come, in `directory`. Raises OSError when the disk refuses, and `CheckpointGarbled`."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._path = directory / CHECKPOINT
        self._runs: dict[str, RunOffset] = {}
        for number, line in enumerate(_whole_lines(self._path), start=1):
            try:
                entry = msgspec.json.decode(line, type=_Entry)
            except (msgspec.MsgspecError, UnicodeDecodeError) as problem:
                raise CheckpointGarbled(
                    f"{self._path}: line {number} was not written by a stream; remove {directory} to read everything again"
                ) from problem
            self._runs[entry.run] = entry.read

    def runs(self) -> dict[str, RunOffset]:
        """Return by run up to where it was read when everything until there was judged."""
        return dict(self._runs)

    def add(self, run: str, read: RunOffset) -> None:
        """Record durably that everything up to there was judged, and its findings are written."""
        if self._runs.get(run) != read:
            self._runs[run] = read
            _write(self._path, os.O_APPEND, [msgspec.json.encode(_Entry(run, read))])


def _whole_lines(path: Path) -> list[bytes]:
    """Return the whole lines of a file, if it exists; cut off one that a killed process left unfinished."""
    if not path.exists():
        return []
    content = path.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    if len(whole) < len(content):
        os.truncate(path, len(whole))
    return whole.splitlines()


def _write(path: Path, mode: int, lines: Iterable[bytes]) -> None:
    """Write all the lines durably. Raises OSError."""
    descriptor = os.open(path, os.O_CREAT | os.O_WRONLY | mode, 0o644)
    try:
        rest = memoryview(b"".join(line + b"\n" for line in lines))
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
