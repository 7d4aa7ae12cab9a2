"""Logs that are still written, read as they grow: single files, all files of a directory, or standard input."""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

from quarterdeck.backend.core.address import DEFAULT_PORT, Address, BadAddress, parse_address
from quarterdeck.backend.hazelcast.logs.reader import may_be_log

MOST_HISTORY_BYTES = 8 << 20
"""So much of what a file held before is read, to learn who speaks there."""

MOST_AT_ONCE_BYTES = 1 << 20
MOST_FILES = 200


class LogSource(NamedTuple):
    """Where a member logs, or several do; no member is named where the lines say who speaks. No path: standard input."""

    path: Path | None
    member: Address | None = None


def log_sources(texts: Sequence[str]) -> tuple[LogSource, ...]:
    """Read ADDRESS=PATH, a file, a directory, or - for standard input. Raises `ValueError`, `BadAddress` among them."""
    return tuple(map(_source, texts))


def _source(text: str) -> LogSource:
    named, equals, path = text.rpartition("=")
    try:
        member = parse_address(named, DEFAULT_PORT) if equals else None
    except BadAddress as problem:
        raise ValueError(f"--logs {text}: {problem}; write ADDRESS=PATH, PATH, or -") from problem
    if path == "-":
        return LogSource(None, member)
    if not Path(path).exists():
        raise ValueError(f"--logs {text}: there is no file or directory {path}")
    return LogSource(Path(path), member)


class GrowingFile:
    """One file. It is read on from where it was; one that was made anew or cut off is read from its beginning."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._source: BinaryIO | None = None
        self._rest = b""
        self._identity = (0, 0)

    def lines(self) -> list[str]:
        """Return the whole lines that came since the last call. A file that is not there has none."""
        try:
            told = self._path.stat()
            if (
                self._source is None
                or (told.st_dev, told.st_ino) != self._identity
                or told.st_size < self._source.tell()
            ):
                self._open((told.st_dev, told.st_ino), told.st_size)
            assert self._source is not None
            *whole, self._rest = (self._rest + self._source.read(MOST_AT_ONCE_BYTES)).split(b"\n")
        except OSError:
            return []
        return [line.decode(errors="replace").rstrip("\r") for line in whole]

    def close(self) -> None:
        """Read no more."""
        if self._source is not None:
            self._source.close()

    def _open(self, identity: tuple[int, int], size: int) -> None:
        self.close()
        self._source, self._identity, self._rest = self._path.open("rb"), identity, b""
        if size > MOST_HISTORY_BYTES:
            self._source.seek(size - MOST_HISTORY_BYTES)
            self._source.readline()


def files_of(source: LogSource) -> list[Path]:
    """Return the files of a source, now; nothing for standard input."""
    if source.path is None:
        return []
    if not source.path.is_dir():
        return [source.path]
    found = (one for one in sorted(source.path.rglob("*")) if one.is_file() and may_be_log(one) and one.suffix != ".gz")
    return list(found)[:MOST_FILES]


class StandardInput:
    """What is piped into this program, read by a thread of its own."""

    def __init__(self) -> None:
        self._lines: deque[str] = deque()
        threading.Thread(target=self._read, name="standard input", daemon=True).start()

    def lines(self) -> list[str]:
        """Return the lines that came since the last call."""
        return [self._lines.popleft() for _ in range(len(self._lines))]

    def close(self) -> None:
        """Nothing is to be done: the thread ends with the program."""

    def _read(self) -> None:
        for line in sys.stdin.buffer:
            self._lines.append(line.decode(errors="replace").rstrip("\r\n"))
