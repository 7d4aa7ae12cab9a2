"""The logs of one run, read for its events only: the records in the order of time, each with its line.

All that matters is held in memory, once: of a gigabyte of logs that is little. `read_run` yields its progress, then the
records, then the story. `follow_run` does the same and reads on as the logs grow. Files may be rotated, cut off, or appear later.
What is new in all files at one look comes in the order of time. A message is complete when the next one begins, or when its file
has not grown from one look to the next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct, structs

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.hazelcast.logs.interpretation import (
    InterpretedMessage,
    MessageInterpreter,
    interpret_messages,
    sort_messages,
)
from quarterdeck.backend.hazelcast.logs.lines.file_splits import context_of, end_of_last_line, whole_file
from quarterdeck.backend.hazelcast.logs.lines.message_assembly import Message, MessageAssembler
from quarterdeck.backend.hazelcast.logs.lines.timestamps import DAY_US
from quarterdeck.backend.hazelcast.logs.log_files import (
    ARCHIVE,
    NoLogs,
    archives_in,
    check_zones,
    is_understood,
    log_files,
    refusal,
)
from quarterdeck.backend.hazelcast.logs.log_set import LogSet, MemberMessage
from quarterdeck.backend.hazelcast.logs.parallel_skimming import SkimmedSplit, skim_files
from quarterdeck.backend.hazelcast.logs.skimming import skim
from quarterdeck.backend.hazelcast.logs.split_parser import (
    EventMessage,
    LogOptions,
    SplitSummary,
    classify_message,
    parse_split,
    zone_of,
)
from quarterdeck.backend.judgement.observations.story import LogStory, RunObservers, story_of

RECORDS_AT_ONCE = 4_000
_PENDING = 4_096
"""Messages of a member whose records may still come, as those do that wait for its uuid."""
RUNS_NAMED = 8
LOOKED_AT_BYTES = 8_192
"""Of every file, before all is read."""


class LogLine(Struct, frozen=True, gc=False, array_like=True):
    """Where a message begins: the line, from 1, and the byte of the file."""

    file: str
    line: int
    offset: int


class ReadProgress(Struct, frozen=True, tag=True):
    """How many of all bytes are read. Those of a packed file count as they are unpacked."""

    done: int
    total: int


class RecordsRead(Struct, frozen=True, tag=True):
    """Records in the order of time, and the line of each."""

    records: list[Record]
    lines: list[LogLine]


class RunRead(Struct, frozen=True, tag=True):
    """The end of a run: what its logs show beyond their records, and when they end."""

    story: LogStory
    end_us: int


News = ReadProgress | RecordsRead | RunRead
HeardMessage = tuple[str, int, EventMessage]
"""A message with its file and the index of its split."""


def read_run(path: Path, options: LogOptions | None = None) -> Iterator[News]:
    """Read all that the logs at `path`, a file or a directory, show of one run.

    Raises:
        NoLogs: No member is recognised, or several runs are in one directory.
        OSError: A file cannot be read.
        ValueError: An option is wrong.
    """
    options = named(path, options or LogOptions())
    files = log_files([path])
    skimmed: list[SkimmedSplit] = []
    done, total = 0, sum(file.stat().st_size for file in files)
    for found in skim_files(files, options):
        if isinstance(found, SkimmedSplit):
            skimmed.append(found)
        else:
            done += found
            yield ReadProgress(min(done, total), total)
    places = {str(file): place for place, file in enumerate(files)}
    skimmed.sort(key=lambda split: (places[split.summary.file], split.summary.index))
    summaries = [split.summary for split in skimmed]
    heard = [(split.summary.file, split.summary.index, message) for split in skimmed for message in split.messages]
    skimmed.clear()
    _check(path, summaries)
    whole = LogSet(summaries, options)
    notes, observers, end_us = LineNotes(), RunObservers(options.run), whole.run_ended_us(options.run)
    noted: list[tuple[Record, LogLine]] = []
    last_us = end_us
    for message in interpret_messages(placed_messages(heard, whole), whole):
        noted += notes.lines_of(message)
        observers.add(message)
        last_us = max(last_us, message.at)
    if not noted:
        raise NoLogs(refusal(str(path), summaries))
    noted.sort(key=lambda pair: pair[0].at)
    for start in range(0, len(noted), RECORDS_AT_ONCE):
        some = noted[start : start + RECORDS_AT_ONCE]
        yield RecordsRead([record for record, _ in some], [line for _, line in some])
    story = story_of(observers, options.run, last_us, whole)
    packed = tuple(f"{archive.name}: {ARCHIVE}" for archive in archives_in([path]))
    yield RunRead(structs.replace(story, reading=(*story.reading, *packed)), end_us)


def named(path: Path, options: LogOptions) -> LogOptions:
    """Return the options with a name for the run: that of the directory, if they have none."""
    if options.run:
        return options
    place = path.resolve()
    return structs.replace(options, run=(place.name if place.is_dir() else place.parent.name) or "logs")


def placed_messages(heard: list[HeardMessage], whole: LogSet) -> list[MemberMessage]:
    """Place messages and sort them; `heard` is emptied, so that each is held once."""
    heard.reverse()
    placed: list[MemberMessage] = []
    while heard:
        file, index, message = heard.pop()
        if (place := whole.place(file, index, message)) is not None:
            placed.append(place)
    sort_messages(placed)
    return placed


class LineNotes:
    """Finds the line of each record.

    A record may become known with a later message; its line is that which was logged at its time.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, dict[int, LogLine]] = {}
        """By member and time, the lines whose records may still come."""

    def lines_of(self, message: InterpretedMessage) -> list[tuple[Record, LogLine]]:
        """Return the records of a message, each with its line."""
        place = message.place
        line = LogLine(place.file, place.line, place.offset)
        earlier = self._waiting.setdefault(place.member, {})
        at = place.utc
        found = [(record, line if record.utc == at else earlier.get(record.utc, line)) for record in message.records]
        if message.records or len(earlier) > _PENDING:
            earlier.clear()
        earlier.setdefault(place.utc, line)
        return found


