"""Logs that are still written: read once, and then on as they grow. Files may be rotated, cut off, or appear later.

What is new in all files at one look comes in the order of time. A message is complete when the next one begins, or when its file
has not grown from one look to the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.hazelcast.logs import run_reader
from quarterdeck.backend.hazelcast.logs.interpretation import MessageInterpreter
from quarterdeck.backend.hazelcast.logs.lines.file_splits import end_of_last_line, whole_file
from quarterdeck.backend.hazelcast.logs.lines.message_assembly import ClockContext, Message, MessageAssembler
from quarterdeck.backend.hazelcast.logs.lines.timestamps import DAY_US
from quarterdeck.backend.hazelcast.logs.log_set import LogSet
from quarterdeck.backend.hazelcast.logs.observations.story import RunObservers, story_of
from quarterdeck.backend.hazelcast.logs.reader import NoLogs, log_files
from quarterdeck.backend.hazelcast.logs.skimming import skim
from quarterdeck.backend.hazelcast.logs.split_parser import (
    EventMessage,
    LogOptions,
    SplitSummary,
    classify_message,
    zone_of,
)

READ_AT_ONCE = 8 << 20


def follow_run(path: Path, options: LogOptions | None, wait: Callable[[], bool]) -> Iterator[run_reader.News]:
    """Read the logs of a run as `read_run` does, and go on. `wait` waits between two looks, and returns whether to stop.

    Raises `NoLogs` when there is no file, `OSError` for what cannot be read, `ValueError` for an option that is wrong.
    """
    yield from _Following(path, run_reader.named(path, options or LogOptions())).news(wait)


class _GrowingFile:
    """A file, or what took its place since it was rotated, read up to its last whole line."""

    def __init__(self, file: Path, options: LogOptions, *, index: int = 0, lines_before: int = 0) -> None:
        self.file, self.index = str(file), index
        self.lines_before = lines_before
        """Lines of what stood in its place before. A `LogSet` counts them, and its own lines count from 1."""
        self.source: BinaryIO = file.open("rb")
        seen = file.stat()
        self.identity = (seen.st_dev, seen.st_ino)
        self.modified_us = seen.st_mtime_ns // 1000
        self.summary = SplitSummary(self.file, index, self.modified_us)
        self.offset = self.lines = 0
        self._clock = ClockContext(zone_of(options, self.file), self.modified_us)
        self._assembler = MessageAssembler(self._clock)

    def skim(self, options: LogOptions, on_read: Callable[[int], None]) -> Iterator[run_reader.HeardMessage]:
        """Yield the messages that it has so far."""
        self.offset = end_of_last_line(self.source)
        for found in skim(whole_file(Path(self.file)), options, on_read, self.offset):
            if isinstance(found, EventMessage):
                yield self.file, self.index, found
            else:
                self.summary = found
        self.lines = self.summary.lines
        last = self.summary.last_dateless
        self._assembler = MessageAssembler(self._clock, midnights=last // DAY_US if last is not None else 0)

    def grown(self) -> Iterator[run_reader.HeardMessage]:
        """Yield the messages added since; the last one is complete when the file has not grown since the last look."""
        self.source.seek(self.offset)
        text = self.source.read(READ_AT_ONCE)
        text = text[: text.rfind(b"\n") + 1]
        if not text:
            yield from self._classified(self._assembler.end())
        for line in text.splitlines(keepends=True):
            yield from self._classified(
                self._assembler.add_line(self.offset, self.lines, line.decode("utf-8", "replace"))
            )
            self.offset += len(line)
            self.lines += 1
        self.summary.lines = self.lines

    def _classified(self, found: Iterator[object]) -> Iterator[run_reader.HeardMessage]:
        for message in found:
            if isinstance(message, Message):
                message.number -= self.lines_before
                for made in classify_message(message, self.summary):
                    if isinstance(made, EventMessage):
                        yield self.file, self.index, made


class _Following:
    def __init__(self, path: Path, options: LogOptions) -> None:
        self._path, self._options = path, options
        self._files: dict[tuple[int, int], _GrowingFile] = {}
        self._packed: list[SplitSummary] = []
        self._observers = RunObservers(options.run)
        self._end_us = 0
        self._notes = run_reader.LineNotes()
        self._whole = LogSet([], options)
        self._interpreter: MessageInterpreter | None = None

    def news(self, wait: Callable[[], bool]) -> Iterator[run_reader.News]:
        heard: list[run_reader.HeardMessage] = []
        read: list[int] = []
        files = log_files([self._path])
        total = sum(file.stat().st_size for file in files)
        for file in files:
            if file.suffix == ".gz":
                for found in skim(whole_file(file), self._options, read.append):
                    if isinstance(found, EventMessage):
                        heard.append((str(file), 0, found))
                    else:
                        self._packed.append(found)
            else:
                growing = _GrowingFile(file, self._options)
                self._files[growing.identity] = growing
                heard += growing.skim(self._options, read.append)
            yield run_reader.ReadProgress(sum(read), total)
        self._renew()
        yield from self._interpret(heard)
        while not wait():
            if heard := [*self._look()]:
                yield from self._interpret(heard)

    def _look(self) -> Iterator[run_reader.HeardMessage]:
        """Yield what was added to all files since the last look."""
        self._find_new()
        for growing in list(self._files.values()):
            heard = list(growing.grown())
            if heard and not self._whole.knows(growing.file, growing.index):
                self._renew()
            yield from heard

    def _find_new(self) -> None:
        """Find files that were cut off, that took the place of others, or that are new."""
        try:
            files = log_files([self._path])
        except NoLogs:  # between two files
            return
        by_name = {growing.file: growing for growing in self._files.values()}
        for file in files:
            try:
                seen = file.stat()
                growing = self._files.get((seen.st_dev, seen.st_ino))
                if file.suffix == ".gz" or (growing is not None and seen.st_size >= growing.offset):
                    continue
                before = growing or by_name.get(str(file))
                index, lines = (before.index + 1, before.lines_before + before.lines) if before else (0, 0)
                fresh = _GrowingFile(file, self._options, index=index, lines_before=lines)
                self._files[fresh.identity] = fresh
            except FileNotFoundError:
                continue

    def _renew(self) -> None:
        self._whole = LogSet([*self._packed, *(growing.summary for growing in self._files.values())], self._options)

    def _interpret(self, heard: list[run_reader.HeardMessage]) -> Iterator[run_reader.News]:
        found: list[tuple[Record, run_reader.LogLine]] = []
        if self._interpreter is None:
            self._interpreter = MessageInterpreter(self._options.run, self._whole.run_began_us(self._options.run))
        for placed in run_reader.placed_messages(heard, self._whole):
            for message in self._interpreter.interpret(placed):
                self._observers.add(message)
                self._end_us = message.at
                found += self._notes.lines_of(message)
        found.sort(key=lambda noted: noted[0].at)
        if found:
            yield run_reader.RecordsRead([record for record, _ in found], [line for _, line in found])
        run = self._options.run
        end_us = max(self._end_us, self._whole.run_ended_us(run))
        yield run_reader.RunRead(story_of(self._observers, run, end_us, self._whole), self._end_us)
