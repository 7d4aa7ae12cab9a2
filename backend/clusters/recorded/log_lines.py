"""Which line of which log made each record; and the logs of real members kept as a journal.

Beside such a journal a file keeps these lines, and what was observed in the logs.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import msgspec

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.hazelcast.logs.lines.file_splits import UNREADABLE, opened
from quarterdeck.backend.hazelcast.logs.lines.message_assembly import FileContext, Message, MessageAssembler
from quarterdeck.backend.hazelcast.logs.split_parser import LogOptions
from quarterdeck.backend.journal.files import run_directory
from quarterdeck.backend.journal.writer import JournalWriter
from quarterdeck.backend.judgement.observations import run_reader
from quarterdeck.backend.judgement.observations.story import LogStory
from quarterdeck.backend.picture.text.formatting import bytes_text, counted

LINES_BEFORE, LINES_AFTER = 500, 1_000
BYTES_BEFORE = 1 << 18
LONGEST_LINE = 2_000


@dataclass(frozen=True)
class LogExcerpt:
    """Lines of a file; `first` is the number of the first one, and `message` those of the message itself."""

    first: int
    lines: tuple[str, ...]
    message: range


def excerpt_of(place: run_reader.LogLine) -> LogExcerpt:
    """Return the lines around a message. Raises `OSError` when the file cannot be read, or is another one by now."""
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


def short_name(place: run_reader.LogLine, root: Path) -> str:
    """Return the place as people write it, below the directory that was opened."""
    file = Path(place.file)
    below = root.resolve()
    name = file.relative_to(below) if below in file.parents else file.name
    return f"{name}:{place.line}"


def _length_of_message(lines: list[str]) -> int:
    assembler = MessageAssembler(FileContext())
    offset = 0
    for number, line in enumerate(lines):
        for found in assembler.add_line(offset, number, line):
            if isinstance(found, Message) and not found.number:
                return len("".join(lines[: found.lines]).rstrip().splitlines())
        offset += len(line.encode())
    return 1


IMPORTED_FILE = "logs.json"
"""In the folder of a run whose records are from logs. It is no part of the journal: who reads that passes over it."""

FILE, LINE, OFFSET = range(3)


class LineColumns(msgspec.Struct, frozen=True):
    """The lines of the records of all incarnations."""

    files: list[str]
    by_uuid: dict[str, tuple[list[int], list[int], list[int]]]
    """For the records of an incarnation in order: the place of the file in `files`, the line from 1, the byte it begins at."""


class ImportedLogs(msgspec.Struct, frozen=True):
    """The facts of its logs that an imported journal does not hold."""

    logs: str
    """Where they stood."""
    story: LogStory
    lines: LineColumns


class RecordLines:
    """The line of every record, in little room: records of an incarnation are numbered without gaps."""

    def __init__(self) -> None:
        self._files: dict[str, int] = {}
        self._by_uuid: dict[str, tuple[array[int], array[int], array[int]]] = {}

    @classmethod
    def of(cls, columns: LineColumns) -> RecordLines:
        made = cls()
        made._files = {name: number for number, name in enumerate(columns.files)}
        made._by_uuid = {
            uuid: (array("l", kept[FILE]), array("q", kept[LINE]), array("q", kept[OFFSET]))
            for uuid, kept in columns.by_uuid.items()
        }
        return made

    def columns(self) -> LineColumns:
        """All of them, to be kept."""
        kept = self._by_uuid.items()
        by_uuid = {uuid: (list(files), list(lines), list(offsets)) for uuid, (files, lines, offsets) in kept}
        return LineColumns(list(self._files), by_uuid)

    def add(self, records: Sequence[Record], lines: Sequence[run_reader.LogLine]) -> None:
        """Each of these records was made by the line at the same place."""
        for record, line in zip(records, lines, strict=True):
            if (columns := self._by_uuid.get(record.uuid)) is None:
                columns = self._by_uuid[record.uuid] = (array("l"), array("q"), array("q"))
            columns[FILE].append(self._files.setdefault(line.file, len(self._files)))
            columns[LINE].append(line.line)
            columns[OFFSET].append(line.offset)

    def get(self, record: Record) -> run_reader.LogLine | None:
        columns = self._by_uuid.get(record.uuid)
        place = record.seq - 1
        if columns is None or not 0 <= place < len(columns[FILE]):
            return None
        file = next(name for name, number in self._files.items() if number == columns[FILE][place])
        return run_reader.LogLine(file, columns[LINE][place], columns[OFFSET][place])


def keep_imported(directory: Path, imported: ImportedLogs) -> None:
    """Write it into the folder of the run, whole or not at all. Raises `OSError`."""
    made = directory / f"{IMPORTED_FILE}.new"
    made.write_bytes(msgspec.json.encode(imported))
    made.replace(directory / IMPORTED_FILE)


def imported_logs(directories: Sequence[Path]) -> ImportedLogs | None:
    """Return the facts kept in the first of these folders that keeps some; None where none can be read."""
    for directory in directories:
        try:
            return msgspec.json.decode((directory / IMPORTED_FILE).read_bytes(), type=ImportedLogs)
        except (OSError, msgspec.MsgspecError):
            continue
    return None


WRITER = "logs"
LOOK_SECONDS = 0.5
TENTHS = 10


class RunExists(ValueError):
    """The journal has a run of this name."""


def import_run(path: Path, root: Path, options: LogOptions, *, follow: bool = False) -> Iterator[str]:
    """Write what the logs at `path` show of the run `options.run` into the journal at `root`; says how far that is.

    With `follow` it goes on as the logs grow, for ever. Raises `NoLogs`, `NoJournal`, `RunExists` or `OSError`.
    """
    run_reader.check_logs(path, options, follow=follow)
    if run_directory(root, options.run).exists():
        raise RunExists(f"{root}: has a run {options.run} already; give another name with --run")
    news = run_reader.follow_run(path, options, _wait) if follow else run_reader.read_run(path, options)
    written = tenth = 0
    lines = RecordLines()
    with JournalWriter(root, options.run, WRITER) as writer:
        for piece in news:
            match piece:
                case run_reader.ReadProgress(done, total):
                    if total and done * TENTHS // total > tenth and done < total:
                        tenth = done * TENTHS // total
                        yield f"{tenth * 100 // TENTHS} % of {bytes_text(total)} read"
                case run_reader.RecordsRead(records, places):
                    for record in records:
                        writer.append(record)
                    lines.add(records, places)
                    written += len(records)
                case run_reader.RunRead(story):
                    keep_imported(writer.directory, ImportedLogs(str(path.resolve()), story, lines.columns()))
                    yield f"{counted(written, 'record')} of run {options.run} in {run_directory(root, options.run)}"
                    if not follow:
                        yield from (*story.reading, *(observation.headline for observation in story.observations))


def _wait() -> bool:
    time.sleep(LOOK_SECONDS)
    return False
