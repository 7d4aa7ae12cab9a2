"""A few log files to records, in plain Python: all that they make is held in memory. For much, see `reader`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.hazelcast.logs.event_reconstruction import EventReconstruction
from quarterdeck.backend.hazelcast.logs.lines.file_splits import plan_splits
from quarterdeck.backend.hazelcast.logs.log_set import AMBIGUOUS_MEMBER, LogSet, MemberMessage, total_counts
from quarterdeck.backend.hazelcast.logs.patterns.matching import match_message
from quarterdeck.backend.hazelcast.logs.split_parser import (
    EventMessage,
    LogOptions,
    QuarantinedMessage,
    SplitSummary,
    parse_split,
)

SPLIT_BYTES = 32 << 20


class NoLogs(ValueError):
    """A path that holds no log. The message names it."""


@dataclass(frozen=True)
class QuarantinedEntry:
    """A line, or message, that made no record because nobody knows what it means."""

    file: Path
    line: int
    text: str
    reason: str


@dataclass(frozen=True)
class LogRecords:
    """What the logs told. `counts`: by file and kind of message, the messages and their lines; together they are all lines."""

    records: list[Record]
    quarantine: list[QuarantinedEntry]
    counts: dict[str, dict[str, tuple[int, int]]]


def log_files(paths: Iterable[Path]) -> list[Path]:
    """The files at `paths`; of a directory all files in it and below that may be logs. Raises `NoLogs`."""
    files: list[Path] = []
    for path in paths:
        if path.is_dir():
            found = [one for one in sorted(path.rglob("*")) if one.is_file() and may_be_log(one)]
        else:
            found = [path] if path.is_file() else []
        if not found:
            raise NoLogs(f"{path}: no log of a member; name a file, or a directory with files such as member.log")
        files += found
    return list(dict.fromkeys(file.resolve() for file in files))


def may_be_log(file: Path) -> bool:
    """Whether a file found in a directory is worth reading: not hidden, no journal, no table, no archive."""
    suffixes = (".jsonl", ".parquet", ".crc", ".open", ".zip", ".tar", ".tgz", ".xml", ".yaml", ".yml", ".html")
    return not file.name.startswith((".", "_")) and not file.name.endswith(suffixes)


def read_logs(paths: Sequence[Path], options: LogOptions | None = None, split_bytes: int = SPLIT_BYTES) -> LogRecords:
    """All records of the logs at `paths`, by run and member, and everything that made none.

    Raises `NoLogs`, `OSError`, or `ValueError` for an option that is wrong.
    """
    options = options or LogOptions()
    heard: list[tuple[str, int, EventMessage]] = []
    kept: list[tuple[str, int, QuarantinedMessage]] = []
    summaries: list[SplitSummary] = []
    for split in plan_splits(log_files(paths), split_bytes):
        for found in parse_split(split, options):
            if isinstance(found, EventMessage):
                heard.append((split.file, split.index, found))
            elif isinstance(found, QuarantinedMessage):
                kept.append((split.file, split.index, found))
            else:
                summaries.append(found)
    whole = LogSet(summaries, options)
    placed: list[MemberMessage] = []
    for file, index, one in heard:
        place = whole.place(file, index, one)
        if place is None:
            kept.append((file, index, QuarantinedMessage(one.number, one.text, AMBIGUOUS_MEMBER)))
        else:
            placed.append(place)
    quarantine = [
        QuarantinedEntry(Path(file), whole.line_number(file, index, one.number), one.text, one.reason)
        for file, index, one in kept
    ]
    quarantine.sort(key=lambda aside: (aside.file, aside.line))
    return LogRecords(list(records_of(sorted(placed, key=in_order), whole)), quarantine, dict(total_counts(summaries)))


def in_order(placed: MemberMessage) -> tuple[str, str, int, int, str, int]:
    """Sort key: members apart, each in the order in which it spoke; at one time older files first, and as in its file."""
    return placed.run, placed.member, placed.at_us, placed.file_us, placed.file, placed.offset


def records_of(placed: Iterable[MemberMessage], whole: LogSet) -> Iterator[Record]:
    """The records of messages that are `in_order`.

    Logs that were copied, or written to two files at once, say everything twice: that counts once.
    """
    for (run, member), messages in groupby(placed, key=lambda one: (one.run, one.member)):
        reconstruction = EventReconstruction(run, member, whole.run_began_us(run))
        for message in _once(messages):
            matched = match_message(message.text, message.logger)
            if matched is not None:
                yield from reconstruction.take(message.at_us, message.utc, matched.parsed)
        yield from reconstruction.end()


def _once(messages: Iterable[MemberMessage]) -> Iterator[MemberMessage]:
    """Without what another file has already said at the same time, as often as there."""
    for _, at_once in groupby(messages, key=lambda one: one.at_us):
        said: dict[str, dict[str, int]] = {}
        for message in at_once:
            files = said.setdefault(message.text, {})
            files[message.file] = times = files.get(message.file, 0) + 1
            if all(times > others for file, others in files.items() if file != message.file):
                yield message