def check_logs(path: Path, options: LogOptions | None = None, *, follow: bool = False) -> None:
    """Check the beginnings of the files, before all is read: that members log there, and of one run only.

    The zones are checked, too, unless the logs are followed: a log that has one may come later.

    Raises:
        NoLogs: No member logs there, or the logs are of several runs.
    """
    options = named(path, options or LogOptions())
    files = log_files([path])
    if not follow:
        check_zones(options, files)
    summaries: list[SplitSummary] = []
    is_told = follow
    for file in files:
        for found in parse_split(replace(whole_file(file), end=LOOKED_AT_BYTES), options):
            if isinstance(found, SplitSummary):
                summaries.append(found)
            is_told |= isinstance(found, EventMessage)
    if not is_told:
        for file in files:  # perhaps only their beginnings tell nothing
            for skimmed in skim(whole_file(file), options, lambda _: None):
                if isinstance(skimmed, EventMessage):
                    return
                summaries.append(skimmed)
        raise NoLogs(refusal(str(path), summaries[len(files) :]))
    _check(path, summaries)
    LogSet(summaries, options)


def _check(path: Path, summaries: Sequence[SplitSummary]) -> None:
    """Raise `NoLogs` where no member is recognised, and where the directory holds several runs."""
    if not any(map(is_understood, summaries)):
        raise NoLogs(refusal(str(path), summaries))
    members: dict[str, set[str]] = {}
    for summary in summaries:
        names = members.setdefault(str(Path(summary.file).parent), set())
        for stream in summary.streams.values():
            names.update(stream.members or stream.self_addresses)
    folders = [folder for folder, names in members.items() if names]
    seen: set[str] = set()
    for folder in folders:
        if seen & members[folder]:
            raise NoLogs(
                f"{path}: one member logs in several folders, so they are taken for several runs; name one of "
                + ", ".join(folders[:RUNS_NAMED])
                + f" and {len(folders) - RUNS_NAMED} more" * (len(folders) > RUNS_NAMED)
            )
        seen |= members[folder]


READ_AT_ONCE = 8 << 20


def follow_run(path: Path, options: LogOptions | None, wait: Callable[[], bool]) -> Iterator[News]:
    """Read the logs of a run as `read_run` does, and go on. `wait` waits between two looks, and returns whether to stop.

    Raises `NoLogs` when there is no file, `OSError` for what cannot be read, `ValueError` for an option that is wrong.
    """
    yield from _Following(path, named(path, options or LogOptions())).news(wait)


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
        self._context = context_of(whole_file(file), zone_of(options, self.file))
        self._assembler = MessageAssembler(self._context)

    def skim(self, options: LogOptions, on_read: Callable[[int], None]) -> Iterator[HeardMessage]:
        """Yield the messages that it has so far."""
        self.offset = end_of_last_line(self.source)
        for found in skim(whole_file(Path(self.file)), options, on_read, self.offset):
            if isinstance(found, EventMessage):
                yield self.file, self.index, found
            else:
                self.summary = found
        self.lines = self.summary.lines
        last = self.summary.last_dateless
        self._assembler = MessageAssembler(self._context, midnights=last // DAY_US if last is not None else 0)

    def grown(self) -> Iterator[HeardMessage]:
        """Yield the messages added since; the last one is complete when the file has not grown since the last look."""
        self.source.seek(self.offset)
        text = self.source.read(READ_AT_ONCE)
        text = text[: text.rfind(b"\n") + 1]
        if not text:
            yield from self._classified(self._assembler.end())
        for line in text.splitlines(keepends=True):
            decoded = line.decode("utf-8", "replace")
            yield from self._classified(self._assembler.add_line(self.offset, self.lines, decoded))
            self.offset += len(line)
            self.lines += 1
        self.summary.lines = self.lines

    def _classified(self, found: Iterator[object]) -> Iterator[HeardMessage]:
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
        self._notes = LineNotes()
        self._whole = LogSet([], options)
        self._interpreter: MessageInterpreter | None = None

    def news(self, wait: Callable[[], bool]) -> Iterator[News]:
        heard: list[HeardMessage] = []
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
            yield ReadProgress(sum(read), total)
        self._renew()
        yield from self._interpret(heard)
        while not wait():
            if heard := [*self._look()]:
                yield from self._interpret(heard)

    def _look(self) -> Iterator[HeardMessage]:
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

    def _interpret(self, heard: list[HeardMessage]) -> Iterator[News]:
        found: list[tuple[Record, LogLine]] = []
        if self._interpreter is None:
            self._interpreter = MessageInterpreter(self._options.run, self._whole.run_began_us(self._options.run))
        for placed in placed_messages(heard, self._whole):
            for message in self._interpreter.interpret(placed):
                self._observers.add(message)
                self._end_us = message.at
                found += self._notes.lines_of(message)
        found.sort(key=lambda noted: noted[0].at)
        if found:
            yield RecordsRead([record for record, _ in found], [line for _, line in found])
        run = self._options.run
        end_us = max(self._end_us, self._whole.run_ended_us(run))
        yield RunRead(story_of(self._observers, run, end_us, self._whole), self._end_us)
