"""Follows the logs of real members beside the connections to them: what only logs tell, at our own time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from quarterdeck.backend.clusters.hazelcast.log_tail import GrowingFile, LogSource, StandardInput, files_of
from quarterdeck.backend.core.events import ListInstalled
from quarterdeck.backend.hazelcast.witness.log_witness import ONLY_LOGGED, LogClocks, Logged, LogWitness

POLL_SECONDS = 0.1
QUIET_POLLS = 2
"""After so many looks at which nothing came, what was written last is whole."""
LOOK_FOR_FILES_POLLS = 50
HOLD_US = 600_000
"""How long what is heard waits for what the logs tell of the same moment."""


class _Stream:
    """One file, or standard input, and what its lines were understood as."""

    def __init__(self, reader: GrowingFile | StandardInput, source: LogSource) -> None:
        self.reader = reader
        self.witness = LogWitness(source.member)
        self.quiet = 0
        self.is_live = False
        """Whether all is read that was there before: what comes now has just been written."""


class LogFollowing:
    """Calls `tell` for each event that only logs tell, with its time by our clock in microseconds of UTC. Run it in a loop."""

    def __init__(
        self, sources: Sequence[LogSource], clocks: LogClocks, utc_us: Callable[[], int], tell: Callable[[Logged], None]
    ) -> None:
        self._sources, self._clocks, self._utc_us, self._tell = sources, clocks, utc_us, tell
        self._files: dict[Path, _Stream] = {}

    async def run(self) -> None:
        """Follow until cancelled."""
        piped = [_Stream(StandardInput(), source) for source in self._sources if source.path is None]
        try:
            polls = 0
            while True:
                if polls % LOOK_FOR_FILES_POLLS == 0:
                    self._look_for_files()
                polls += 1
                for stream in (*piped, *self._files.values()):
                    self._take(stream, stream.reader.lines())
                await asyncio.sleep(POLL_SECONDS)
        finally:
            for stream in self._files.values():
                stream.reader.close()

    def _look_for_files(self) -> None:
        for source in self._sources:
            for path in files_of(source):
                if path not in self._files:
                    self._files[path] = _Stream(GrowingFile(path), source)

    def _take(self, stream: _Stream, lines: Sequence[str]) -> None:
        found = [logged for line in lines for logged in stream.witness.add_line(line)]
        stream.quiet = 0 if lines else stream.quiet + 1
        if stream.quiet == QUIET_POLLS:
            found += stream.witness.flush()
        now_us = self._utc_us()
        for one in found:
            if stream.is_live:
                self._clocks.read(one.member, one.utc_us, now_us)
            if isinstance(one.event, ListInstalled):
                self._clocks.logged(one.member, one.event, one.utc_us)
        stream.is_live |= stream.quiet >= QUIET_POLLS
        for one in found:
            if isinstance(one.event, ONLY_LOGGED):
                self._tell(one._replace(utc_us=min(one.utc_us + self._clocks.ahead_us(one.member), now_us)))
