"""The logs of one run, read for its events only: the records in the order of time, each with its line.

All that matters is held in memory, once: of a gigabyte of logs that is little. `read_run` yields its progress, then the
records, then the story.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from msgspec import Struct, structs

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.hazelcast.logs.interpretation import InterpretedMessage, interpret_messages, log_order
from quarterdeck.backend.hazelcast.logs.lines.file_splits import whole_file
from quarterdeck.backend.hazelcast.logs.log_set import LogSet, MemberMessage
from quarterdeck.backend.hazelcast.logs.observations.story import LogStory, RunObservers, story_of
from quarterdeck.backend.hazelcast.logs.parallel_skimming import SkimmedSplit, skim_files
from quarterdeck.backend.hazelcast.logs.reader import NoLogs, log_files
from quarterdeck.backend.hazelcast.logs.skimming import skim
from quarterdeck.backend.hazelcast.logs.split_parser import EventMessage, LogOptions, SplitSummary, parse_split

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

    Raises `NoLogs` where no member is recognised, or several runs are in one directory; `OSError` for what cannot be read;
    `ValueError` for an option that is wrong.
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
    skimmed.sort(key=lambda it: (places[it.summary.file], it.summary.index))
    summaries = [it.summary for it in skimmed]
    heard = [(it.summary.file, it.summary.index, message) for it in skimmed for message in it.messages]
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
    noted.sort(key=lambda pair: pair[0].at)
    for start in range(0, len(noted), RECORDS_AT_ONCE):
        some = noted[start : start + RECORDS_AT_ONCE]
        yield RecordsRead([record for record, _ in some], [line for _, line in some])
    yield RunRead(story_of(observers, options.run, last_us, whole), end_us)


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
        place = whole.place(file, index, message)
        if place is not None:
            placed.append(place)
    placed.sort(key=log_order)
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
        found = [
            (record, line if record.utc == place.utc else earlier.get(record.utc, line)) for record in message.records
        ]
        if message.records or len(earlier) > _PENDING:
            earlier.clear()
        earlier.setdefault(place.utc, line)
        return found


def check_logs(path: Path, options: LogOptions | None = None) -> None:
    """Check the beginnings of the files, before all is read: that members log there, and of one run only.

    Raises `NoLogs` as `read_run` does.
    """
    options = named(path, options or LogOptions())
    files = log_files([path])
    summaries = [
        found
        for file in files
        for found in parse_split(replace(whole_file(file), end=LOOKED_AT_BYTES), options)
        if isinstance(found, SplitSummary)
    ]
    if not any(map(_is_understood, summaries)):
        for file in files:  # perhaps only their beginnings say nothing
            if any(isinstance(found, EventMessage) for found in skim(whole_file(file), options, lambda _: None)):
                return
    _check(path, summaries)


def _is_understood(summary: SplitSummary) -> bool:
    return bool(summary.counts.keys() - {"blank", "foreign", "quarantined", "unrecognised"})


def _check(path: Path, summaries: Sequence[SplitSummary]) -> None:
    """Raise `NoLogs` where no member is recognised, and where the directory holds several runs."""
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
            raise NoLogs(
                f"{path}: one member logs in several folders, so they are taken for several runs; name one of "
                + ", ".join(folders[:RUNS_NAMED])
                + f" and {len(folders) - RUNS_NAMED} more" * (len(folders) > RUNS_NAMED)
            )
        seen |= members[folder]
