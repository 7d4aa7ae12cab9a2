"""Files in byte ranges, each read by itself: wherever the ranges end, every line is read once and no message is cut.

The reader of a range begins `LOOK_BACK_BYTES` before it, to learn which messages are open where it begins, and continues after
its end until its own last messages are complete. It yields the messages, and the lines that belong to none, whose first byte
lies within the range.
"""

from __future__ import annotations

import codecs
import gzip
import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import tzinfo
from functools import lru_cache
from io import SEEK_END
from pathlib import Path
from typing import BinaryIO, cast

from quarterdeck.backend.hazelcast.logs.lines.exports import (
    HEAD_BYTES,
    Export,
    converted,
    export_kind,
    in_order_of_time,
    spooled,
)
from quarterdeck.backend.hazelcast.logs.lines.form import FileForm
from quarterdeck.backend.hazelcast.logs.lines.form_detection import learned_form
from quarterdeck.backend.hazelcast.logs.lines.message_assembly import (
    LOOK_BACK_BYTES,
    MAX_MESSAGE_BYTES,
    FileContext,
    Message,
    MessageAssembler,
    UnassignedLine,
)
from quarterdeck.backend.hazelcast.logs.lines.timestamps import DAY_US

MAX_LINE_BYTES = 1 << 20
"""Bytes of one line that are read; the rest of it is skipped."""
ENDLESS = 1 << 62
TORN = "the packed file is torn here; what follows is not there"
_BYTE_ORDER_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
UNREADABLE = (EOFError, zlib.error, gzip.BadGzipFile)
"""What reading a packed file raises where the file is torn."""
_BLOCK_BYTES = 64 * 1024
_SAMPLE_BYTES = 1 << 16
"""Of the beginning and the end of a file, to learn its form."""
_SEARCH_BLOCK_BYTES = 1 << 20
_SEARCHED_BYTES = 64 << 20
"""In so much of a file its first line of the product is looked for."""
_FORMS_KEPT = 256
PRODUCT_PREFIX = re.compile(rb"\]:\d{1,5} \[[^\]\n]{0,200}\] \[\d+\.\d")
_LOOKED_AT = 64
_LOOKED_AT_LEAST = 8
"""How many bytes at the beginning of a file, and how many characters at least, show its encoding."""


@dataclass(frozen=True)
class FileSplit:
    """The bytes from `start` to before `end` of a file.

    A packed file is one split, and so is one of UTF-16; its bytes are the unpacked ones, as UTF-8.
    """

    file: str
    index: int
    start: int
    end: int
    modified_us: int


@dataclass(slots=True)
class SplitCounts:
    """What a reading of a split counted: lines that begin in it, and the midnights among times without a date."""

    lines: int = 0
    first_dateless: int | None = None
    last_dateless: int | None = None


