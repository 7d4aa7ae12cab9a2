"""Reads a few log files to records, in plain Python, with all that they make in memory; for many see `pipeline.tasks`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.hazelcast.logs.interpretation import interpret_messages, sort_messages
from quarterdeck.backend.hazelcast.logs.lines.file_splits import FileSplit, plan_splits
from quarterdeck.backend.hazelcast.logs.log_files import log_files
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
    sort_messages(placed)
    made = list(records_and_stories(interpret_messages(placed, whole), whole))
    records = sorted(
        (record for record in made if isinstance(record, Record)), key=lambda record: (record.run, record.member)
    )
    counts = dict(total_counts([split.summary for split in splits]))
    return LogRecords(records, quarantine, counts, tuple(story for story in made if isinstance(story, LogStory)))
