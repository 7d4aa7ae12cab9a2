"""Parses one split of a log file: the messages that make events, what goes into quarantine, and the counts of everything.

Nothing here knows of Spark. `reader` does this for a few files, `backend.pipeline.logs` for many.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import tzinfo
from pathlib import Path

from msgspec import Struct, field

from quarterdeck.backend.hazelcast.logs.lines.file_splits import ENDLESS, FileSplit, SplitCounts, form_of, read_split
from quarterdeck.backend.hazelcast.logs.lines.layout import has_prefix
from quarterdeck.backend.hazelcast.logs.lines.message_assembly import Message
from quarterdeck.backend.hazelcast.logs.lines.timestamps import MINUTE_US, SET_BACK_LEAST_US, SET_BACK_US, zone_named
from quarterdeck.backend.hazelcast.logs.parsed_messages import LoggedCutList, LoggedMemberList, NoEvent, ParsedMessage
from quarterdeck.backend.hazelcast.logs.patterns.matching import match_message
from quarterdeck.backend.hazelcast.logs.patterns.membership import is_cut_list
from quarterdeck.backend.hazelcast.logs.patterns.partitions_and_connections import PRODUCT_LOGGERS

NOTHING_UNDERSTOOD = "nothing in this file is what a member of a cluster logs"
UNRECOGNISED = "the product says something that is not known here"
TIMELESS = "no time is known for it"
_MAX_NAMES = 4
_MAX_LISTS = 256
"""Member lists of a stream, in one split, whose times are compared with those of others."""

_MAX_TORN = 1000
"""Lines at the beginning of a file that may go on with a message of another file."""


class LogOptions(Struct, frozen=True):
    """What the logs do not contain.

    `run`: the name of the run; without it each directory is one. `zone`: of times without one (IANA name or ``+02:00``); without
    it, the zone is concluded from when a container engine or syslog got the line, or is UTC. For some files only:
    ``h4.log=+02:00,h5.log=Asia/Kolkata``.
    `date`: ``2026-11-21``, the day of the first message in files whose times have no date; without it the last message is of the
    day on which the file was last written.
    """

    run: str = ""
    zone: str = ""
    date: str = ""


class EventMessage(Struct, frozen=True, gc=False):
    """A message that makes events."""

    offset: int
    number: int
    stream: str
    utc: int
    high: int
    """The latest time of this member in this stream so far, in this split."""
    dateless: bool
    member: str
    """From the line itself; empty when it names no member."""
    logger: str
    text: str
    thread: str = ""
    parsed: ParsedMessage | None = None
    """What it means; None for one whose end may stand in another file."""


class QuarantinedMessage(Struct, frozen=True):
    """A line, or message, that no pattern fits. `number` counts from the first line of the split, from 0."""

    number: int
    text: str
    reason: str


class StreamState(Struct):
    """What is known of one stream of a file: which members log there, and when."""

    members: list[str] = field(default_factory=list)
    self_addresses: list[str] = field(default_factory=list)
    first_us: int | None = None
    lasts_us: dict[str, int] = field(default_factory=dict)
    """The latest time of each member."""
    zoned: bool = False
    """Some of its times have a zone."""
    clusters: list[str] = field(default_factory=list)
    """The names of their clusters."""
    set_back: dict[str, int] = field(default_factory=dict)
    """By member, the number of the line in which its times, which have no zone, fall by an hour: the end of summer time."""
    lists: dict[str, tuple[int, int]] = field(default_factory=dict)
    """By what names a member list in the whole cluster: when it was first logged here, and the number of the line."""

    @property
    def only_name(self) -> str | None:
        """The only member that logs there, or None."""
        names = self.members or self.self_addresses
        return names[0] if len(names) == 1 else None

    def add(self, more: StreamState) -> None:
        """Add what is known from another split of the stream, except `lists`, whose lines are those of a split."""
        self.zoned |= more.zoned
        self.clusters += [name for name in more.clusters if name not in self.clusters]
        self.members += [name for name in more.members if name not in self.members]
        self.self_addresses += [name for name in more.self_addresses if name not in self.self_addresses]
        if more.first_us is not None:
            self.first_us = more.first_us if self.first_us is None else min(self.first_us, more.first_us)
        for member, last_us in more.lasts_us.items():
            self.lasts_us[member] = max(self.lasts_us.get(member, last_us), last_us)


class SplitSummary(Struct):
    """The counts of a split. `counts` has, for each kind of message, how many there are and how many lines they fill."""

    file: str
    index: int
    modified_us: int
    lines: int = 0
    first_dateless: int | None = None
    last_dateless: int | None = None
    counts: dict[str, tuple[int, int]] = field(default_factory=dict)
    streams: dict[str, StreamState] = field(default_factory=dict)
    first_line: str = ""
    """The first line that is not blank."""
    unread_line: tuple[int, str] | None = None
    """Number and text of the first line with the product's prefix for which no time is known."""
    unread_count: int = 0
    cut_lists: int = 0
    """Member lists whose lines are not there."""
    ambiguous_zone: str = ""
    notes: tuple[str, ...] = ()
    """What was concluded of the form of the file, and is to be said."""
    is_falling: bool = False
    """The newest messages stand first."""
    is_turned: bool = False
    """Its lines were turned round: they are numbered from the end of the file."""
    torn_start: list[str] = field(default_factory=list)
    """The first lines of a file that go on with a message of the file before it."""

    @classmethod
    def of(cls, split: FileSplit) -> SplitSummary:
        """Begin the counts of a split. Raises `OSError`."""
        form = form_of(split.file, split.modified_us)
        return cls(
            split.file,
            split.index,
            split.modified_us,
            notes=form.notes,
            ambiguous_zone=form.ambiguous_zone,
            is_falling=form.is_falling and not form.is_turned,
            is_turned=form.is_turned,
        )

    def begin_torn(self, line: str) -> None:
        """Keep a line that stands before the first message of the file."""
        if not self.streams and not self.counts.keys() - {"blank", "quarantined"} and len(self.torn_start) < _MAX_TORN:
            self.torn_start.append(line)

    def look_at(self, number: int, text: str, *, is_read: bool) -> None:
        """Remember a line for the refusal of a file in which nothing is understood."""
        self.first_line = self.first_line or text.strip()
        if not is_read and has_prefix(text):
            self.unread_line = self.unread_line or (number, text)
            self.unread_count += 1

    def count(self, what: str, lines: int) -> None:
        messages, so_far = self.counts.get(what, (0, 0))
        self.counts[what] = (messages + 1, so_far + lines)


