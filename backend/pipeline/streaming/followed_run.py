"""A run whose lines come in blocks, which are kept elsewhere: judged as they come. No Spark, no clock.

Records wait a little for older ones of other writers. What comes too late for that, and is older than what was judged, has the
run judged anew.
"""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from io import BytesIO
from math import inf
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from msgspec import Struct

from quarterdeck.backend.core.events import Record
from quarterdeck.backend.invariants.convergence import Convergence
from quarterdeck.backend.pipeline.audit_input import InputFile
from quarterdeck.backend.pipeline.judging.group_judge import judge_group, records_of
from quarterdeck.backend.pipeline.judging.lines import NO_RUN, SetAside, StrangeRecord
from quarterdeck.backend.pipeline.judging.order import OutOfOrder
from quarterdeck.backend.pipeline.judging.run_judge import AuditQuestion, RunJudge
from quarterdeck.backend.pipeline.rules import NAMES, Finding, QuarantinedLine, by_weight, linked
from quarterdeck.backend.pipeline.tasks import collector_paused

QUESTION = AuditQuestion(tuple(name for name in NAMES if name != Convergence.name))
"""What can be asked of a run that goes on."""

SETTLE_MS = 500
"""How long a record waits at least for older ones of other writers, which may come a little later."""

QUIET_MS = 10_000
"""A run whose times do not bring it in order is judged as a whole when nothing has come for so long, if it grows slowly."""

WHOLE_GROWTH = 1.25
"""Such a run is judged as a whole again also when it has grown so much."""


class Block(Struct, frozen=True, array_like=True):
    """Whole lines of a file, or of another ordered place such as a partition of a topic."""

    file: str
    start: int
    """Where they begin: what comes later in the file has a greater number."""
    lines: bytes


class Blocks(Struct, frozen=True, array_like=True):
    """Blocks of one run that came together, at a time in ms."""

    came_ms: int
    blocks: tuple[Block, ...]


class _Place(NamedTuple):
    """When a record happened and where it stands: equal times are ordered by where they were written, as causes are."""

    at_us: int
    file: str
    number: int