def whole_file(file: Path) -> FileSplit:
    """Return the split that is all of a file. Raises `OSError` for one that cannot be seen."""
    return FileSplit(str(file), 0, 0, ENDLESS, file.stat().st_mtime_ns // 1000)


def plan_splits(files: Iterable[Path], bytes_each: int) -> list[FileSplit]:
    """Return splits of about `bytes_each` bytes that cover `files`. Raises `OSError` for files that cannot be seen."""
    splits: list[FileSplit] = []
    for file in files:
        whole, size = whole_file(file), file.stat().st_size
        form = form_of(str(file), whole.modified_us)
        if form.is_falling or is_converted(str(file)):
            splits.append(whole)
            continue
        for index, start in enumerate(range(0, max(1, size), bytes_each)):
            end = start + bytes_each if start + bytes_each < size else ENDLESS
            splits.append(replace(whole, index=index, start=start, end=end))
    return splits


def read_split(split: FileSplit, zone: tzinfo | None, counts: SplitCounts) -> Iterator[Message | UnassignedLine]:
    """Yield every message of `split`, and every line that belongs to none. Numbers count from its first line.

    `counts` is complete at the end.
    """
    assembly = MessageAssembler(context_of(split, zone))
    with opened_in_order(split.file, assembly.form) as source:
        for found in _found(source, split, assembly, counts):
            if split.start <= found.offset < split.end:
                if isinstance(found, Message) and found.dateless and found.utc is not None:
                    counts.first_dateless = found.utc if counts.first_dateless is None else counts.first_dateless
                    counts.last_dateless = found.utc
                yield found


def context_of(split: FileSplit, zone: tzinfo | None) -> FileContext:
    """Return what is known of the file of a split beside its lines. Raises `OSError`."""
    return FileContext(zone, split.modified_us, form_of(split.file, split.modified_us))


@lru_cache(maxsize=_FORMS_KEPT)
def form_of(file: str, modified_us: int) -> FileForm:
    """Learn the form of a file from its beginning and its end. Raises `OSError`."""
    is_packed = is_converted(file)
    try:
        with opened(file) as source:
            head = _sample(source)
            size = 0 if is_packed else source.seek(0, SEEK_END)
            tail = b""
            if size > 2 * _SAMPLE_BYTES:
                source.seek(size - _SAMPLE_BYTES)
                tail = source.read(_SAMPLE_BYTES)
    except UNREADABLE:
        return FileForm(is_read_whole=True)
    lines, later = (text.decode("utf-8", "replace").splitlines(keepends=True) for text in (head, tail))
    if len(head) == _SAMPLE_BYTES:
        del lines[-1:]  # cut by the sample
    year = 1970 + modified_us // DAY_US * 4 // 1461 + 1
    return learned_form(lines, later[1:], year)


def _sample(source: BinaryIO) -> bytes:
    """Return the beginning of a file, or, where the product says nothing in it, the beginning of what it says."""
    head = block = source.read(_SAMPLE_BYTES)
    looked_at = 0
    while block and looked_at < _SEARCHED_BYTES:
        if found := PRODUCT_PREFIX.search(block):
            if not looked_at:
                return head
            begin = block.rfind(b"\n", 0, found.start()) + 1
            return block[begin : begin + _SAMPLE_BYTES]
        looked_at += len(block)
        block = source.read(_SEARCH_BLOCK_BYTES)
    return head


def _found(
    source: BinaryIO, split: FileSplit, assembly: MessageAssembler, counts: SplitCounts
) -> Iterator[Message | UnassignedLine]:
    number = 0
    began = max(0, split.start - LOOK_BACK_BYTES)
    for offset, line in _lines(source, began):
        if line is None:
            yield UnassignedLine(offset, number, "", TORN, lines=0)
            break
        if offset >= split.end:
            own = [place for place in assembly.open_offsets() if split.start <= place < split.end]
            if not own or offset - max(own) > MAX_MESSAGE_BYTES:
                break
        elif offset >= split.start:
            counts.lines += 1
        yield from assembly.add_line(offset, number if offset >= split.start else -1, line.decode("utf-8", "replace"))
        if offset >= split.start:
            number += 1
    yield from assembly.end()


def _lines(source: BinaryIO, began: int) -> Iterator[tuple[int, bytes | None]]:
    """Yield the lines of `source` with the offset of each, from the first that begins at `began` or later.

    None for a line: the source is packed and torn there.
    """
    offset = began
    if began:
        source.seek(began - 1)
        offset = began - 1 + _passed_over(source)
    while True:
        try:
            line = source.readline(MAX_LINE_BYTES)
            length = len(line)
            if length == MAX_LINE_BYTES and not line.endswith(b"\n"):
                length += _passed_over(source)
        except UNREADABLE:
            if not offset:
                raise
            yield offset, None
            return
        if not line:
            return
        yield offset, line
        offset += length


def _passed_over(source: BinaryIO) -> int:
    """Skip past the next end of line. Return how many bytes that was."""
    passed = 0
    while piece := source.readline(MAX_LINE_BYTES):
        passed += len(piece)
        if piece.endswith(b"\n"):
            break
    return passed


def opened(file: str) -> BinaryIO:
    """Open a file for its bytes, unpacked, as UTF-8. Raises `OSError`."""
    source = _unpacked(file)
    if encoding := encoding_of(file):
        source = cast(BinaryIO, codecs.EncodedFile(source, "utf-8", encoding, errors="replace"))
    if export := export_of(file):
        with source:
            return converted(spooled(source) if encoding else source, export)
    return source


def opened_in_order(file: str, form: FileForm) -> BinaryIO:
    """Open a file for its bytes as `opened` does; where its lines are those of printed lines, the newest first, turned round."""
    source = opened(file)
    if not form.is_turned:
        return source
    if encoding_of(file):
        source = spooled(source)
    with source:
        return in_order_of_time(source, form)


def export_of(file: str) -> Export:
    """Return how a log store has exported a file; "" for a log."""
    try:
        with _unpacked(file) as source:
            head = source.read(HEAD_BYTES)
            return export_kind(
                head if not (encoding := encoding_of(file)) else head.decode(encoding, "replace").encode()
            )
    except UNREADABLE:
        return ""


def is_converted(file: str) -> bool:
    """Return whether the bytes that are read of a file are not those that stand in it."""
    return file.endswith(".gz") or bool(encoding_of(file) or export_of(file))


def end_of_last_line(file: BinaryIO) -> int:
    """Return the offset after the last end of line, or 0 without one. Moves the file's position."""
    end = file.seek(0, SEEK_END)
    while end:
        begin = max(0, end - _BLOCK_BYTES)
        file.seek(begin)
        place = file.read(end - begin).rfind(b"\n")
        if place >= 0:
            return begin + place + 1
        end = begin
    return 0


def _unpacked(file: str) -> BinaryIO:
    if file.endswith(".gz"):
        return gzip.open(file, "rb")  # type: ignore[return-value]  # a GzipFile reads like any binary file
    return Path(file).open("rb")


def encoding_of(file: str) -> str:
    """Return the kind of UTF-16 of a file, else "". Windows PowerShell writes whatever it redirects so."""
    try:
        with _unpacked(file) as source:
            head = source.read(_LOOKED_AT)
    except UNREADABLE:
        return ""
    high, low = head[2::2], head[3::2]
    if len(low) < _LOOKED_AT_LEAST:
        return ""
    for zeros, encoding in ((low, "utf-16-le"), (high, "utf-16-be")):
        if zeros.count(0) > len(zeros) * 3 // 4:
            return "utf-16" if head[:2] in _BYTE_ORDER_MARKS else encoding
    return ""
