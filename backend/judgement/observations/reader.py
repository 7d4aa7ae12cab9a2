"""Reads a few log files to records, in plain Python, with all that they make in memory; for many see `pipeline.tasks`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.hazelcast.logs.interpretation import interpret_messages, log_order
from quarterdeck.backend.hazelcast.logs.lines.file_splits import FileSplit, plan_splits
from quarterdeck.backend.hazelcast.logs.log_set import AMBIGUOUS_MEMBER, LogSet, MemberMessage, total_counts
from quarterdeck.backend.hazelcast.logs.split_parser import (
    EventMessage,
    LogOptions,
    QuarantinedMessage,
    SplitSummary,
    parse_split,
)
from quarterdeck.backend.judgement.observations.story import LogStory, records_and_stories

SPLIT_BYTES = 32 << 20
MOST_NAMED = 8


class NoLogs(ValueError):
    """A path that holds no log. The message names it."""


@dataclass(frozen=True)
class QuarantinedEntry:
    """A line, or message, that made no record because its meaning is unknown."""

    file: Path
    line: int
    text: str
    reason: str


@dataclass(frozen=True)
class LogRecords:
    """What the logs contain. `counts`: by file and kind of message, the messages and their lines; together they are all lines."""

    records: list[Record]
    quarantine: list[QuarantinedEntry]
    counts: dict[str, dict[str, tuple[int, int]]]
    stories: tuple[LogStory, ...] = ()
    """What is observed in each run; see `observations`."""


def log_files(paths: Iterable[Path]) -> list[Path]:
    """Return the files at `paths`; of a directory all files in it and below that may be logs. Raises `NoLogs`."""
    files: list[Path] = []
    for path in paths:
        if path.is_dir():
            found = [file for file in sorted(path.rglob("*")) if file.is_file() and may_be_log(file)]
        else:
            found = [path] if path.is_file() else []
        if not found:
            raise NoLogs(f"{path}: no log of a member; name a file, or a directory with files such as member.log")
        files += found
    return list(dict.fromkeys(file.resolve() for file in files))


def check_zones(options: LogOptions, files: Iterable[PurePath]) -> None:
    """Raise `NoLogs` where a zone is given for a file that is none of these: its times would be read in another one."""
    names = {file.name for file in files}
    for part in options.zone.split(","):
        name, is_of_file, _ = part.strip().rpartition("=")
        if is_of_file and name not in names:
            some = ", ".join(sorted(names)[:MOST_NAMED]) + ", …" * (len(names) > MOST_NAMED)
            raise NoLogs(f"zone: none of the logs is called {name!r}; they are called {some}")


def may_be_log(file: PurePath) -> bool:
    """Return whether a file found in a directory is worth reading: not hidden, no journal, no table, no archive."""
    suffixes = (".jsonl", ".parquet", ".crc", ".open", ".zip", ".tar", ".tgz", ".xml", ".yaml", ".yml", ".html")
    return not file.name.startswith((".", "_")) and not file.name.endswith(suffixes)


def read_logs(paths: Sequence[Path], options: LogOptions | None = None, split_bytes: int = SPLIT_BYTES) -> LogRecords:
    """Read all records of the logs at `paths`, by run and member, and everything that made none.

    Raises `NoLogs`, `OSError`, or `ValueError` for an option that is wrong.
    """
    options = options or LogOptions()
    splits = [parsed_split(split, options) for split in plan_splits(log_files(paths), split_bytes)]
    return records_of(splits, LogSet([split.summary for split in splits], options))


@dataclass(frozen=True)
class ParsedSplit:
    """What one split contains. Its messages get their places when all splits are parsed."""

    summary: SplitSummary
    messages: list[EventMessage]
    quarantine: list[QuarantinedMessage]


def parsed_split(split: FileSplit, options: LogOptions) -> ParsedSplit:
    """Parse a split. Raises OSError."""
    *found, summary = parse_split(split, options)
    assert isinstance(summary, SplitSummary)
    messages = [message for message in found if isinstance(message, EventMessage)]
    return ParsedSplit(summary, messages, [line for line in found if isinstance(line, QuarantinedMessage)])


def records_of(splits: Sequence[ParsedSplit], whole: LogSet) -> LogRecords:
    """Return what the splits of whole runs contain, which are among those that `whole` knows."""
    kept = [(split.summary, message) for split in splits for message in split.quarantine]
    placed: list[MemberMessage] = []
    for split in splits:
        for message in split.messages:
            if (place := whole.place(split.summary.file, split.summary.index, message)) is None:
                kept.append((split.summary, QuarantinedMessage(message.number, message.text, AMBIGUOUS_MEMBER)))
            else:
                placed.append(place)
    quarantine = [
        QuarantinedEntry(Path(of.file), whole.line_number(of.file, of.index, one.number), one.text, one.reason)
        for of, one in kept
        if not whole.is_joined(of.file, of.index, one.number)
    ]
    quarantine.sort(key=lambda entry: (entry.file, entry.line))
    made = list(records_and_stories(interpret_messages(sorted(placed, key=log_order), whole), whole))
    records = sorted(
        (record for record in made if isinstance(record, Record)), key=lambda record: (record.run, record.member)
    )
    counts = dict(total_counts([split.summary for split in splits]))
    return LogRecords(records, quarantine, counts, tuple(story for story in made if isinstance(story, LogStory)))
