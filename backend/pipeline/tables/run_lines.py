"""The lines of journals by run: which are events, each once, and which go into quarantine, with a reason."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import PurePosixPath
from typing import NamedTuple

import msgspec
import pyarrow as pa

from quarterdeck.backend.journal.files import RUN_PREFIX
from quarterdeck.backend.pipeline.audit_input import InputFile
from quarterdeck.backend.pipeline.judging.lines import CONTRADICTS, TORN, NoRecord, decode_record, strange_record
from quarterdeck.backend.pipeline.tables.run_events import NO_RUN, UnfitLines, record_columns


class RecordLine(NamedTuple):
    """A line that is a record. Sorted ones are in the order in which the first of an identity counts."""

    at: int
    raw: bytes
    file: str
    uuid: str
    seq: int


class QuarantineRow(NamedTuple):
    """A row of the table `quarantine`."""

    run: str
    file: str
    raw: str
    reason: str
    contradicts: bool


class RunLines:
    """The lines of some files: records by run, and what is no record."""

    def __init__(self) -> None:
        self.records: dict[str, list[RecordLine]] = defaultdict(list)
        self.quarantine: dict[str, list[QuarantineRow]] = defaultdict(list)

    def read(self, files: Iterable[InputFile], read: Callable[[InputFile], Iterable[bytes]]) -> None:
        """Add the lines of files. Raises OSError."""
        for file in files:
            directory = PurePosixPath(file.place).parent.name
            run = directory.removeprefix(RUN_PREFIX) if directory.startswith(RUN_PREFIX) else NO_RUN
            for line in read(file):
                self.add(line.rstrip(b"\n"), file.place, run)

    def add(self, raw: bytes, file: str, run: str) -> None:
        """Add a line of `file`; `run` is that of a line that names none."""
        try:
            head = decode_record(raw)
        except (msgspec.MsgspecError, UnicodeDecodeError) as problem:
            try:
                head = strange_record(raw, problem)  # type: ignore[assignment] # only its head counts
            except NoRecord as reason:
                self._set_aside(_run_named(raw) or run, file, raw, str(reason))
                return
        line = RecordLine(head.at, raw, file, head.uuid, head.seq)
        self.records[head.run or NO_RUN].append(line)

    def runs(self) -> list[str]:
        """Return the runs of all lines."""
        return list(self.records | self.quarantine)

    def events(self, run: str) -> tuple[list[RecordLine], pa.Table]:
        """Return each event of the run once, by time, as lines and as columns; set aside what contradicts one, or fits none."""
        while True:
            first: dict[tuple[str, int], RecordLine] = {}
            contradicting = [
                line
                for line in sorted(self.records[run])
                if first.setdefault((line.uuid, line.seq), line).raw != line.raw
            ]
            events = list(first.values())
            try:
                columns = record_columns([line.raw for line in events])
            except UnfitLines as unfit:
                for line in events:
                    if line.raw in unfit.lines:
                        self._set_aside(run, line.file, line.raw, TORN)
                self.records[run] = [line for line in self.records[run] if line.raw not in unfit.lines]
                continue
            for line in contradicting:
                reason = f"{CONTRADICTS}, uuid {line.uuid} seq {line.seq}"
                self._set_aside(run, line.file, line.raw, reason, contradicts=True)
            return events, columns

    def _set_aside(self, run: str, file: str, raw: bytes, reason: str, *, contradicts: bool = False) -> None:
        self.quarantine[run].append(QuarantineRow(run, file, raw.decode(errors="replace"), reason, contradicts))


def _run_named(raw: bytes) -> str:
    try:
        line = msgspec.json.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return ""
    run = line.get("run") if isinstance(line, dict) else None
    return run if isinstance(run, str) else ""
