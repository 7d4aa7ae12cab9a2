"""The lines of journals by run: which are events, each once, and which go into quarantine, with a reason."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from pathlib import PurePosixPath
from typing import NamedTuple

import msgspec
import pyarrow as pa

from quarterdeck.backend.core.events import CLUSTER_EVENTS
from quarterdeck.backend.journal.files import RUN_PREFIX
from quarterdeck.backend.pipeline.audit_input import InputFile
from quarterdeck.backend.pipeline.judging.group_judge import ReadLines, lines_of_file
from quarterdeck.backend.pipeline.judging.lines import (
    CONTRADICTS,
    NO_RUN,
    TORN,
    NoRecord,
    decode_record,
    run_of_line,
    strange_record,
)
from quarterdeck.backend.pipeline.tables.run_events import UnfitLines, record_columns


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

    def __init__(self, wanted: Collection[str] | None = None) -> None:
        """`wanted`: the runs whose lines are kept; all, where none are named."""
        self._wanted = wanted
        self.records: dict[str, list[RecordLine]] = defaultdict(list)
        self.quarantine: dict[str, list[QuarantineRow]] = defaultdict(list)
        self.members: dict[str, set[str]] = defaultdict(set)
        """The labels of the members, by run."""

    def read(self, files: Iterable[InputFile], read: ReadLines = lines_of_file) -> None:
        """Add the lines of files. Raises OSError."""
        for file in files:
            directory = PurePosixPath(file.place).parent.name
            run = directory.removeprefix(RUN_PREFIX) if directory.startswith(RUN_PREFIX) else NO_RUN
            for line in read(file):
                self.add(line.rstrip(b"\n"), file.place, run)

    def add(self, raw: bytes, file: str, run: str) -> None:
        """Add a line of `file`; `run` is that of a line that names none."""
        if self._wanted is not None and (_run_named(raw) or NO_RUN) not in self._wanted:
            return
        try:
            head = decode_record(raw)
        except (msgspec.MsgspecError, UnicodeDecodeError) as problem:
            try:
                head = strange_record(raw, problem)  # type: ignore[assignment] # only its head counts
            except NoRecord as reason:
                self._set_aside(_run_named(raw) or run, file, raw, str(reason))
                return
        named = head.run or NO_RUN
        self.records[named].append(RecordLine(head.at, raw, file, head.uuid, head.seq))
        if getattr(head, "event", None).__class__ not in CLUSTER_EVENTS:
            self.members[named].add(head.member)

    def runs(self) -> list[str]:
        """Return the runs of all lines."""
        return list(self.records | self.quarantine)

    def first_of(self, run: str) -> dict[tuple[str, int], RecordLine]:
        """Return the records of the run by identity, each once: the first one by time."""
        first: dict[tuple[str, int], RecordLine] = {}
        for line in sorted(self.records[run]):
            first.setdefault((line.uuid, line.seq), line)
        return first

    def events(self, run: str) -> tuple[list[RecordLine], pa.Table]:
        """Return each event of the run once, by time, as lines and as columns; set aside what contradicts one, or fits none."""
        while True:
            first = self.first_of(run)
            contradicting = [line for line in sorted(self.records[run]) if first[line.uuid, line.seq].raw != line.raw]
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
        return run_of_line(raw).run
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return ""
