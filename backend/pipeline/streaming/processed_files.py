"""What a stream has read, on disk: the names of the files of each run, and which runs are judged to their end.

A finished file never changes, so the names are all that is needed to go on: a run of which more comes is read again, which takes
a second for 25 MB of it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from quarterdeck.backend.pipeline.streaming.findings_file import write_out

ACCOUNT = "consumed.jsonl"


class CheckpointGarbled(ValueError):
    """The account of a stream cannot be read. The message says what helps."""


class _Entry(Struct, omit_defaults=True):
    """One line: files that were read, or that all their records are judged."""

    run: str
    files: tuple[str, ...] = ()
    is_settled: bool = False


_ENTRY = msgspec.json.Decoder(_Entry)


class ProcessedFiles:
    """The account of a stream in `directory`. Raises OSError when the disk refuses, and `CheckpointGarbled`."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._files: dict[str, dict[str, None]] = {}
        self._unsettled: dict[str, None] = {}
        path = directory / ACCOUNT
        self._read(path)
        self._descriptor = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o644)

    def close(self) -> None:
        """Nothing more is noted."""
        os.close(self._descriptor)

    def files(self, run: str) -> Mapping[str, None]:
        """The names of the run's files that were read, in the order of reading."""
        return self._files.get(run, {})

    def unsettled(self) -> Sequence[str]:
        """The runs of which records may have waited to be judged when the stream ended."""
        return tuple(self._unsettled)

    def add(self, files: Mapping[str, Sequence[str]]) -> None:
        """Note, durably, that these files of each run were read."""
        entries = []
        for run, names in files.items():
            known = self._files.setdefault(run, {})
            if fresh := tuple(name for name in names if name not in known):
                known.update(dict.fromkeys(fresh))
                entries.append(_Entry(run, fresh))
                self._unsettled[run] = None
        self._append(entries)

    def settle(self, run: str) -> None:
        """Note that every record of the run was judged, and what was found is written down."""
        if run in self._unsettled:
            del self._unsettled[run]
            self._append([_Entry(run, is_settled=True)])

    def _read(self, path: Path) -> None:
        if not path.exists():
            return
        content = path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        if len(whole) < len(content):  # the process ended while it wrote; these files are read again
            os.truncate(path, len(whole))
        for number, line in enumerate(whole.splitlines(), start=1):
            try:
                entry = _ENTRY.decode(line)
            except (msgspec.MsgspecError, UnicodeDecodeError) as problem:
                raise CheckpointGarbled(
                    f"{path}: line {number} is not what a stream has written; remove {path.parent}, and everything is read anew"
                ) from problem
            if entry.is_settled:
                self._unsettled.pop(entry.run, None)
            else:
                self._files.setdefault(entry.run, {}).update(dict.fromkeys(entry.files))
                self._unsettled[entry.run] = None

    def _append(self, entries: Sequence[_Entry]) -> None:
        if entries:
            write_out(self._descriptor, b"".join(msgspec.json.encode(one) + b"\n" for one in entries))