class FollowedRun:
    """Judges a run as its blocks come.

    Its findings are those of an audit of the records judged so far, except for rules about how a run ends (convergence).
    """

    kept: Callable[[int], Iterable[Blocks]]
    """Returns the blocks from a number on, as often as it is asked. The caller sets it before each judgement."""

    def __init__(self, run: str) -> None:
        self._run = run
        self._directory: Path | None = None
        self.problems: list[QuarantinedLine] = []
        """Lines in the last blocks that are no records of the run, or contradict one; numbered from the start of their blocks."""
        self.is_judged_anew = False
        """Whether the last judgement had to begin anew."""
        self._begin()

    def _begin(self) -> None:
        self.taken = 0
        """How many of the kept ones were taken in."""
        self._judge = RunJudge(self._run, QUESTION)
        self._judged = 0
        self._last: _Place | None = None
        self._waiting: list[tuple[_Place, int, Record]] = []
        """Records with when they came, the one to be judged next first."""
        self._numbers: dict[str, _Numbers] = {}
        self._is_disordered = False
        """Whether times do not bring the records in order, so that the run is judged as a whole now and then."""
        self._judged_whole = 0
        """How many records there were when that was last done."""

    @property
    def waits(self) -> bool:
        """Whether something is not judged yet."""
        return self.waits_to_settle or (self._is_disordered and self._judged > self._judged_whole)

    @property
    def waits_to_settle(self) -> bool:
        """Whether a record waits for older ones of other writers."""
        return bool(self._waiting)

    @property
    def judged_us(self) -> int:
        """Up to which time of the run's clock it is judged; what comes late and is older is judged at once."""
        return -1 if self._last is None else self._last.at_us

    def judge(self, judged_us: int, settled_ms: float, *, is_quiet: bool, known: int = 0) -> list[Finding] | None:
        """Judge what came until `settled_ms`, and everything up to `judged_us`. Return the findings, None where nothing is new.

        A run that has to be judged as a whole is so when it has grown enough or `is_quiet`. Lines of the first `known` of the
        kept blocks are no `problems` again.
        """
        self.problems = []
        with collector_paused():
            self._take(known)
            judged = self._judge_waiting(judged_us, settled_ms)
            self.is_judged_anew = judged is None
            if judged is None:
                judged_us = self.judged_us
                self._begin()
                self._take(inf)
                judged = self._judge_waiting(judged_us, settled_ms) or 0
            if not self._is_disordered:
                return self._linked(self._judge.verdict().findings) if judged else None
            if self._judged == self._judged_whole:
                return None
            if not is_quiet and self._judged < WHOLE_GROWTH * self._judged_whole:
                return None
            self._judged_whole = self._judged
            return self._found_in_whole()

    def _judge_waiting(self, judged_us: int, settled_ms: float) -> int | None:
        """Return how many records could be judged; None where one came after a later one had been judged."""
        judged, is_late = 0, False
        while self._waiting and (self._waiting[0][0].at_us <= judged_us or self._waiting[0][1] <= settled_ms):
            place, _, record = heapq.heappop(self._waiting)
            is_late = is_late or (self._last is not None and place < self._last)
            self._last = place
            judged += 1
            if not self._is_disordered:
                try:
                    self._judge.receive((record.at, "", 0, record, b""))
                except OutOfOrder:
                    self._is_disordered = True
        self._judged += judged
        return None if is_late and not self._is_disordered else judged

    def _take(self, known: float) -> None:
        for blocks in self.kept(self.taken):
            aside = SetAside()
            for block in blocks.blocks:
                if "/" in block.file:
                    self._directory = Path(block.file).parent
                for place, record, raw in self._records(block, aside):
                    numbers = self._numbers.setdefault(record.uuid, _Numbers())
                    checksum = crc32(raw)
                    before = numbers.add(record.seq, checksum)
                    if before is None:
                        heapq.heappush(self._waiting, (place, blocks.came_ms, record))
                    elif before != checksum:
                        at = f"{block.file}\0{block.file}"
                        aside.repeat(at, place.number - block.start, record, raw, is_same=False)
                        # Which of them counts is known when all are side by side.
                        self._is_disordered, self._judged_whole = True, 0
            if self.taken >= known:
                self.problems += aside.problems
            self.taken += 1

    def _records(self, block: Block, aside: SetAside) -> Iterator[tuple[_Place, Record, bytes]]:
        def lines(_: InputFile) -> Iterable[bytes]:
            return BytesIO(block.lines)

        def on_strange(place: str, number: int, strange: StrangeRecord, problem: str) -> None:
            self._judge.report_strange((place, block.start + number), strange.member, strange.seq, problem)

        for at_us, place, number, record, raw in records_of(
            InputFile(block.file, block.file), lines, aside, on_strange
        ):
            if (record.run or NO_RUN) == self._run:
                yield _Place(at_us, place.partition("\0")[0], block.start + number), record, raw
            else:
                aside.quarantine(place, number, raw, f"is of another run, {record.run!r}")

    def _found_in_whole(self) -> list[Finding]:
        """Return the findings of an audit of all blocks, which puts them in the order of causes."""
        content: dict[str, list[Block]] = {}
        for blocks in self.kept(0):
            for block in blocks.blocks:
                content.setdefault(block.file, []).append(block)

        def lines(file: InputFile) -> Iterator[bytes]:
            for block in sorted(content[file.read], key=lambda block: block.start):
                yield from BytesIO(block.lines)

        verdict = judge_group([InputFile(file, file) for file in content], QUESTION, lines)
        return self._linked(
            [finding for run in verdict.runs if (run.run or NO_RUN) == self._run for finding in run.findings]
        )

    def _linked(self, findings: Iterable[Finding]) -> list[Finding]:
        """Return the findings in the order of an audit, with links where the run has files."""
        return by_weight([linked(finding, self._directory) for finding in findings])


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


def changes_between(known: Sequence[Finding], found: Sequence[Finding]) -> tuple[list[Finding], list[Finding]]:
    """Return the findings that are new, and those that do not hold any more."""
    before, now = set(known), set(found)
    return [finding for finding in found if finding not in before], [finding for finding in known if finding not in now]
