"""Audits a whole journal while it grows: assigns lines to runs, and judges them when nothing before them can be missing.

The caller provides the lines of finished files, and the clock.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import inf
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from quarterdeck.backend.journal.files import RUN_PREFIX, as_record, current_path, run_directory, sealed_name
from quarterdeck.backend.pipeline.audit_input import InputFile
from quarterdeck.backend.pipeline.judging.group_judge import judge_group
from quarterdeck.backend.pipeline.rules import Finding, by_weight, linked
from quarterdeck.backend.pipeline.streaming.run_audit import QUESTION, ReadRecord, RecordPosition, RunAudit
from quarterdeck.backend.pipeline.streaming.stream_files import FindingsChange, FindingsFile, ProcessedFiles
from quarterdeck.backend.pipeline.streaming.watermark import ArrivalWatermark, whole_lines

SETTLE_SECONDS = 0.5
"""How long a record waits at least. A writer puts its lines into a file within a few hundredths of a second, and more slowly only
on an overloaded machine.
"""

MAX_RUNS_IN_MEMORY = 32
"""Beyond this number, runs without waiting records are forgotten, and read again if more of them comes."""

MAX_PROBLEMS_PRINTED = 20

WHOLE_PAUSES = 10
"""After a run was judged as a whole it is left alone for so many times as long as that took."""


class JournalLine(NamedTuple):
    """A line of a file; lines of a file come in their order."""

    file: Path
    raw: bytes


class LiveAudit:
    """Keeps `findings` and `processed_files` equal to what was read of the journal at `root`.

    Times are in seconds on the caller's monotonic clock. `on_change` is called with each change, `on_message` with messages for
    the user. Raises OSError when the disk refuses.
    """

    def __init__(
        self,
        root: Path,
        processed_files: ProcessedFiles,
        findings: FindingsFile,
        on_change: Callable[[FindingsChange], None],
        on_message: Callable[[str], None],
        only_run: str = "",
    ) -> None:
        """`only_run`: ignore all other runs."""
        self.lines = 0
        self.problems = 0
        """Lines that are no records."""
        self._root, self._processed, self._findings = root, processed_files, findings
        self._on_change, self._on_message = on_change, on_message
        self._arrivals = ArrivalWatermark(root, only_run)
        self._runs: dict[str, RunAudit] = {}
        self._whole_after_s: dict[str, float] = {}
        """When a run whose times do not bring it in order may be judged as a whole again."""
        self._changed: set[str] = set()
        """Runs of which something has to be judged or written down."""
        for run in processed_files.unsettled():
            self._load(run)

    def read(self, lines: Iterable[JournalLine], now_s: float) -> None:
        """Read lines of finished files. When this returns, the account has these files durably."""
        names: dict[str, dict[str, None]] = {}
        for run, records in self._by_run(self._parse(lines)).items():
            audit = self._load(run)
            names[run] = dict.fromkeys(record.place.file for record in records)
            self._contradictions(run, audit.add(records, now_s))
        self._processed.add({run: tuple(files) for run, files in names.items()})

    def judge_due(self, now_s: float) -> None:
        """Judge what can be judged now, and write the changed findings."""
        self._read_open(self._arrivals.stalled(now_s))
        for run in sorted(self._changed):
            audit = self._runs[run]
            watermark_us = self._arrivals.watermark_us(run, self._processed.files(run), now_s)
            self._judge(audit, watermark_us, now_s - SETTLE_SECONDS, now_s)
        for run in [run for run in self._runs if run not in self._changed][
            : max(0, len(self._runs) - MAX_RUNS_IN_MEMORY)
        ]:
            del self._runs[run]

    def finish(self) -> None:
        """Judge all that is there, including files that are still open, without waiting for more."""
        self._read_open(self._arrivals.stalled(inf, at_once=True))
        for run in sorted(self._changed):
            self._judge(self._runs[run], inf, inf, inf)

    def violations(self) -> int:
        """Return how many violations are known by now."""
        return self._findings.violations()

    # Lines

    def _parse(self, lines: Iterable[JournalLine]) -> Iterator[ReadRecord]:
        file, name, run, number = None, "", "", 0
        for line in lines:
            if line.file != file:
                file, number = line.file, 0
                name, run = sealed_name(file.name), file.parent.name.removeprefix(RUN_PREFIX)
            number += 1
            self.lines += 1
            record = as_record(line.raw)
            is_open = not line.file.parent.name.startswith(RUN_PREFIX)
            if record is None:
                self._problem(f"{line.file}: line {number} is not a record, or none that this version knows")
            elif not is_open and record.run != run:
                self._problem(f"{line.file}: line {number} is of another run, {record.run!r}")
            else:
                yield ReadRecord(RecordPosition(record.at, name, number), record, crc32(line.raw))

    def _contradictions(self, run: str, read: Iterable[ReadRecord]) -> None:
        for place, record, _ in read:
            who = f"the event {record.seq} of {record.uuid}"
            self._problem(f"run {run}, {place.file}: line {place.line} contradicts {who}, which occurs elsewhere too")

    def _problem(self, text: str) -> None:
        self.problems += 1
        if self.problems <= MAX_PROBLEMS_PRINTED:
            self._on_message(text)

    @staticmethod
    def _by_run(read: Iterable[ReadRecord]) -> dict[str, list[ReadRecord]]:
        by_run: dict[str, list[ReadRecord]] = {}
        for read_record in read:
            by_run.setdefault(read_record.record.run, []).append(read_record)
        return by_run

    def _read_open(self, files: Sequence[Path]) -> None:
        """Read files that no writer finishes, as they are now. They are read again if a writer finishes them after all."""
        lines = (JournalLine(file, raw) for file in files for raw in whole_lines(file))
        for run, records in self._by_run(self._parse(lines)).items():
            if run_directory(self._root, run).is_dir():
                self._contradictions(run, self._load(run).add(records))  # they have waited long enough

    # Runs

    def _load(self, run: str) -> RunAudit:
        """Return the run as it is, and mark it as changed."""
        self._changed.add(run)
        audit = self._runs.pop(run, None)
        if audit is None:
            audit = RunAudit(run)
            self._read_again(audit, self._processed.files(run))
        self._runs[run] = audit  # in the order of use
        return audit

    def _read_again(self, audit: RunAudit, names: Iterable[str]) -> None:
        directory = run_directory(self._root, audit.run)
        places = {directory / name: current_path(directory / name) for name in names}
        for place in dict.fromkeys(
            place for place in places.values() if place is not None
        ):  # merged files hold several
            with place.open("rb") as file:
                lines = (JournalLine(place, raw.removesuffix(b"\n")) for raw in file)
                audit.add(read_of(lines, audit.run))
        if gone := [str(file) for file, place in places.items() if place is None]:
            more = f" and {len(gone) - 1} more" * (len(gone) > 1)
            self._on_message(f"{gone[0]}{more}: read before and gone; what was in there is missing now")

    def _judge(self, audit: RunAudit, before_us: float, arrived_until_s: float, now_s: float) -> None:
        judged = audit.judge(before_us, arrived_until_s)
        if audit.is_out_of_order and not audit.is_disordered:
            self._on_message(f"run {audit.run}: a record came after later ones were judged; the run is judged anew")
            audit = self._anew(audit.run)
            judged = audit.judge(before_us)
        directory = run_directory(self._root, audit.run)
        if audit.is_disordered:
            if audit.judged > audit.judged_whole and now_s >= self._whole_after_s.get(audit.run, -inf):
                self._state(audit.run, self._found_in_whole(audit, directory, now_s))
        elif judged:
            self._state(audit.run, audit.findings(directory))
        if not audit.waits and (not audit.is_disordered or audit.judged == audit.judged_whole):
            self._changed.discard(audit.run)
            self._processed.settle(audit.run)
            self._arrivals.forget(audit.run)

    def _state(self, run: str, findings: Sequence[Finding]) -> None:
        change = self._findings.state(run, findings)
        if change.added or change.withdrawn:
            self._on_change(change)

    def _found_in_whole(self, audit: RunAudit, directory: Path, now_s: float) -> list[Finding]:
        """Return the findings of an audit of all files of the run. It takes as long as the run is long, so it is done seldom."""
        began_s = time.monotonic()
        files = [directory / name for name in self._processed.files(audit.run)] + self._arrivals.read_while_open()
        verdict = judge_group([InputFile(str(file), str(file)) for file in files if file.exists()], QUESTION)
        audit.judged_whole = audit.judged
        self._whole_after_s[audit.run] = now_s + WHOLE_PAUSES * (time.monotonic() - began_s)
        found = (finding for run in verdict.runs if run.run == audit.run for finding in run.findings)
        return by_weight([linked(finding, directory) for finding in found])

    def _anew(self, run: str) -> RunAudit:
        audit = self._runs[run] = RunAudit(run)
        self._read_again(audit, self._processed.files(run))
        for file in self._arrivals.read_while_open():
            audit.add(read_of((JournalLine(file, raw) for raw in whole_lines(file)), run))
        return audit


def read_of(lines: Iterable[JournalLine], run: str) -> Iterator[ReadRecord]:
    """Yield the records of one run among the lines of one file that was read before."""
    for number, line in enumerate(lines, start=1):
        record = as_record(line.raw)
        if record is not None and record.run == run:
            yield ReadRecord(RecordPosition(record.at, sealed_name(line.file.name), number), record, crc32(line.raw))
