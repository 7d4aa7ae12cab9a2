"""A run whose lines come in blocks, which are kept elsewhere: judged as they come, by `RunAudit`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from io import BytesIO
from pathlib import Path
from zlib import crc32

from msgspec import Struct

from quarterdeck.backend.pipeline.audit_input import InputFile
from quarterdeck.backend.pipeline.judging.group_judge import collector_paused, judge_group, records_of
from quarterdeck.backend.pipeline.judging.lines import SetAside, StrangeRecord
from quarterdeck.backend.pipeline.rules import Finding, by_weight, linked
from quarterdeck.backend.pipeline.streaming.run_audit import QUESTION, ReadRecord, RecordPosition, RunAudit

WHOLE_GROWTH = 1.25
"""A run whose times do not bring it in order is judged as a whole again when it has grown so much."""


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


class FollowedRun:
    """Judges a run as its blocks come."""

    kept: Callable[[int], Iterable[Blocks]]
    """Returns the blocks from a number on, as often as it is asked. The caller sets it before each judgement."""

    def __init__(self, run: str) -> None:
        self._run = run
        self._audit = RunAudit(run)
        self.taken = 0
        """How many of the kept ones were taken in."""
        self._directory: Path | None = None

    def judge(self, judged_us: int, settled_ms: float, *, is_quiet: bool) -> list[Finding] | None:
        """Judge what came until `settled_ms`, and everything up to `judged_us`. Return the findings, None where nothing is new.

        A run that has to be judged as a whole is so when it has grown enough or `is_quiet`.
        """
        with collector_paused():
            self._take(self.kept(self.taken))
            if not self._judge(judged_us, settled_ms):
                return None
            if not self._audit.is_disordered:
                return self._audit.findings(self._directory)
            if not is_quiet and self._audit.judged < WHOLE_GROWTH * self._audit.judged_whole:
                return None
            self._audit.judged_whole = self._audit.judged
            return self._found_in_whole()

    @property
    def waits(self) -> bool:
        """Whether something is not judged yet."""
        audit = self._audit
        return audit.waits or (audit.is_disordered and audit.judged > audit.judged_whole)

    @property
    def waits_to_settle(self) -> bool:
        """Whether a record waits for older ones of other writers."""
        return self._audit.waits

    @property
    def judged_us(self) -> int:
        """Up to which time of the run's clock it is judged; what comes late and is older is judged at once."""
        return self._audit.judged_us

    def _judge(self, judged_us: int, settled_ms: float) -> bool:
        judged = self._audit.judge(judged_us + 1) + self._audit.judge(arrived_until_s=settled_ms)
        if self._audit.is_out_of_order and not self._audit.is_disordered:
            judged_us = self._audit.judged_us
            self._audit, self.taken = RunAudit(self._run), 0
            self._take(self.kept(0))
            judged = self._audit.judge(judged_us + 1) + self._audit.judge(arrived_until_s=settled_ms)
        return judged > 0 or (self._audit.is_disordered and self._audit.judged > self._audit.judged_whole)

    def _take(self, several: Iterable[Blocks]) -> None:
        for blocks in several:
            self.taken += 1
            for block in blocks.blocks:
                if "/" in block.file:
                    self._directory = Path(block.file).parent
                self._audit.add(self._records(block), blocks.came_ms)

    def _records(self, block: Block) -> Iterator[ReadRecord]:
        def lines(_: InputFile) -> Iterable[bytes]:
            return BytesIO(block.lines)

        def on_strange(place: str, number: int, strange: StrangeRecord, problem: str) -> None:
            self._audit.report_strange((place, block.start + number), strange, problem)

        for at_us, place, number, record, raw in records_of(
            InputFile(block.file, block.file), lines, SetAside(), on_strange
        ):
            if record.run == self._run:
                name, _, _ = place.partition("\0")
                yield ReadRecord(RecordPosition(at_us, name, block.start + number), record, crc32(raw))

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
        found = (finding for run in verdict.runs if run.run == self._run for finding in run.findings)
        return by_weight([linked(finding, self._directory) for finding in found])


def changes_between(known: Sequence[Finding], found: Sequence[Finding]) -> tuple[list[Finding], list[Finding]]:
    """Return the findings that are new, and those that do not hold any more."""
    before, now = set(known), set(found)
    return [one for one in found if one not in before], [one for one in known if one not in now]
