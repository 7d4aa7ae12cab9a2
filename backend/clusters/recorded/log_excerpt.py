"""The lines of a log around a message, to read."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from quarterdeck.backend.hazelcast.logs.lines.file_splits import UNREADABLE, opened
from quarterdeck.backend.hazelcast.logs.lines.message_assembly import ClockContext, Message, MessageAssembler
from quarterdeck.backend.hazelcast.logs.run_reader import LogLine

LINES_BEFORE, LINES_AFTER = 500, 1_000
BYTES_BEFORE = 1 << 18
LONGEST_LINE = 2_000


@dataclass(frozen=True)
class LogExcerpt:
    """Lines of a file; `first` is the number of the first one, and `message` those of the message itself."""

    first: int
    lines: tuple[str, ...]
    message: range


def excerpt_of(place: LogLine) -> LogExcerpt:
    """Return the lines around a message.

    Raises:
        OSError: The file cannot be read, or is another one by now.
    """
    try:
        with opened(place.file) as source:
            began = max(0, place.offset - BYTES_BEFORE)
            source.seek(began)
            before = source.read(place.offset - began).decode("utf-8", "replace").splitlines()[-LINES_BEFORE:]
            after = [line.decode("utf-8", "replace") for line in islice(source, LINES_AFTER)]
    except UNREADABLE as problem:
        raise OSError(f"{place.file}: {problem}") from problem
    if not after:
        raise OSError(f"{place.file}: has no line {place.line} any more")
    before = before[-(place.line - 1) :] if place.line > 1 else []
    lines = (*before, *after)
    first = place.line - len(before)
    shown = tuple(line.rstrip("\r\n").expandtabs(4)[:LONGEST_LINE] for line in lines)
    return LogExcerpt(first, shown, range(place.line, place.line + _length_of_message(after)))


def short_name(place: LogLine, root: Path) -> str:
    """Return the place as people write it, below the directory that was opened."""
    file = Path(place.file)
    below = root.resolve()
    name = file.relative_to(below) if below in file.parents else file.name
    return f"{name}:{place.line}"


def _length_of_message(lines: list[str]) -> int:
    """How many lines the message has with which these begin."""
    assembler = MessageAssembler(ClockContext())
    offset = 0
    for number, line in enumerate(lines):
        for found in assembler.add_line(offset, number, line):
            if isinstance(found, Message) and not found.number:
                return len("".join(lines[: found.lines]).rstrip().splitlines())
        offset += len(line.encode())
    return 1
