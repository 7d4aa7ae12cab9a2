"""Lines to messages: each line goes to exactly one message, or stands alone.

A message owns the lines that follow its first one in the same stream, up to the next beginning of a message there, but none
that lies more than `MAX_MESSAGE_BYTES` after its first. Nothing else in earlier lines matters. So the `LOOK_BACK_BYTES` before a
place are enough to know to which messages the lines there belong: a file may be cut anywhere and read in parts (see
`file_splits`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import tzinfo

from msgspec import structs

from quarterdeck.backend.core.address import Address
from quarterdeck.backend.hazelcast.logs.lines.envelope import EnvelopedLine, strip_envelope
from quarterdeck.backend.hazelcast.logs.lines.form import PLAIN, FileForm
from quarterdeck.backend.hazelcast.logs.lines.layout import MessageHead, last_part, parse_head, second_half
from quarterdeck.backend.hazelcast.logs.lines.timestamps import (
    DAY_US,
    MINUTE_US,
    SET_BACK_LEAST_US,
    SET_BACK_US,
    LogTime,
    offset_us,
    to_utc,
    with_year,
)

MAX_MESSAGE_BYTES = 1 << 20
LOOK_BACK_BYTES = 3 * MAX_MESSAGE_BYTES
"""Whether a line begins a message may depend on a line so far before it, and the stream of that one on a third."""
MAX_MESSAGE_CHARACTERS = 1 << 18
"""Characters of a message that are kept; what is longer is counted, not kept."""


@dataclass(frozen=True)
class FileContext:
    """What is known of a file beside its lines: how they are written, and what completes their times."""

    zone: tzinfo | None = None
    modified_us: int = 0
    """When the file was last written."""
    form: FileForm = PLAIN


@dataclass(slots=True)
class Message:
    """One message with its further lines. `offset` and `number` are the place of its first line."""

    offset: int
    number: int
    stream: str
    lines: int
    utc: int | None
    """Microseconds. Without a date (`dateless`): since the midnight on which the split began."""
    dateless: bool
    ours: bool
    member: Address | None
    logger: str
    text: str
    """The message, then its further lines."""
    thread: str = ""
    zoned: bool = False
    """Its zone is known: from the line, from what carried it, or because it was given."""
    cluster: str = ""
    """The name of its member's cluster, where the line has it."""


@dataclass(slots=True)
class UnassignedLine:
    """A line that belongs to no message."""

    offset: int
    number: int
    text: str
    reason: str
    lines: int = 1


@dataclass(slots=True)
class _OpenMessage:
    head: MessageHead
    offset: int
    number: int
    collected: LogTime | None
    lines: int
    rest: list[str] = field(default_factory=list)
    kept: int = 0
    awaits: bool = False


@dataclass(slots=True)
class _PartialLine:
    """A line that a container engine has cut."""

    offset: int
    number: int
    first: EnvelopedLine
    texts: list[str]
    size: int


@dataclass(slots=True)
class _PrintedJson:
    """A JSON object over many lines, as people print it."""

    offsets: list[int]
    """Of the lines. If the object does not end, each may begin a message."""
    numbers: list[int]
    """Of the lines: those before the part of the file that is read have none of their own."""
    lines: list[str]


JSON_OPENS = frozenset(("{", "[{", "[ {", ",{", ", {", "[\ufeff{", "\ufeff{"))
MAX_JSON_BYTES = 1 << 17
"""What is longer is no JSON object."""
CONTINUATION = re.compile(rb"(?:(?:\t[A-Za-z]|Members [\[{])[^\n\r\x1b]*+\n|\]?\n)++")
"""Lines that no layout begins a message with, and that nothing carries: what stands in a list, in a stack trace, and between."""
NO_HEAD = "no message before it that it could go on with"


