"""Logs that are still written: read once, and then on as they grow. Files may be rotated, cut off, or come to be later.

What is new of all files at one look is told in the order of time. A message is told when the next one begins, or when its
file has not grown from one look to the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from io import SEEK_END
from pathlib import Path
from typing import BinaryIO

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.hazelcast.logs.lines.line_ends import end_of_last_line
from quarterdeck.backend.hazelcast.logs.lines.message_assembly import ClockContext, Message, MessageAssembler
from quarterdeck.backend.hazelcast.logs.lines.timestamps import DAY_US
from quarterdeck.backend.hazelcast.logs.log_set import LogSet, MemberMessage
from quarterdeck.backend.hazelcast.logs.observations.story import LogStory, stories_of
from quarterdeck.backend.hazelcast.logs.reader import NoLogs, log_files
from quarterdeck.backend.hazelcast.logs.run_reader import (
    LineNotes,
    LogLine,
    News,
    ReadProgress,
    RecordsRead,
    RunRead,
    named,
    placed_messages,
)
from quarterdeck.backend.hazelcast.logs.skimming import skim
from quarterdeck.backend.hazelcast.logs.split_parser import (
    EventMessage,
    LogOptions,
    SplitSummary,
    take_message,
    zone_of,
)
from quarterdeck.backend.hazelcast.logs.told_messages import MessageTeller, ToldMessage, in_order

READ_AT_ONCE = 8 << 20
MOST_RETOLD = 20_000
"""As long as there are so few messages, what is observed in them is looked for anew after each look."""


def follow_run(path: Path, options: LogOptions | None, wait: Callable[[], bool]) -> Iterator[News]:
    """As `read_run`, and then on. `wait` lets time pass between two looks, and says when to stop.

    Raises `NoLogs` when there is no file, `OSError` for what cannot be read, `ValueError` for an option that is wrong.
    """
    yield from _Following(path, named(path, options or LogOptions())).news(wait)


class _GrowingFile:
    """A file, or what stands in its place since it was rotated; what it says is taken up to its last whole line."""

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

    def skim(self, options: LogOptions, told: Callable[[int], None]) -> Iterator[EventMessage]:
        """What it says so far."""
        self.offset = end_of_last_line(self.source)
        for found in skim(self.file, self.modified_us, options, told, self.offset):
            if isinstance(found, EventMessage):
                yield found
            else:
                self.summary = found
        self.lines = self.summary.lines
        last = self.summary.last_dateless
        self._assembler = MessageAssembler(self._clock, midnights=last // DAY_US if last is not None else 0)

    @property
    def size(self) -> int:
        return self.source.seek(0, SEEK_END)

    def grown(self) -> Iterator[EventMessage]:
        """What it says since; a message is complete when the file has not grown since the last look."""
        self.source.seek(self.offset)
        text = self.source.read(READ_AT_ONCE)
        text = text[: text.rfind(b"\n") + 1]
        if not text:
            yield from self._taken(self._assembler.end())
        for line in text.splitlines(keepends=True):
            yield from self._taken(self._assembler.take(self.offset, self.lines, line.decode("utf-8", "replace")))
            self.offset += len(line)
            self.lines += 1
        self.summary.lines = self.lines

    def _taken(self, found: Iterator[object]) -> Iterator[EventMessage]:
        for message in found:
            if isinstance(message, Message):
                message.number -= self.lines_before
                made = take_message(message, self.summary)
                yield from (one for one in made if isinstance(one, EventMessage))


class _Following:
    def __init__(self, path: Path, options: LogOptions) -> None:
        self._path, self._options = path, options
        self._files: dict[tuple[int, int], _GrowingFile] = {}
        self._packed: list[SplitSummary] = []
        self._told: list[ToldMessage] = []
        self._notes = LineNotes()
        self._story = LogStory(options.run)
        self._whole = LogSet([], options)
        self._teller: MessageTeller | None = None

    def news(self, wait: Callable[[], bool]) -> Iterator[News]:
        heard: list[tuple[str, int, EventMessage]] = []
        read: list[int] = []
        files = log_files([self._path])
        total = sum(file.stat().st_size for file in files)
        for file in files:
            if file.suffix == ".gz":
                for found in skim(str(file), file.stat().st_mtime_ns // 1000, self._options, read.append):
                    if isinstance(found, EventMessage):
                        heard.append((str(file), 0, found))
                    else:
                        self._packed.append(found)
            else:
                growing = _GrowingFile(file, self._options)
                self._files[growing.identity] = growing
                heard += [(str(file), 0, one) for one in growing.skim(self._options, read.append)]
            yield ReadProgress(sum(read), total)
        self._renew()
        yield from self._tell(placed_messages(heard, self._whole))
        while not wait():
            heard = [*self._look()]
            if heard:
                yield from self._tell(placed_messages(heard, self._whole))

    def _look(self) -> Iterator[tuple[str, int, EventMessage]]:
        """What all files say since the last look."""
        self._find_new()
        for growing in list(self._files.values()):
            heard = [(growing.file, growing.index, one) for one in growing.grown()]
            if heard and not self._whole.knows(growing.file, growing.index):
                self._renew()
            yield from heard

    def _find_new(self) -> None:
        """Files that were cut off, that stand in the place of others, or that are new."""
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

    def _tell(self, placed: list[MemberMessage]) -> Iterator[News]:
        placed.sort(key=in_order)
        found: list[tuple[Record, LogLine]] = []
        if self._teller is None:
            self._teller = MessageTeller(self._options.run, self._whole.run_began_us(self._options.run))
        for message in placed:
            for told in self._teller.take(message):
                self._told.append(told)
                found += self._notes.lines_of(told)
        found.sort(key=lambda one: one[0].at)
        if found:
            yield RecordsRead([record for record, _ in found], [line for _, line in found])
        if len(self._told) <= MOST_RETOLD:
            stories = list(stories_of(self._told, self._whole))
            self._story = stories[0] if stories else self._story
        yield RunRead(self._story, self._told[-1].at if self._told else 0)
