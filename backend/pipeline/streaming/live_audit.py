"""The audit of a whole journal while it grows: which run a line belongs to, when it can be judged, and what is found by now.

Fed by Spark with the lines of finished files, and by the clock. Knows nothing of Spark.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import inf
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from quarterdeck.backend.journal.files import RUN_PREFIX, as_record, run_directory, sealed_name
from quarterdeck.backend.pipeline.streaming.findings_file import Change, FindingsFile
from quarterdeck.backend.pipeline.streaming.processed_files import ProcessedFiles
from quarterdeck.backend.pipeline.streaming.run_audit import ReadRecord, RecordPosition, RunAudit
from quarterdeck.backend.pipeline.streaming.watermark import ArrivalWatermark, whole_lines

SETTLE_SECONDS = 0.5
"""So long a record waits at least. A writer puts its lines into a file within a few hundredths of a second, and more slowly only
where the machine is overloaded."""

MAX_RUNS_IN_MEMORY = 32
"""Runs that wait for nothing are put aside beyond this number."""

MAX_PROBLEMS_PRINTED = 20


class Line(NamedTuple):
    """A line of a file. `block` tells apart the pieces in which a great file is read; lines of a piece come in their order."""

    file: Path
    block: int
    raw: bytes


class LiveAudit:
    """Keeps `findings` true to what was read of the journal at `root`, and `processed_files` to what was read.

    May be called from several threads. Times are in seconds on the caller's monotonic clock. `on_change` is called
    with each change, `on_message` with what people should know. Raises OSError when the disk refuses.
    """

    def __init__(
        self,
        root: Path,
        processed_files: ProcessedFiles,
        findings: FindingsFile,
        on_change: Callable[[Change], None],
        on_message: Callable[[str], None],
        only_run: str = "",
    ) -> None:
        """`only_run`: nothing of other runs is looked at."""
        self.lines = 0
        self.problems = 0
        """Lines that are no records."""
        self._root, self._processed, self._findings = root, processed_files, findings
        self._on_change, self._on_message = on_change, on_message
        self._arrivals = ArrivalWatermark(root, only_run)
        self._runs: dict[str, RunAudit] = {}
        self._changed: set[str] = set()
        """Runs of which something has to be judged or written down."""
        self._lock = threading.Lock()
        for run in processed_files.unsettled():
            self._load(run)

    def take(self, lines: Iterable[Line], now_s: float) -> None:
        """Take in lines of finished files. When this returns, it will not be forgotten that they were read."""
        with self._lock:
            names: dict[str, dict[str, None]] = {}
            for run, read in self._by_run(self._parse(lines)).items():
                audit = self._load(run)
                names[run] = dict.fromkeys(one.place.file for one in read)
                self._contradictions(run, audit.take(read, now_s))
            self._processed.add({run: tuple(files) for run, files in names.items()})

    def judge_due(self, now_s: float) -> None:
        """Judge what can be judged now, and write down what that changes."""
        with self._lock:
            self._take_open(self._arrivals.stalled(now_s))
            for run in sorted(self._changed):
                audit = self._runs[run]
                watermark_us = self._arrivals.watermark_us(run, self._processed.files(run), now_s)
                self._judge(audit, watermark_us, now_s - SETTLE_SECONDS)
            self._put_aside()

    def finish(self) -> None:
        """Judge all that is there, files that are still open included: nothing more is waited for."""
        with self._lock:
            self._take_open(self._arrivals.stalled(inf, at_once=True))
            for run in sorted(self._changed):
                self._judge(self._runs[run], inf, inf)

    def violations(self) -> int:
        """How many violations are found by now."""
        return self._findings.violations()

    def close(self) -> None:
        """Keep the states of all runs for the next time."""
        with self._lock:
            for audit in self._runs.values():
                self._processed.save_state(audit)

    # Lines

    def _parse(self, lines: Iterable[Line]) -> Iterator[ReadRecord]:
        file, name, run = None, "", ""
        numbers: dict[int, int] = {}
        for line in lines:
            if line.file != file:
                file, numbers = line.file, {}
                name, run = sealed_name(file.name), file.parent.name.removeprefix(RUN_PREFIX)
            number = numbers[line.block] = numbers.get(line.block, 0) + 1
            self.lines += 1
            record = as_record(line.raw)
            is_open = not line.file.parent.name.startswith(RUN_PREFIX)
            if record is None:
                self._problem(f"{line.file}: line {number} is no record, or none that this version knows")
            elif not is_open and record.run != run:
                self._problem(f"{line.file}: line {number} is of another run, {record.run!r}")
            else:
                yield ReadRecord(RecordPosition(record.at, name, line.block, number), record, crc32(line.raw))

    def _contradictions(self, run: str, read: Iterable[ReadRecord]) -> None:
        for place, record, _ in read:
            who = f"the event {record.seq} of {record.uuid}"
            self._problem(f"run {run}, {place.file}: line {place.line} contradicts {who}, which stands elsewhere too")

    def _problem(self, text: str) -> None:
        self.problems += 1
        if self.problems <= MAX_PROBLEMS_PRINTED:
            self._on_message(text)

    @staticmethod
    def _by_run(read: Iterable[ReadRecord]) -> dict[str, list[ReadRecord]]:
        by_run: dict[str, list[ReadRecord]] = {}
        for one in read:
            by_run.setdefault(one.record.run, []).append(one)
        return by_run

    def _take_open(self, files: Sequence[Path]) -> None:
        """Take in files that nobody finishes, as they are now. They are read again when somebody does finish them."""
        lines = (Line(file, 0, raw) for file in files for raw in whole_lines(file))
        for run, read in self._by_run(self._parse(lines)).items():
            if run_directory(self._root, run).is_dir():
                self._contradictions(run, self._load(run).take(read))  # they have waited long enough

    # Runs

    def _load(self, run: str) -> RunAudit:
        """The run as it stands; from now on it is looked at."""
        self._changed.add(run)
        audit = self._runs.pop(run, None)
        if audit is None:
            audit, names = self._processed.load_state(run)
            self._read_again(audit, names)
        self._runs[run] = audit  # the last one is the one that was used last
        return audit

    def _read_again(self, audit: RunAudit, names: Iterable[str]) -> None:
        directory = run_directory(self._root, audit.run)
        for name in names:
            try:
                with (directory / name).open("rb") as file:
                    lines = (Line(directory / name, 0, raw.removesuffix(b"\n")) for raw in file)
                    audit.take(read_of(lines, audit.run))
            except FileNotFoundError:
                self._on_message(f"{directory / name}: it was read before and is gone; what it held is missing now")

    def _judge(self, audit: RunAudit, before_us: float, arrived_until_s: float) -> None:
        judged = audit.judge(before_us, arrived_until_s)
        if audit.is_out_of_order:
            self._on_message(f"run {audit.run}: a record came after later ones were judged; the run is judged anew")
            audit = self._anew(audit.run)
            judged = audit.judge(before_us)
        if judged:
            change = self._findings.state(audit.run, audit.findings(run_directory(self._root, audit.run)))
            if change.added or change.withdrawn:
                self._on_change(change)
        if self._processed.is_worth_saving(audit):
            self._processed.save_state(audit)
        if not audit.waits:
            self._changed.discard(audit.run)
            self._processed.settle(audit.run)
            self._arrivals.forget(audit.run)

    def _anew(self, run: str) -> RunAudit:
        audit = self._runs[run] = RunAudit(run)
        self._read_again(audit, self._processed.files(run))
        for file in self._arrivals.read_while_open():
            audit.take(read_of((Line(file, 0, raw) for raw in whole_lines(file)), run))
        return audit

    def _put_aside(self) -> None:
        for run in [run for run in self._runs if run not in self._changed][
            : max(0, len(self._runs) - MAX_RUNS_IN_MEMORY)
        ]:
            self._processed.save_state(self._runs.pop(run))


def read_of(lines: Iterable[Line], run: str) -> Iterator[ReadRecord]:
    """The records of one run among the lines of one file that was read before."""
    for number, line in enumerate(lines, start=1):
        record = as_record(line.raw)
        if record is not None and record.run == run:
            yield ReadRecord(
                RecordPosition(record.at, sealed_name(line.file.name), line.block, number), record, crc32(line.raw)
            )
