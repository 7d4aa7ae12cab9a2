"""Great log files skimmed at once by a few processes, each some parts of them. What they find is what one process finds."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import IO

import msgspec

from quarterdeck.backend.hazelcast.logs.lines.file_splits import ENDLESS, FileSplit, plan_splits, whole_file
from quarterdeck.backend.hazelcast.logs.skimming import is_read_whole, skim
from quarterdeck.backend.hazelcast.logs.split_parser import EventMessage, LogOptions, SplitSummary

SHARED_BYTES = 32 << 20
"""Less is read sooner by one process than another one begins."""
SPLIT_BYTES = 16 << 20

LENGTH = struct.Struct("<I")
"""Goes before each message that a process writes."""
SKIMMER = (sys.executable, "-P", "-c", f"from {__name__} import run_skimmer; run_skimmer()")
"""A process of its own, which no `__main__` has to expect; it ends when the one that reads from it does."""


class Share(msgspec.Struct, frozen=True):
    """What a process is to skim."""

    splits: list[FileSplit]
    options: LogOptions


class SkimmedSplit(msgspec.Struct, frozen=True, tag=True):
    """All that matters of a split."""

    messages: list[EventMessage]
    summary: SplitSummary


class _Failure(msgspec.Struct, frozen=True, tag=True):
    """What could not be read."""

    number: int
    why: str
    file: str


def skim_files(files: Sequence[Path], options: LogOptions) -> Iterator[int | SkimmedSplit]:
    """Yield how many more bytes were read, and each split of a file when it is done. Raises `OSError`."""
    sizes = {str(file): file.stat().st_size for file in files}
    processes = os.cpu_count() or 1
    if processes < 2 or sum(sizes.values()) < SHARED_BYTES:
        for split in plan_splits(files, ENDLESS):
            yield from _skimmed(split, options)
        return
    shares: list[list[FileSplit]] = [[] for _ in range(processes)]
    shared = [0] * processes
    for file in files:
        for split in plan_splits([file], ENDLESS if is_read_whole(whole_file(file)) else SPLIT_BYTES):
            least = shared.index(min(shared))
            shares[least].append(split)
            shared[least] += min(split.end, sizes[split.file]) - split.start
    yield from _apart([share for share in shares if share], options)


def _skimmed(split: FileSplit, options: LogOptions) -> Iterator[int | SkimmedSplit]:
    read: list[int] = []
    messages: list[EventMessage] = []
    for found in skim(split, options, read.append):
        if isinstance(found, EventMessage):
            messages.append(found)
        else:
            yield SkimmedSplit(messages, found)
        yield from read
        read.clear()


def _apart(shares: Sequence[list[FileSplit]], options: LogOptions) -> Iterator[int | SkimmedSplit]:
    pieces: SimpleQueue[bytes] = SimpleQueue()
    decoder = msgspec.msgpack.Decoder(SkimmedSplit | _Failure | int)
    children = [subprocess.Popen(SKIMMER, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in shares]
    try:
        for child, share in zip(children, shares, strict=True):
            assert child.stdin is not None and child.stdout is not None
            with child.stdin:
                child.stdin.write(msgspec.json.encode(Share(share, options)))
            threading.Thread(target=_receive, args=(child.stdout, pieces), name="skimmed logs", daemon=True).start()
        running = len(children)
        while running:
            message = pieces.get()
            found = decoder.decode(message) if message else None
            if isinstance(found, _Failure):
                raise OSError(found.number, found.why, found.file)
            if found is None:
                running -= 1
            else:
                yield found
        for child in children:
            if child.wait():
                raise OSError(f"a process that reads the logs ended with {child.returncode}")
    finally:
        for child in children:
            child.kill()
            child.wait()


def _receive(source: IO[bytes], pieces: SimpleQueue[bytes]) -> None:
    with source:
        while message := received(source):
            pieces.put(message)
    pieces.put(b"")


def run_skimmer() -> None:
    """Skim the splits that stdin names, and write what is found to stdout, each message after its length."""
    asked = msgspec.json.decode(sys.stdin.buffer.read(), type=Share)
    encoder = msgspec.msgpack.Encoder()
    with suppress(BrokenPipeError, KeyboardInterrupt):
        try:
            for split in asked.splits:
                for found in _skimmed(split, asked.options):
                    send(sys.stdout.buffer, encoder.encode(found))
        except BrokenPipeError:
            raise
        except OSError as error:
            failure = _Failure(error.errno or 0, error.strerror or str(error), str(error.filename or ""))
            send(sys.stdout.buffer, encoder.encode(failure))


def send(out: IO[bytes], message: bytes) -> None:
    """Write a message after its length."""
    out.write(LENGTH.pack(len(message)) + message)
    out.flush()


def received(source: IO[bytes]) -> bytes:
    """Return the next message; empty when none comes any more."""
    length = source.read(LENGTH.size)
    if len(length) < LENGTH.size:
        return b""
    size = LENGTH.unpack(length)[0]
    message = source.read(size)
    return message if len(message) == size else b""
