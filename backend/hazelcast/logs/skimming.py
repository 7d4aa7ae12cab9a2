"""Reads a log file for its events only: of a gigabyte few lines matter, and only these are parsed.

A line matters when it has one of the `EVENT_SIGNS`. Its message is parsed from its first line to its last. The beginning and the
end of a file are read whole, to learn which members log there, when, and in which layout. Lines that are not understood are
ignored here; `split_parser`, which reads everything, reports them. A file may be skimmed in splits, by several processes.

Files whose times have no date, that are not UTF-8, or whose JSON objects go over several lines are read whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import BinaryIO

from msgspec import Struct

from quarterdeck.backend.hazelcast.logs.lines.envelope import EnvelopedLine, strip_envelope
from quarterdeck.backend.hazelcast.logs.lines.file_splits import (
    ENDLESS,
    UNREADABLE,
    FileSplit,
    context_of,
    encoding_of,
    export_of,
    form_of,
    opened,
)
from quarterdeck.backend.hazelcast.logs.lines.layout import parse_head
from quarterdeck.backend.hazelcast.logs.lines.message_assembly import (
    CONTINUATION,
    FileContext,
    Message,
    MessageAssembler,
    UnassignedLine,
)
from quarterdeck.backend.hazelcast.logs.patterns.matching import EVENT_SIGNS
from quarterdeck.backend.hazelcast.logs.patterns.partitions_and_connections import PRODUCT_LOGGERS
from quarterdeck.backend.hazelcast.logs.split_parser import (
    EventMessage,
    LogOptions,
    QuarantinedMessage,
    SplitSummary,
    classify_message,
    parse_split,
    zone_of,
)

BLOCK_BYTES = 8 << 20
"""What is held of a file at a time, beside what is carried over from the block before."""
CARRIED_BYTES = 1 << 19
"""So much is in sight before and after each place: lines of one message do not lie further apart."""
END_BYTES = 1 << 16
"""So much of the beginning of a file, and of its end, is read whole."""
NEAR_BYTES = 1 << 9
"""So much between two signs is read rather than passed over."""
MOST_LINES_BACK = 200
"""In so many lines before one the first line of its message is searched."""
MOST_REMEMBERED = 100_000
"""So many messages are known as yielded before those that are out of sight are forgotten."""
_PLAIN_HEAD = re.compile(rb"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")
_OFTEN_OURS = (b"com.hazelcast.", b"c.h.", b"c.hazelcast", b"[hz.", b"hz._hz")
_OURS = re.compile(rb"\]:\d{1,5} \[|\[LOCAL\] \[|" + "|".join(sorted(map(re.escape, PRODUCT_LOGGERS))).encode())
"""One of these, or of the signs before, stands in every line with which the product begins a message; see `layout`."""
OnRead = Callable[[int], None]
"""Receives how many more bytes were read."""


class _Line(Struct, frozen=True):
    """The bytes from `start` to before `end` of the text in sight."""

    start: int
    end: int


def skim(
    split: FileSplit, options: LogOptions, on_read: OnRead, until: int = ENDLESS
) -> Iterator[EventMessage | SplitSummary]:
    """Yield every message of a split that makes events, as `parse_split` does, and at the end its summary.

    Of a file that is still written, only what stands before `until` is read.
    Raises `OSError` when the file cannot be read.
    """
    if is_read_whole(split):
        for found in parse_split(replace(split, end=min(split.end, until)), options):
            if not isinstance(found, QuarantinedMessage):
                yield found
        return
    summary = SplitSummary.of(split)
    with opened(split.file) as source:
        skimmer = _Skimmer(context_of(split, zone_of(options, split.file)), summary, split)
        for message in skimmer.messages(source, on_read, until):
            for found in classify_message(message, summary):
                if isinstance(found, EventMessage):
                    yield found
    summary.lines = skimmer.lines
    yield summary


def is_read_whole(split: FileSplit) -> bool:
    """Return whether all of the file of a split has to be parsed."""
    return (
        bool(encoding_of(split.file) or export_of(split.file)) or form_of(split.file, split.modified_us).is_read_whole
    )


def _is_foreign(line: bytes) -> bool:
    """Return whether a line is a message, or its beginning, that another program logged, without parsing it.

    Only a plain date and time prove that a line begins a message; what carries lines may repeat its own time before each.
    """
    return not any(sign in line for sign in _OFTEN_OURS) and bool(_PLAIN_HEAD.match(line)) and not _OURS.search(line)


class _Skimmer:
    """Goes through a split block by block. `lines` is how many lines it has at the end."""

    def __init__(self, context: FileContext, summary: SplitSummary, split: FileSplit) -> None:
        self._context = context
        self._summary = summary
        self._split = split
        self._text = b""
        self._began = max(0, split.start - CARRIED_BYTES)
        """The place in the file of the first byte in sight."""
        self._numbered = max(0, split.start - 1) - self._began
        """The place in sight up to which lines are counted, and how many of the split there are before it."""
        self.lines = -1 if split.start else 0
        self._latest: set[int] = set()
        """Where messages begin that were given lately."""

    def messages(self, source: BinaryIO, on_read: OnRead, until: int) -> Iterator[Message]:
        """Yield every message that matters, in the order in which they are found."""
        done = self._split.start - self._began
        until = min(until, self._split.end + 2 * CARRIED_BYTES)
        if self._began:
            source.seek(self._began)
        while True:
            try:
                block = source.read(min(BLOCK_BYTES, until - self._began - len(self._text)))
            except UNREADABLE:
                block = b""  # packed and torn here
            on_read(len(block))
            kept = max(0, min(len(self._text) - 2 * CARRIED_BYTES, self._split.end - 1 - self._began))
            if kept:
                self._number_of(kept)
                self._text, self._began, self._numbered = self._text[kept:], self._began + kept, self._numbered - kept
            done = max(0, done - kept)
            is_last = not block
            self._text += block
            # Behind the end of the split are signs of messages that began before it.
            end = min(len(self._text), self._split.end + CARRIED_BYTES - self._began)
            end = end if is_last else len(self._text) - CARRIED_BYTES
            if end > done:
                yield from self._between(done, end, is_last=is_last)
                done = end
            if is_last:
                break
        end = min(len(self._text), self._split.end - self._began)
        self.lines = self._number_of(end)
        self.lines += end > 0 and self._text[end - 1 : end] != b"\n"

    def _between(self, start: int, end: int, *, is_last: bool) -> Iterator[Message]:
        """Yield the messages of the lines that matter, and all messages of the beginning and the end of the file."""
        if not self._began and not start:
            head = self._line_at(min(len(self._text), END_BYTES)).end
            yield from self._whole(0, head)
            start = head
        tail = end
        if is_last and self._split.end == ENDLESS:
            tail = max(start, self._first_line_of(self._line_at(max(0, end - END_BYTES))).start)
        # Up to the very end: a message that began before the tail may have its sign in it.
        yield from self._near(list(self._lines_with_signs(start, end)))
        if tail < end:
            yield from self._whole(tail, end)

    def _lines_with_signs(self, start: int, end: int) -> Iterator[int]:
        """Yield where the lines begin that have a sign between two places, and are not those of another program."""
        previous = -1
        for place in sorted(place for sign in EVENT_SIGNS for place in self._places(sign, start, end)):
            if place >= previous:
                line = self._line_at(place)
                previous = line.end
                if not _is_foreign(self._text[line.start : line.end]):
                    yield line.start

    def _places(self, sign: bytes, start: int, end: int) -> Iterator[int]:
        last = end + len(sign) - 1
        place = self._text.find(sign, start, last)
        while place >= 0:
            yield place
            place = self._text.find(sign, place + len(sign), last)

    def _whole(self, start: int, end: int) -> Iterator[Message]:
        assembler = MessageAssembler(self._context)
        # Of each stream in sight the line before is known: it may be the first of a message that goes on here.
        first = self._first_line_of(self._line_at(start)).start if start else 0
        line = self._line_at(max(0, first - END_BYTES))
        number = self._number_of(line.start)
        while line.start < len(self._text):
            if line.start >= end and not any(place < self._began + end for place in assembler.open_offsets()):
                break
            yield from self._given(self._fed(assembler, line, number), start, end)
            number += 1
            line = self._line_at(line.end)
        yield from self._given(assembler.end(), start, end)

    def _given(self, found: Iterator[object], start: int, end: int) -> Iterator[Message]:
        for message in found:
            if isinstance(message, UnassignedLine) and not start and not self._began:
                self._summary.look_at(message.number, message.text, is_read=False)
                self._summary.begin_torn(message.text)
            elif isinstance(message, Message) and start <= message.offset - self._began < end:
                yield from self._if_new(message)

    def _near(self, signs: Sequence[int]) -> Iterator[Message]:
        """Yield the messages that have lines which begin at `signs`. Those that are near each other are read in one go."""
        count = 0
        while count < len(signs):
            strayed: set[int] = set()
            count = yield from self._read_on(signs, count, strayed)
            for sign in sorted(strayed):
                yield from self._read_on([sign], 0, set())

    def _read_on(self, signs: Sequence[int], count: int, strayed: set[int]) -> Generator[Message, None, int]:
        """Read from the message with the sign after the first `count` of them on, while others are near, in one stream.

        Yield the messages with signs, and return how many signs were read by then. `strayed` gets those of lines whose messages
        began before all that is read here.
        """
        assembler = MessageAssembler(self._context)
        sign = signs[count]
        count += 1
        here = self._first_line_of(self._line_at(sign))
        stream = self._carried(here).stream
        number = self._number_of(here.start)
        while here.start < len(self._text) and here.start - sign < CARRIED_BYTES:
            closed = list(self._fed(assembler, here, number))
            yield from self._with_sign(closed, sign, stream)
            number, end = number + 1, here.end
            further = CONTINUATION.match(self._text, end)
            if further and assembler.add_continuation(self._began + end, further[0].decode("utf-8", "replace")):
                number += further[0].count(b"\n")
                end = further.end()
            # Of another stream, the first line of this message may not be among those that are read here.
            is_alone = assembler.streams() <= {stream}
            while is_alone and count < len(signs) and signs[count] < end:
                sign = signs[count]
                count += 1
            if any(isinstance(found, UnassignedLine) and found.offset <= self._began + sign for found in closed):
                strayed.add(sign)
            is_near = is_alone and count < len(signs) and signs[count] < end + NEAR_BYTES
            if not is_near and not any(offset <= self._began + sign for offset in assembler.open_offsets()):
                return count
            here = self._line_at(end)
        yield from self._with_sign(assembler.end(), sign, stream)
        return count

    def _with_sign(self, found: Iterable[Message | UnassignedLine], sign: int, stream: str) -> Iterator[Message]:
        """Yield the messages of a stream, complete now, that begin before the last sign, if they were not yielded yet."""
        for message in found:
            if isinstance(message, Message) and message.stream == stream and message.offset <= self._began + sign:
                yield from self._if_new(message)

    def _if_new(self, message: Message) -> Iterator[Message]:
        offset = message.offset
        if offset not in self._latest and self._split.start <= offset < self._split.end:
            if len(self._latest) > MOST_REMEMBERED:
                self._latest = {known for known in self._latest if known > offset - 2 * CARRIED_BYTES}
            self._latest.add(offset)
            yield message

    def _first_line_of(self, line: _Line) -> _Line:
        here, carried = line, self._carried(line)
        stream = carried.stream if carried.wrapped else None
        found: _Line | None = None
        for _ in range(MOST_LINES_BACK):
            if stream is None or carried.stream == stream:
                head = parse_head(carried, self._context.form)
                if found is not None:
                    return here if head is not None and head.awaits_level else found
                if head is not None:
                    if carried.structured or (head.stamp is not None and head.stamp != carried.collected):
                        return here
                    found = here  # a level: the time may stand in the line before, in the same stream
            if not here.start:
                break
            here = self._line_at(here.start - 1)
            carried = self._carried(here)
            if stream is None and carried.wrapped:
                stream = carried.stream
        return found or line

    def _carried(self, line: _Line) -> EnvelopedLine:
        return strip_envelope(self._text[line.start : line.end].decode("utf-8", "replace"), self._context.form)

    def _line_at(self, place: int) -> _Line:
        if place >= len(self._text):  # where the last line has no end, nothing begins behind it
            return _Line(len(self._text), len(self._text))
        start = self._text.rfind(b"\n", 0, place) + 1
        end = self._text.find(b"\n", place)
        return _Line(start, len(self._text) if end < 0 else end + 1)

    def _fed(self, assembler: MessageAssembler, line: _Line, number: int) -> Iterator[Message | UnassignedLine]:
        text = self._text[line.start : line.end].decode("utf-8", "replace")
        return assembler.add_line(self._began + line.start, number, text)

    def _number_of(self, place: int) -> int:
        """Return how many lines there are before a place in sight."""
        if place >= self._numbered:
            self.lines += self._text.count(b"\n", self._numbered, place)
            self._numbered = place
            return self.lines
        return self.lines - self._text.count(b"\n", place, self._numbered)
