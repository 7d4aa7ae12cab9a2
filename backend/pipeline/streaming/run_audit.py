"""Audits one run whose records come as files do: several at a time, some late, some twice. No Spark, no clock."""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Iterable
from math import inf
from pathlib import Path
from typing import NamedTuple

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.invariants.convergence import Convergence
from quarterdeck.backend.pipeline.judging.lines import StrangeRecord
from quarterdeck.backend.pipeline.judging.order import OutOfOrder
from quarterdeck.backend.pipeline.judging.run_judge import AuditQuestion, RunJudge
from quarterdeck.backend.pipeline.rules import NAMES, Finding, by_weight, linked

QUESTION = AuditQuestion(tuple(name for name in NAMES if name != Convergence.name))
"""What can be asked of a run that goes on."""


class RecordPosition(NamedTuple):
    """Where a record stands: equal times are ordered by where they were written, which is the order of causes."""

    at_us: int
    file: str
    """Its name once it is finished."""
    line: int


class ReadRecord(NamedTuple):
    """A record as it was read. Two lines of one identity are the same if their `checksum` is: zlib.crc32 of the line."""

    place: RecordPosition
    record: Record
    checksum: int


class PendingRecord(NamedTuple):
    """A record that waits to be judged; `arrived_s` is when it came, on the reader's monotonic clock."""

    place: RecordPosition
    arrived_s: float
    record: Record

    def __lt__(self, other: PendingRecord) -> bool:  # type: ignore[override]
        return self.place < other.place


class RunAudit:
    """Judges records, which may come in any order, in the order of causes, and knows the findings so far.

    These are the findings of a batch audit of the records judged so far, except for rules about how a run ends (convergence).
    """

    def __init__(self, run: str) -> None:
        self.run = run
        self.judged = 0
        """Records that the checkers have seen."""
        self.is_out_of_order = False
        """Whether a record came after a later one had been judged: everything has to be judged anew."""
        self.is_disordered = False
        """Whether times do not bring the records in order: the caller has to judge the run as a whole."""
        self.judged_whole = 0
        """How many records there were when that was last done."""
        self._judge = RunJudge(run, QUESTION)
        self._waiting: list[PendingRecord] = []
        self._numbers: dict[str, _Numbers] = {}
        self._last: RecordPosition | None = None

    def add(self, records: Iterable[ReadRecord], arrived_s: float = -inf) -> list[ReadRecord]:
        """Add records, which wait for their turn; those that came before are left out.

        Return those that contradict what came before: two different events of one identity.
        """
        contradictions = []
        for read in records:
            place, record, checksum = read
            numbers = self._numbers.get(record.uuid)
            if numbers is None:
                numbers = self._numbers[record.uuid] = _Numbers()
            before = numbers.add(record.seq, checksum)
            if before is None:
                heapq.heappush(self._waiting, PendingRecord(place, arrived_s, record))
            elif before != checksum:
                contradictions.append(read)
        return contradictions

    @property
    def waits(self) -> bool:
        """Whether a record has not been judged."""
        return bool(self._waiting)

    def judge(self, before_us: float = inf, arrived_until_s: float = inf) -> int:
        """Judge records before a time of the run's clock that arrived until another time. Return how many records that were."""
        judged = self.judged
        waiting = self._waiting
        while waiting and waiting[0].place.at_us < before_us and waiting[0].arrived_s <= arrived_until_s:
            place, _, record = heapq.heappop(waiting)
            if self._last is not None and place < self._last:
                self.is_out_of_order = True
            self._last = place
            self._observe(record)
        return self.judged - judged

    @property
    def judged_us(self) -> int:
        """The time of the run's clock up to which it is judged; -1 before it begins."""
        return -1 if self._last is None else self._last.at_us

    def report_strange(self, place: tuple[str, int], strange: StrangeRecord, problem: str) -> None:
        """Note a record that exists but cannot be understood."""
        self._judge.report_strange(place, strange.member, strange.seq, problem)

    def findings(self, directory: Path | None) -> list[Finding]:
        """Return the findings so far, in the order of an audit. `directory` is where the run's files are, if there is one."""
        return by_weight([linked(finding, directory) for finding in self._judge.verdict().findings])

    def _observe(self, record: Record) -> None:
        self.judged += 1
        if self.is_disordered:
            return
        try:
            self._judge.receive((record.at, "", 0, record, b""))
        except OutOfOrder:
            self.is_disordered = True


class _Numbers:
    """The records of an incarnation that have come, with their checksums, in little space."""

    __slots__ = ("beyond", "first")

    def __init__(self) -> None:
        self.first = array("I")
        """Of the records 1, 2, 3 and so on, without a gap."""
        self.beyond: dict[int, int] = {}

    def add(self, seq: int, checksum: int) -> int | None:
        """Add a record. Return None if it has not come before, else the checksum that it had then."""
        if 0 < seq <= len(self.first):
            return self.first[seq - 1]
        if seq in self.beyond:
            return self.beyond[seq]
        self.beyond[seq] = checksum
        while (following := self.beyond.pop(len(self.first) + 1, None)) is not None:
            self.first.append(following)
        return None
