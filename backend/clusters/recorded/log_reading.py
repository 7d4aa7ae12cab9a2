"""Reads members' logs in the background, for a cluster that is known from nothing else.

A few megabytes are read in a thread; more in a process of its own, so that the reader is never kept waiting.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue

import msgspec

from quarterdeck.backend.hazelcast.logs.log_files import NoLogs, log_files
from quarterdeck.backend.hazelcast.logs.parallel_skimming import received, send
from quarterdeck.backend.hazelcast.logs.split_parser import LogOptions
from quarterdeck.backend.judgement.observations.run_reader import News, follow_run, read_run

IN_THREAD_BYTES = 16 << 20
READER = (sys.executable, "-P", "-c", f"from {__name__} import run_reader; run_reader()")
"""A process that reads the logs that stdin names, and writes the records to stdout."""
LOOK_SECONDS = 0.5
"""How often logs that are followed are looked at."""


class ReadingFailed(msgspec.Struct, frozen=True, tag=True):
    """The reading ended before its end."""

    why: str


ReadPiece = News | ReadingFailed


class LogReading:
    """The records of logs, as they come. Call `close` when no more is wanted."""

    def __init__(self, path: Path, options: LogOptions, *, follow: bool = False) -> None:
        """Begin to read. Raises `NoLogs` when no file exists."""
        self._path, self._options, self._follow = path, options, follow
        self._pieces: SimpleQueue[ReadPiece] = SimpleQueue()
        self._closed = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        size = sum(file.stat().st_size for file in log_files([path]))
        is_much = size > IN_THREAD_BYTES and not follow
        target = self._read_elsewhere if is_much else self._read
        self._thread = threading.Thread(target=target, name="logs", daemon=True)
        self._thread.start()

    def news(self) -> Iterator[ReadPiece]:
        """Yield the new records. It never waits."""
        with suppress(Empty):
            while True:
                yield self._pieces.get_nowait()

    def join(self) -> None:
        self._thread.join()

    def close(self) -> None:
        self._closed.set()
        if self._process is not None:
            self._process.terminate()

    def _read(self) -> None:
        for piece in _all(self._path, self._options, self._closed if self._follow else None):
            self._pieces.put(piece)
            if self._closed.is_set():
                break

    def _read_elsewhere(self) -> None:
        with subprocess.Popen(READER, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            self._process = process
            assert process.stdin is not None and process.stdout is not None
            with suppress(BrokenPipeError):
                process.stdin.write(msgspec.json.encode(Assignment(str(self._path.resolve()), self._options)))
                process.stdin.close()
            decoder = msgspec.msgpack.Decoder(ReadPiece)
            while message := received(process.stdout):
                self._pieces.put(decoder.decode(message))
                if self._closed.is_set():
                    process.terminate()
        if process.returncode and not self._closed.is_set():
            self._pieces.put(ReadingFailed(f"the process that reads the logs ended with {process.returncode}"))


class Assignment(msgspec.Struct, frozen=True):
    """The request to a reading process."""

    path: str
    options: LogOptions


def run_reader() -> None:
    """Read the logs that stdin names, and write them to stdout, each message after its length."""
    asked = msgspec.json.decode(sys.stdin.buffer.read(), type=Assignment)
    encoder = msgspec.msgpack.Encoder()
    with suppress(BrokenPipeError, KeyboardInterrupt):
        for piece in _all(Path(asked.path), asked.options, None):
            send(sys.stdout.buffer, encoder.encode(piece))


def _all(path: Path, options: LogOptions, closed: threading.Event | None) -> Iterator[ReadPiece]:
    try:
        if closed is None:
            yield from read_run(path, options)
        else:
            yield from follow_run(path, options, lambda: closed.wait(LOOK_SECONDS))
    except (NoLogs, OSError, ValueError) as problem:
        yield ReadingFailed(str(problem))