def parse_split(split: FileSplit, options: LogOptions) -> Iterator[EventMessage | QuarantinedMessage | SplitSummary]:
    """Yield everything of `split` that matters, and at the end its summary, which counts every line exactly once.

    Raises `OSError` when the file cannot be read.
    """
    counts = SplitCounts()
    summary = SplitSummary.of(split)
    is_quarantined = False
    for found in read_split(split, zone_of(options, split.file), counts):
        if not isinstance(found, Message):
            if not split.start:
                summary.begin_torn(found.text)
            summary.look_at(found.number, found.text, is_read=False)
            summary.count("quarantined" if found.reason else "blank", found.lines)
            if found.reason:
                is_quarantined = True
                yield QuarantinedMessage(found.number, found.text, found.reason)
        else:
            yield from classify_message(found, summary)
    summary.lines = counts.lines
    summary.first_dateless, summary.last_dateless = counts.first_dateless, counts.last_dateless
    is_whole = split.start == 0 and split.end == ENDLESS
    if is_whole and not is_quarantined and not summary.counts.keys() - {"blank", "foreign"}:
        yield QuarantinedMessage(0, "", NOTHING_UNDERSTOOD)
    yield summary


def zone_of(options: LogOptions, file: str = "") -> tzinfo | None:
    """Return the zone of times in `file` that name none, if it is given. Raises `ValueError` for one that is wrong."""
    zone = None
    for part in options.zone.split(",") if options.zone else []:
        name, is_of_file, zone_name = part.strip().rpartition("=")
        given = zone_named(zone_name)
        if not is_of_file or Path(file).name == name:
            zone = given
    return zone


def classify_message(message: Message, summary: SplitSummary) -> Iterator[EventMessage | QuarantinedMessage]:
    """Yield what one message makes, if anything. `summary` counts it and learns which member logs, and when."""
    summary.look_at(message.number, message.text, is_read=True)
    if not (message.ours or message.logger in PRODUCT_LOGGERS):
        summary.count("foreign", message.lines)
        return
    matched = match_message(message.text, message.logger)
    state = summary.streams.setdefault(message.stream, StreamState())
    member = message.member or ""
    if member and member not in state.members and len(state.members) < _MAX_NAMES:
        state.members.append(member)
    if message.cluster and message.cluster not in state.clusters and len(state.clusters) < _MAX_NAMES:
        state.clusters.append(message.cluster)
    if message.utc is not None and not message.dateless:
        state.zoned |= message.zoned
        if not (message.zoned or summary.is_falling):
            _set_back(message, state)
        state.first_us = message.utc if state.first_us is None else min(state.first_us, message.utc)
        state.lasts_us[member] = max(state.lasts_us.get(member, message.utc), message.utc)
    if is_cut_list(message.text) and message.utc is not None:  # its end may stand in the next file
        yield _event(message, state)
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
    summary.cut_lists += isinstance(parsed, LoggedCutList)
    if isinstance(parsed, LoggedMemberList):
        if parsed.version is not None and not message.dateless and len(state.lists) < _MAX_LISTS:
            name = f"{parsed.members[0].uuid}/{parsed.version}/{len(parsed.members)}"
            state.lists.setdefault(name, (message.utc, message.number))
        for self_named in (member.address for member in parsed.members if member.this):
            if self_named not in state.self_addresses and len(state.self_addresses) < _MAX_NAMES:
                state.self_addresses.append(self_named)
    yield _event(message, state, parsed)


def _set_back(message: Message, state: StreamState) -> None:
    """Correct the time of a message that has no zone, behind the line in which the clock was set back by an hour."""
    assert message.utc is not None
    member = message.member or ""
    fallen = state.lasts_us.get(member, message.utc) - message.utc
    if member not in state.set_back and SET_BACK_LEAST_US < fallen <= SET_BACK_US + MINUTE_US:
        state.set_back[member] = message.number
    if member in state.set_back:
        message.utc += SET_BACK_US


def _event(message: Message, state: StreamState, parsed: ParsedMessage | None = None) -> EventMessage:
    member = message.member or ""
    assert message.utc is not None
    high = message.utc if message.dateless else state.lasts_us[member]
    return EventMessage(
        message.offset, message.number, message.stream, message.utc, high, message.dateless,
        member, message.logger, message.text, message.thread, parsed,
    )  # fmt: skip
