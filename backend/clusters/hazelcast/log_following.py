"""Follows the logs of real members beside the connections to them: facts that only logs show, at our own time."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

from quarterdeck.backend.core.address import DEFAULT_PORT, Address, BadAddress, parse_address
from quarterdeck.backend.core.membership.events import ListInstalled
from quarterdeck.backend.hazelcast.logs.log_files import may_be_log
from quarterdeck.backend.hazelcast.wire.route import GrowingLog, Route
from quarterdeck.backend.hazelcast.witness.log_witness import LogClocks, Logged, LogWitness

MOST_HISTORY_BYTES = 8 << 20
"""The number of bytes that are read of a file's earlier content, to learn its member."""

MOST_AT_ONCE_BYTES = 1 << 20
MOST_FILES = 200


class LogSource(NamedTuple):
    """Where a member logs, or several do; no member is named where the lines say who speaks. No path: standard input."""

    path: Path | None
    member: Address | None = None


def log_sources(texts: Sequence[str]) -> tuple[LogSource, ...]:
    """Read ADDRESS=PATH, a file, a directory, or - for standard input. A member that has not started has no file yet.

    Raises `ValueError`, `BadAddress` among them.
    """
    return tuple(map(_source, texts))


def _source(text: str) -> LogSource:
    named, equals, path = text.rpartition("=")
    try:
        member = parse_address(named, DEFAULT_PORT) if equals else None
    except BadAddress as problem:
        raise ValueError(f"--logs {text}: {problem}; write ADDRESS=PATH, PATH, or -") from problem
    if path == "-":
        return LogSource(None, member)
    if not Path(path).exists() and not Path(path).parent.is_dir():
        raise ValueError(f"--logs {text}: there is no folder {Path(path).parent}")
    return LogSource(Path(path), member)


class GrowingFile:
    """One file. It is read on from where it was; one that was made anew or cut off is read from its beginning."""

    has_begun = True

    def __init__(self, path: Path) -> None:
        self._path = path
        self._source: BinaryIO | None = None
        self._rest = b""
        self._identity = (0, 0)

    def lines(self) -> list[str]:
        """Return the whole new lines; a missing file has none."""
        try:
            file_status, before = self._path.stat(), b""
            identity = (file_status.st_dev, file_status.st_ino)
            if self._source is None or identity != self._identity or file_status.st_size < self._source.tell():
                if self._source is not None and identity != self._identity:  # what was written before it was put away
                    before = self._rest + self._source.read(MOST_HISTORY_BYTES)
                    before += b"\n" if before and not before.endswith(b"\n") else b""
                self._open(identity, file_status.st_size)
            assert self._source is not None
            *whole, self._rest = (before + self._rest + self._source.read(MOST_AT_ONCE_BYTES)).split(b"\n")
        except OSError:
            return []
        return [line.decode(errors="replace").rstrip("\r") for line in whole]

    def close(self) -> None:
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
    found = [file for file in sorted(source.path.rglob("*")) if file.is_file() and may_be_log(file)]
    return [file for file in found if file.suffix != ".gz"][:MOST_FILES]


class StandardInput:
    """The lines piped into this program, read by a thread of its own, which ends with the program."""

    has_begun = True

    def __init__(self) -> None:
        self._lines: deque[str] = deque()
        threading.Thread(target=self._read, name="standard input", daemon=True).start()

    def lines(self) -> list[str]:
        return [self._lines.popleft() for _ in range(len(self._lines))]

    def _read(self) -> None:
        for line in sys.stdin.buffer:
            self._lines.append(line.decode(errors="replace").rstrip("\r\n"))


POLL_SECONDS = 0.1
QUIET_POLLS = 2
"""The number of looks without a new line after which the last record counts as whole."""
LOOK_FOR_FILES_POLLS = 50
HOLD_US = 600_000
"""How long a heard event waits for the logs of the same moment."""


class _Stream:
    """One file, or standard input, and the meaning of its lines."""

    def __init__(self, reader: GrowingLog, source: LogSource) -> None:
        self.reader = reader
        self.witness = LogWitness(source.member)
        self.quiet = 0
        self.is_live = False
        """Whether all earlier lines are read: new ones have just been written."""


class LogFollowing:
    """Calls `report` for each event that logs show, with its time by our clock in microseconds of UTC. Run it in a loop."""

    def __init__(
        self,
        sources: Sequence[LogSource],
        clocks: LogClocks,
        utc_us: Callable[[], int],
        report: Callable[[Logged], None],
        route: Route,
    ) -> None:
        """`route` knows the names of hosts, and may follow logs of its own."""
        self._sources, self._clocks, self._utc_us, self._report = sources, clocks, utc_us, report
        self._route = route
        self._files: dict[Path, tuple[GrowingFile, _Stream]] = {}
        self._on_the_way: dict[GrowingLog, _Stream] = {}

    async def run(self) -> None:
        piped = [_Stream(StandardInput(), source) for source in self._sources if source.path is None]
        try:
            polls = 0
            while True:
                if polls % LOOK_FOR_FILES_POLLS == 0:
                    for source in self._sources:
                        for path in files_of(source):
                            if path not in self._files:
                                file = GrowingFile(path)
                                self._files[path] = file, _Stream(file, source)
                polls += 1
                logs = self._route.logs.values()
                self._on_the_way = {log: self._on_the_way.get(log) or _Stream(log, LogSource(None)) for log in logs}
                for stream in (*piped, *(stream for _, stream in self._files.values()), *self._on_the_way.values()):
                    self._take(stream, stream.reader.lines())
                await asyncio.sleep(POLL_SECONDS)
        finally:
            for file, _ in self._files.values():
                file.close()

    def _take(self, stream: _Stream, lines: Sequence[str]) -> None:
        found = [logged for line in lines for logged in stream.witness.add_line(self._route.named_in_line(line))]
        stream.quiet = 0 if lines else stream.quiet + 1
        if stream.quiet == QUIET_POLLS:
            found += stream.witness.flush()
        now_us = self._utc_us()
        for logged in found:
            if stream.is_live:
                self._clocks.read(logged.member, logged.utc_us, now_us)
            if stream.is_live and isinstance(logged.event, ListInstalled):
                self._clocks.logged(logged.member, logged.event, logged.utc_us)
        stream.is_live |= stream.quiet >= QUIET_POLLS and stream.reader.has_begun
        for logged in found:
            at_us = logged.utc_us + self._clocks.ahead_us(logged.member)
            self._report(logged._replace(utc_us=min(at_us, now_us)))
