"""The logs of one run, read for its events only: the records in the order of time, each with the line that told it.

All that matters is held in memory, once: of a gigabyte of logs that is little. `read_run` tells of its progress, then the
records, then the story.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct, structs

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.hazelcast.logs.lines.file_splits import FileSplit
from quarterdeck.backend.hazelcast.logs.log_set import LogSet, MemberMessage
from quarterdeck.backend.hazelcast.logs.observations.story import LogStory, stories_of
from quarterdeck.backend.hazelcast.logs.reader import NoLogs, log_files
from quarterdeck.backend.hazelcast.logs.skimming import skim
from quarterdeck.backend.hazelcast.logs.split_parser import EventMessage, LogOptions, SplitSummary, parse_split
from quarterdeck.backend.hazelcast.logs.told_messages import ToldMessage, in_order, tell_messages

RECORDS_AT_ONCE = 4_000
_PENDING = 4_096
"""Messages of a member whose records may still come, as those do that wait for its uuid."""
RUNS_NAMED = 8
LOOKED_AT_BYTES = 8_192
"""Of every file, before all is read."""


class LogLine(Struct, frozen=True, array_like=True):
    """Where a message begins: the line, from 1, and the byte of the file."""

    file: str
    line: int
    offset: int


class ReadProgress(Struct, frozen=True, tag=True):
    """So many of all bytes are read. Those of a packed file count as they are unpacked."""

    done: int
    total: int


class RecordsRead(Struct, frozen=True, tag=True):
    """Records in the order of time, and the line of each."""

    records: list[Record]
    lines: list[LogLine]


class RunRead(Struct, frozen=True, tag=True):
    """Nothing more comes: what the logs tell beyond their records, and until when they go."""

    story: LogStory
    end_us: int


News = ReadProgress | RecordsRead | RunRead


def read_run(path: Path, options: LogOptions | None = None) -> Iterator[News]:
    """All that the logs at `path` tell of one run: a file, or a directory.

    Raises `NoLogs` where nobody is understood as a member, or several runs are in one directory; `OSError` for what cannot be
    read; `ValueError` for an option that is wrong.
    """
    options = named(path, options or LogOptions())
    files = log_files([path])
    heard: list[tuple[str, int, EventMessage]] = []
    summaries: list[SplitSummary] = []
    read: list[int] = []
    total = sum(file.stat().st_size for file in files)
    for file in files:
        for found in skim(str(file), file.stat().st_mtime_ns // 1000, options, read.append):
            if isinstance(found, EventMessage):
                heard.append((str(file), 0, found))
            else:
                summaries.append(found)
            if read:
                yield ReadProgress(read[0], total)
                read.clear()
    _check(path, summaries)
    whole = LogSet(summaries, options)
    yield from _told(placed_messages(heard, whole), whole, options.run)


def named(path: Path, options: LogOptions) -> LogOptions:
    """The options with a name for the run: that of the directory, if they have none."""
    if options.run:
        return options
    place = path.resolve()
    return structs.replace(options, run=(place.name if place.is_dir() else place.parent.name) or "logs")


def placed_messages(heard: list[tuple[str, int, EventMessage]], whole: LogSet) -> list[MemberMessage]:
    """The messages in order, by file and split; `heard` is emptied, so that each is held once."""
    heard.reverse()
    placed: list[MemberMessage] = []
    while heard:
        file, index, message = heard.pop()
        place = whole.place(file, index, message)
        if place is not None:
            placed.append(place)
    placed.sort(key=in_order)
    return placed


def _told(placed: list[MemberMessage], whole: LogSet, run: str) -> Iterator[News]:
    found: list[tuple[Record, LogLine]] = []
    stories = list(stories_of(_noted(tell_messages(placed, whole), found), whole))
    found.sort(key=lambda one: one[0].at)
    for start in range(0, len(found), RECORDS_AT_ONCE):
        some = found[start : start + RECORDS_AT_ONCE]
        yield RecordsRead([record for record, _ in some], [line for _, line in some])
    yield RunRead(stories[0] if stories else LogStory(run), whole.run_ended_us(run))


def _noted(told: Iterable[ToldMessage], found: list[tuple[Record, LogLine]]) -> Iterator[ToldMessage]:
    """The same, with all records and their lines put into `found`."""
    notes = LineNotes()
    for message in told:
        found += notes.lines_of(message)
        yield message


class LineNotes:
    """Finds the line of each record, which may be known only when a later message is read: that which was logged at its time."""

    def __init__(self) -> None:
        self._waiting: dict[str, dict[int, LogLine]] = {}
        """By member and time, the lines whose records may still come."""

    def lines_of(self, message: ToldMessage) -> list[tuple[Record, LogLine]]:
        """The records of a message, each with its line."""
        place = message.place
        line = LogLine(place.file, place.line, place.offset)
        earlier = self._waiting.setdefault(place.member, {})
        found = [(one, line if one.utc == place.utc else earlier.get(one.utc, line)) for one in message.records]
        if message.records or len(earlier) > _PENDING:
            earlier.clear()
        earlier.setdefault(place.utc, line)
        return found


def check_logs(path: Path, options: LogOptions | None = None) -> None:
    """Look at the beginnings of the files, before all is read: whether members log there, and of how many runs.

    Raises `NoLogs` as `read_run` does.
    """
    options = named(path, options or LogOptions())
    files = log_files([path])
    summaries = [
        one
        for file in files
        for one in parse_split(FileSplit(str(file), 0, 0, LOOKED_AT_BYTES, file.stat().st_mtime_ns // 1000), options)
        if isinstance(one, SplitSummary)
    ]
    if not any(map(_is_understood, summaries)):
        for file in files:  # perhaps only their beginnings say nothing
            found = skim(str(file), file.stat().st_mtime_ns // 1000, options, lambda _: None)
            if any(isinstance(one, EventMessage) for one in found):
                return
    _check(path, summaries)


def _is_understood(summary: SplitSummary) -> bool:
    return bool(summary.counts.keys() - {"blank", "foreign", "quarantined", "unrecognised"})


def _check(path: Path, summaries: Sequence[SplitSummary]) -> None:
    """Raises `NoLogs` where nothing is understood, and where the directory holds several runs."""
    if not any(map(_is_understood, summaries)):
        raise NoLogs(f"{path}: nothing in it is what a member of a Hazelcast cluster logs, and it is not a journal")
    members: dict[str, set[str]] = {}
    for summary in summaries:
        names = members.setdefault(str(Path(summary.file).parent), set())
        for stream in summary.streams.values():
            names.update(stream.members or stream.self_addresses)
    folders = [folder for folder, names in members.items() if names]
    seen: set[str] = set()
    for folder in folders:
        if seen & members[folder]:
            named = ", ".join(folders[:RUNS_NAMED]) + (
                f" and {len(folders) - RUNS_NAMED} more" * (len(folders) > RUNS_NAMED)
            )
            raise NoLogs(
                f"{path}: one member logs in several folders, so they are taken for several runs; name one of {named}"
            )
        seen |= members[folder]