class MessageAssembler:
    """Puts the lines of a file, in order, together to messages. Each is yielded when it is complete."""

    def __init__(self, context: FileContext, midnights: int = 0) -> None:
        """Begin. `midnights`: how many have passed since the file began, where times have no date."""
        self._context = context
        self.form = context.form
        self._open: dict[str, _OpenMessage] = {}
        self._pieces: dict[str, _PartialLine] = {}
        self._json: _PrintedJson | None = None
        self._last_wrapped: tuple[int, str] | None = None
        self._midnights = midnights
        self._time_of_day: int | None = None
        self._last_times: dict[str, tuple[int, int, bool]] = {}

    def open_offsets(self) -> list[int]:
        """Return where the messages and the cut lines begin that are still open."""
        offsets = list(self._json.offsets) if self._json else []
        offsets += [message.offset for message in self._open.values()]
        return offsets + [pieces.offset for pieces in self._pieces.values()]

    def streams(self) -> set[str]:
        """Return the streams of which a message or a cut line is open."""
        return {*self._open, *self._pieces}

    def add_line(self, offset: int, number: int, line: str) -> Iterator[Message | UnassignedLine]:
        """Add the line at byte `offset`, `number` lines after the first of this reading."""
        printed = self._json
        if line.strip() in JSON_OPENS:
            yield from self._not_json()
            self._json = _PrintedJson([offset], [number], [line])
            return
        if printed is None:
            yield from self._line(offset, number, line, 1)
            return
        printed.offsets.append(offset)
        printed.numbers.append(number)
        printed.lines.append(line)
        if is_end_of_object(line, printed.lines[0]):
            self._json = None
            whole = " ".join(part.strip() for part in printed.lines)
            yield from self._line(printed.offsets[0], printed.numbers[0], whole.lstrip("[, "), len(printed.lines))
        elif offset - printed.offsets[0] > MAX_JSON_BYTES:
            yield from self._not_json()

    def add_continuation(self, offset: int, text: str) -> bool:
        """Add lines that `CONTINUATION` fits, all at once, if they go on with a message of the only stream."""
        opened = self._open.get("")
        if (
            opened is None
            or opened.awaits
            or self._json is not None
            or self._last_wrapped is not None
            or self._pieces
            or offset + len(text) - opened.offset > MAX_MESSAGE_BYTES
        ):
            return False
        opened.lines += text.count("\n")
        _keep(opened, text[:-1])
        return True

    def _not_json(self) -> Iterator[Message | UnassignedLine]:
        """Give up a JSON object that does not end: its lines are lines like others."""
        printed, self._json = self._json, None
        if printed is not None:
            for offset, number, line in zip(printed.offsets, printed.numbers, printed.lines, strict=True):
                yield from self._line(offset, number, line, 1)

    def _line(self, offset: int, number: int, line: str, count: int) -> Iterator[Message | UnassignedLine]:
        carried = strip_envelope(line, self.form)
        if line[-1:] != "\n" or (self.form.columns and len(line) > self.form.columns):
            carried = structs.replace(carried, text=without_cut_end(carried.text))
        stream = carried.stream
        if carried.wrapped:
            self._last_wrapped = (offset, stream)
        elif (
            self._last_wrapped and offset - self._last_wrapped[0] < MAX_MESSAGE_BYTES and not carried.text[:1].isdigit()
        ):
            stream = self._last_wrapped[1]  # a line that lost what carries it, as copies from a terminal do
        pieces = self._pieces.get(stream)
        if pieces is not None and (not carried.wrapped or offset - pieces.offset >= MAX_MESSAGE_BYTES // 2):
            yield from self._joined(stream, pieces)
            pieces = None
        if pieces is None and not carried.partial:
            yield from self._whole_line(stream, offset, number, carried, count)
            return
        if pieces is None:
            self._pieces[stream] = pieces = _PartialLine(offset, number, carried, [], 0)
        pieces.texts.append(carried.text[: max(0, MAX_MESSAGE_CHARACTERS - pieces.size)])
        pieces.size += len(carried.text)
        if not carried.partial:
            yield from self._joined(stream, pieces)

    def _joined(self, stream: str, pieces: _PartialLine) -> Iterator[Message | UnassignedLine]:
        del self._pieces[stream]
        line = structs.replace(pieces.first, text="".join(pieces.texts))
        yield from self._whole_line(stream, pieces.offset, pieces.number, line, len(pieces.texts))

    def end(self) -> Iterator[Message | UnassignedLine]:
        """Yield what is still open when no more lines come."""
        yield from self._not_json()
        for stream, pieces in sorted(self._pieces.items(), key=lambda item: item[1].offset):
            yield from self._joined(stream, pieces)
        for stream, opened in sorted(self._open.items(), key=lambda item: item[1].offset):
            yield self._closed(stream, opened)
        self._open.clear()

    def _whole_line(
        self, stream: str, offset: int, number: int, carried: EnvelopedLine, count: int
    ) -> Iterator[Message | UnassignedLine]:
        standing = self._open.get(stream)
        if standing is not None and offset - standing.offset > MAX_MESSAGE_BYTES:
            del self._open[stream]
            yield self._closed(stream, standing)
            standing = None
        first, further = carried.text, ""
        if "\n" in first:
            first, _, further = first.partition("\n")
            carried = structs.replace(carried, text=first)
        head = None if standing is not None and standing.awaits else parse_head(carried, self.form)
        if head is not None:
            if standing is not None:
                yield self._closed(stream, standing)
            if further and head.awaits_level:
                first, _, further = further.partition("\n")
                head = second_half(head, first)
            self._open[stream] = opened = _OpenMessage(
                head, offset, number, carried.collected, count, awaits=head.awaits_level
            )
            if further:
                _keep(opened, further)
        elif standing is None:
            text = f"{first}\n{further}" if further else first
            yield UnassignedLine(offset, number, text[:MAX_MESSAGE_CHARACTERS], NO_HEAD if text.strip() else "", count)
        elif standing.awaits:
            standing.awaits = False
            standing.head = second_half(standing.head, first)
            standing.lines += count
            if further:
                _keep(standing, further)
        else:
            standing.lines += count
            _keep(standing, f"{first}\n{further}" if further else first)

    def _closed(self, stream: str, opened: _OpenMessage) -> Message:
        head = opened.head
        utc, dateless = self._utc(stream, opened.offset, head.stamp or opened.collected, opened.collected)
        text, logger = "\n".join((head.message, *opened.rest)) if opened.rest else head.message, head.logger
        if self.form.behind is not None and (behind := self.form.behind.search(text)):
            text = text[: behind.start()]
            logger = logger or last_part((behind[1] if behind.re.groups else "") or "")
        stamps = (head.stamp, opened.collected)
        is_zoned = self._context.zone is not None or any(stamp is not None and stamp.zoned for stamp in stamps)
        return Message(
            opened.offset, opened.number, stream, opened.lines, utc, dateless, head.ours, head.member, logger, text,
            head.thread, is_zoned, head.cluster,
        )  # fmt: skip

    def _utc(
        self, stream: str, offset: int, stamp: LogTime | None, collected: LogTime | None
    ) -> tuple[int | None, bool]:
        """Return the time of a message; one without a time has that of the message before it."""
        if stamp is None:
            said, utc, dateless = self._last_times.get(stream, (0, None, False))
            return (utc, dateless) if offset - said < MAX_MESSAGE_BYTES else (None, False)
        known = collected.us if collected is not None and collected.zoned else None
        dateless = stamp.lacks == "date" and known is None
        if dateless:
            if self._time_of_day is not None and stamp.us < self._time_of_day - DAY_US // 2:
                self._midnights += 1
            self._time_of_day = stamp.us
            utc = stamp.us + self._midnights * DAY_US
        else:
            if stamp.lacks == "date" and known is not None:  # collected within half a day
                stamp = LogTime(stamp.us + round((known - stamp.us) / DAY_US) * DAY_US)
            elif stamp.lacks == "year":
                stamp = LogTime(with_year(stamp.us, self._context.modified_us))
            utc = to_utc(stamp, self._context.zone, known)
            if self._context.zone is not None and not stamp.zoned:
                utc = self._second_of_two(utc, stamp.us, self._context.zone, self._last_times.get(stream))
        self._last_times[stream] = (offset, utc, dateless)
        return utc, dateless

    def _second_of_two(self, utc: int, local_us: int, zone: tzinfo, last: tuple[int, int, bool] | None) -> int:
        """Return the time of a message in an hour that comes twice, as clocks are set back: the second if times have fallen."""
        if last is None or not SET_BACK_LEAST_US < last[1] - utc <= SET_BACK_US + MINUTE_US:
            return utc
        minute = local_us // MINUTE_US
        return utc + offset_us(zone, minute) - offset_us(zone, minute, fold=1)


_CUT_END = re.compile(
    r"(?P<member>(?:Member )?(?:Address)?\[[^\]\s]*(?:\](?::(?P<port>\d*))?)?)(?P<uuid> - [0-9a-fA-F-]*)?$|(?<![\w.:-])\d+$"
)
_WHOLE_UUID = len(" - 00000000-0000-0000-0000-000000000000")


def without_cut_end(text: str) -> str:
    """Return the text of a line that is cut, without the address or number that the cut may have gone through.

    An address is whole if its port stands in the line before, as that of the member that logs it, or if its uuid is whole.
    """
    found = _CUT_END.search(text)
    if found is None or len(found["uuid"] or "") == _WHOLE_UUID:
        return text
    if found["port"] and not found["uuid"] and f"]:{found['port']} " in text[: found.start()]:
        return text
    return text[: found.start()]


def is_end_of_object(line: str, first: str) -> bool:
    """Return whether `line` closes the object that `first` opened: with a brace that is indented no deeper."""
    text = line.lstrip()
    return text[:1] == "}" and len(line) - len(text) <= len(first) - len(first.lstrip())


def _keep(opened: _OpenMessage, text: str) -> None:
    if opened.kept < MAX_MESSAGE_CHARACTERS:
        opened.rest.append(text[: MAX_MESSAGE_CHARACTERS - opened.kept])
        opened.kept += len(text) + 1
