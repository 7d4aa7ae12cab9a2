"""One split read to the end: what was heard that makes events, what is kept aside, and the counts of everything.

Nothing here knows of Spark; `reading` does the same for a few files, `reader` for many.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, tzinfo
from pathlib import Path

from msgspec import Struct, field

from quarterdeck.backend.hazelcast.logs.lines.file_splits import Carry, Split, Tally, carried, read_split
from quarterdeck.backend.hazelcast.logs.lines.message_assembly import Message
from quarterdeck.backend.hazelcast.logs.lines.timestamps import LogTime, parse_time, to_utc, zone_named
from quarterdeck.backend.hazelcast.logs.parsed_messages import ListPrinted, NoEvent
from quarterdeck.backend.hazelcast.logs.patterns.matching import match_message
from quarterdeck.backend.hazelcast.logs.patterns.partitions_and_connections import PRODUCT_LOGGERS

UNRECOGNISED = "the product says something that is not known here"
TIMELESS = "no time is known for it"
_MAX_NAMES = 4
_GZIP = ".gz"


class LogOptions(Struct, frozen=True):
    """What the logs do not tell.

    `run`: the name of the run; without it each directory is one. `zone`: of times without one (IANA name or ``+02:00``); without
    it, it is concluded from when a container engine or syslog got the line, or held to be UTC.
    `date`: ``2026-11-21``, the day of the first message in files whose times have no date; without it the last message is of the
    day on which the file was last written.
    """

    run: str = ""
    zone: str = ""
    date: str = ""


class EventMessage(Struct, frozen=True):
    """A message that makes events."""

    offset: int
    number: int
    stream: str
    utc: int
    high: int
    """The latest time of this member in this stream so far, in this split."""
    dateless: bool
    member: str
    """From the line itself; empty when it names nobody."""
    logger: str
    text: str


class QuarantinedMessage(Struct, frozen=True):
    """A line, or message, that is kept aside. `number` counts from the first line of the split, from 0."""

    number: int
    text: str
    reason: str


class StreamState(Struct):
    """What is known of one stream of a file: who speaks there, and when."""

    members: list[str] = field(default_factory=list)
    selves: list[str] = field(default_factory=list)
    first_us: int | None = None
    lasts_us: dict[str, int] = field(default_factory=dict)
    """The latest time of each member."""


class SplitSummary(Struct):
    """The counts of a split. `counts` has, for each kind of message, how many there are and how many lines they fill."""

    file: str
    index: int
    modified_us: int
    lines: int = 0
    first_dateless: int | None = None
    last_dateless: int | None = None
    counts: dict[str, tuple[int, int]] = field(default_factory=dict)
    voices: dict[str, StreamState] = field(default_factory=dict)

    def count(self, what: str, lines: int) -> None:
        """Count one message of the kind `what` that fills `lines` lines."""
        messages, so_far = self.counts.get(what, (0, 0))
        self.counts[what] = (messages + 1, so_far + lines)


def parse_split(split: Split, options: LogOptions) -> Iterator[EventMessage | QuarantinedMessage | SplitSummary]:
    """Everything of `split` that matters, and at the end its summary, which counts every line exactly once.

    Raises `OSError` when the file cannot be read.
    """
    tally = Tally()
    summary = SplitSummary(split.file, split.index, split.modified_us)
    for found in read_split(split, _zone(options), tally):
        if not isinstance(found, Message):
            summary.count("quarantined" if found.reason else "blank", found.lines)
            if found.reason:
                yield QuarantinedMessage(found.number, found.text, found.reason)
        elif not (found.ours or found.logger in PRODUCT_LOGGERS):
            summary.count("foreign", found.lines)
        else:
            yield from _parse_message(found, summary)
    summary.lines = tally.lines
    summary.first_dateless, summary.last_dateless = tally.first_dateless, tally.last_dateless
    yield summary


def _zone(options: LogOptions) -> tzinfo | None:
    return zone_named(options.zone) if options.zone else None


def _first_day_us(options: LogOptions) -> int | None:
    if not options.date:
        return None
    stamp = parse_time(f"{options.date} 00:00:00")
    if stamp is None or stamp.lacks:
        raise ValueError(f"date: {options.date!r} is no date; write 2026-11-21")
    return stamp.us


def _parse_message(message: Message, summary: SplitSummary) -> Iterator[EventMessage | QuarantinedMessage]:
    matched = match_message(message.text, message.logger)
    voice = summary.voices.setdefault(message.stream, StreamState())
    member = message.member or ""
    if member and member not in voice.members and len(voice.members) < _MAX_NAMES:
        voice.members.append(member)
    if message.utc is not None and not message.dateless:
        voice.first_us = message.utc if voice.first_us is None else min(voice.first_us, message.utc)
        voice.lasts_us[member] = max(voice.lasts_us.get(member, message.utc), message.utc)
    if matched is None:
        summary.count("unrecognised", message.lines)
        yield QuarantinedMessage(message.number, message.text, UNRECOGNISED)
        return
    parsed = matched.parsed
    if isinstance(parsed, NoEvent):
        summary.count(matched.subject, message.lines)
        return
    if message.utc is None:
        summary.count("quarantined", message.lines)
        yield QuarantinedMessage(message.number, message.text, TIMELESS)
        return
    summary.count(matched.subject, message.lines)
    if isinstance(parsed, ListPrinted):
        for self_named in (member.address for member in parsed.members if member.this):
            if self_named not in voice.selves and len(voice.selves) < _MAX_NAMES:
                voice.selves.append(self_named)
    high = message.utc if message.dateless else voice.lasts_us[member]
    yield EventMessage(
        message.offset, message.number, message.stream, message.utc, high, message.dateless,
        member, message.logger, message.text,
    )  # fmt: skip


# What all splits know together


class MemberMessage(Struct, frozen=True):
    """A message of one member of one run, with everything that gives it its place among the others."""

    run: str
    member: str
    at_us: int
    utc: int
    file_us: int
    file: str
    offset: int
    logger: str
    text: str


class LogSet:
    """The summaries of all splits, put together: line numbers, members, times without a date.

    Raises `ValueError` for an option that is wrong.
    """

    def __init__(self, summaries: Sequence[SplitSummary], options: LogOptions) -> None:
        self._options = options
        self._zone = _zone(options) or UTC
        self._first_day_us = _first_day_us(options)
        self._carries: dict[tuple[str, int], Carry] = {}
        self._highs: dict[tuple[str, int, str, str], int] = {}
        self._members: dict[tuple[str, str | None], str | None] = {}
        self._file_us: dict[str, int] = {}
        self._run_us: dict[str, int] = {}
        by_file: dict[str, list[SplitSummary]] = {}
        for summary in sorted(summaries, key=lambda one: (one.file, one.index)):
            by_file.setdefault(summary.file, []).append(summary)
        for file, parts in by_file.items():
            self._learn(file, parts)

    def _learn(self, file: str, parts: list[SplitSummary]) -> None:
        day = LogTime(0)
        tallies = [Tally(part.lines, part.first_dateless, part.last_dateless) for part in parts]
        local_us = parts[0].modified_us - (to_utc(day, self._zone, None) - day.us)
        for part, carry in zip(parts, carried(tallies, self._first_day_us, local_us), strict=True):
            self._carries[file, part.index] = carry
        firsts: list[int] = []
        voices: dict[str, StreamState] = {}
        for part in parts:
            if part.first_dateless is not None:
                firsts.append(self._dated(part.first_dateless, self._carries[file, part.index]))
            for stream, voice in part.voices.items():
                known = voices.setdefault(stream, StreamState())
                for member, last_us in known.lasts_us.items():
                    self._highs[file, part.index, stream, member] = last_us
                _add_voice(known, voice)
        firsts += [voice.first_us for voice in voices.values() if voice.first_us is not None]
        self._file_us[file] = min(firsts, default=0)
        run = self.run_of(file)
        self._run_us[run] = min(self._run_us.get(run, self._file_us[file]), self._file_us[file])
        whole = StreamState()
        for stream, voice in voices.items():
            self._members[file, stream] = _only(voice)
            _add_voice(whole, voice)
        alone = _only(whole)
        nobody = not whole.members and not whole.selves
        self._members[file, None] = _label(file) if nobody else alone

    def _dated(self, us: int, carry: Carry) -> int:
        return to_utc(LogTime(us + carry.dateless_us), self._zone, None)

    def run_of(self, file: str) -> str:
        """The run to which the records of a file belong."""
        return self._options.run or Path(file).parent.name or "logs"

    def run_began_us(self, run: str) -> int:
        """The earliest time in the run: where its clock begins."""
        return self._run_us.get(run, 0)

    def line_number(self, file: str, index: int, number: int) -> int:
        """The number of a line in its file, from 1."""
        return self._carries[file, index].lines + number + 1

    def place(self, file: str, index: int, heard: EventMessage) -> MemberMessage | None:
        """Where a message belongs; None when its line does not say who speaks and several members speak in the file."""
        member = heard.member or self._members.get((file, heard.stream)) or self._members.get((file, None))
        if not member:
            return None
        if heard.dateless:
            utc = at = self._dated(heard.utc, self._carries[file, index])
        else:
            utc, at = heard.utc, max(heard.high, self._highs.get((file, index, heard.stream, heard.member), heard.high))
        run, began = self.run_of(file), self._file_us[file]
        return MemberMessage(run, member, at, utc, began, file, heard.offset, heard.logger, heard.text)


AMBIGUOUS_MEMBER = "it does not say which member speaks, and several speak in this file"


def _add_voice(known: StreamState, more: StreamState) -> None:
    known.members += [name for name in more.members if name not in known.members]
    known.selves += [name for name in more.selves if name not in known.selves]
    if more.first_us is not None:
        known.first_us = more.first_us if known.first_us is None else min(known.first_us, more.first_us)
    for member, last_us in more.lasts_us.items():
        known.lasts_us[member] = max(known.lasts_us.get(member, last_us), last_us)


def _only(voice: StreamState) -> str | None:
    names = voice.members or voice.selves
    return names[0] if len(names) == 1 else None


def _label(file: str) -> str:
    """What people would call the member of a file that names nobody."""
    name = Path(file).name.removesuffix(_GZIP)
    return name.partition(".")[0] or name


def total_counts(summaries: Sequence[SplitSummary]) -> Mapping[str, dict[str, tuple[int, int]]]:
    """By file, for each kind of message, how many there are and how many lines they fill."""
    totals: dict[str, dict[str, tuple[int, int]]] = {}
    for summary in summaries:
        counts = totals.setdefault(summary.file, {})
        for what, (messages, lines) in summary.counts.items():
            before = counts.get(what, (0, 0))
            counts[what] = (before[0] + messages, before[1] + lines)
    return totals
